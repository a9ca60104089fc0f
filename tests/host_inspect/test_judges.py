"""Judges that take turns on an unmodified task: who scored what, what the log says, what is refused."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from inspect_ai import Task
from inspect_ai import score as host_score
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelRole, get_model
from inspect_ai.scorer import (
    Score,
    Scorer,
    Target,
    includes,
    match,
    mean,
    model_graded_fact,
    model_graded_qa,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from tests.claims import variant
from tests.host_inspect.worlds import retried, scoring

from evalbudget import Allocation
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.judges.estimates import (
    JudgeScores,
    judge_biases,
    panel_mean,
    variance_components,
)
from evalbudget_inspect import budgeted
from evalbudget_inspect.demo.story_rating import judge_rating
from evalbudget_inspect.host.readings import phase_of
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.judges.dealing import Rotation
from evalbudget_inspect.judges.panel import Panel
from evalbudget_inspect.reading.open_logs import open_scores

MEANS = {"simulated/harsh": 3.0, "simulated/fair": 5.0, "simulated/kind": 8.0}
JUDGES = list(MEANS)


def panel(**options: Any) -> list[Model]:
    """Judges of stated means; ``failing`` names one whose calls all fail."""
    failing = options.pop("failing", None)
    return [
        get_model(name, mean=m, sd=0.3, fail=float(name == failing), memoize=False, **options)
        for name, m in MEANS.items()
    ]


def task(items: int = 12, *, rate: Scorer | list[Scorer] | None = None, **metadata: Any) -> Task:
    samples = [
        Sample(id=f"item-{i}", input=f"Write story {i}.", metadata=dict(metadata)) for i in range(items)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="stories"),
        solver=generate(),
        scorer=rate or judge_rating(),
        name="rating",
    )


length = scoring("length", lambda state: len(state.output.completion))


@scorer(metrics=[mean()])
def critic_rating() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        reply = await get_model(role="critic").generate("Rate.")
        return Score(value=float(re.findall(r"-?\d+(?:\.\d+)?", reply.completion)[0]))

    return score


def seats(log: EvalLog, name: str = "judge_rating") -> dict[tuple[str, int], str]:
    """Who scored which cell, by the scores' metadata."""
    return {
        (str(s.id), s.epoch): (s.scores or {})[name].metadata["evalbudget"]["judge"]  # type: ignore[index]
        for s in log.samples or []
        if s.scores
    }


def table(log: EvalLog) -> JudgeScores:
    rows = [
        (int(str(s.id).split("-")[1]), s.epoch - 1, JUDGES.index(seats(log)[str(s.id), s.epoch]), s.scores)
        for s in log.samples or []
        if s.scores
    ]
    item, epoch, judge, scores = zip(*rows, strict=True)
    phases = [phase_of((s["judge_rating"].metadata or {})["evalbudget"]) for s in scores]
    return JudgeScores.of(
        item,
        epoch,
        judge,
        [s["judge_rating"].as_float() for s in scores],
        judges=JUDGES,
        phase=phases,
    )


@pytest.mark.parametrize(("max_samples", "budget"), [(1, 48), (None, 12)])
def test_the_estimate_is_the_panels_and_each_judge_is_itself(
    run: Any, metrics: Any, diagnostics: Any, calls: Any, max_samples: int | None, budget: int
) -> None:
    log = run(budgeted(task(), budget=budget, judges=panel(), score_range="0..10"), max_samples=max_samples)
    assert log.status == "success"
    told, who = metrics(log), seats(log)
    assert len(who) == budget
    counts = Counter(who.values())
    assert max(counts.values()) - min(counts.values()) <= 1
    for sample in log.samples:
        assert set(sample.model_usage) == {"simulated/writer", who[str(sample.id), sample.epoch]}
        assert set(sample.role_usage) == {"grader"}
    assert {name: calls(log, name) for name in JUDGES} == counts

    scores = table(log)
    theirs, biases = panel_mean(scores), judge_biases(scores)
    interval = theirs.confidence_interval(0.95)
    assert told["estimate"] == pytest.approx(theirs.value)
    assert told["stderr"] == pytest.approx(theirs.standard_error)
    assert (told["lower"], told["upper"]) == pytest.approx((interval.low, interval.high))
    for short, value in zip(("harsh", "fair", "kind"), biases.value, strict=True):
        assert told[f"bias_{short}"] == pytest.approx(value)
        assert told[f"bias_{short}"] == pytest.approx(MEANS[f"simulated/{short}"] - 16 / 3, abs=0.5)
    assert told["estimate"] == pytest.approx(16 / 3, abs=0.3)
    assert (told["judges"], told["items"], told["readings"]) == (3, 12, budget)
    assert told["variance_judge"] == pytest.approx(np.var([3, 5, 8]), rel=0.25)
    assert told["share_judge"] > 0.8
    assert not any("[" in name for name in told)

    ours = diagnostics(log)
    assert (ours["sampler"], ours["rotation"], ours["judge_role"]) == ("uniform", "cyclic", "grader")
    per_judge = ours["panel"]["per_judge"]
    assert {name: entry["calls"] for name, entry in per_judge.items()} == counts
    for name in JUDGES:
        assert per_judge[name]["tokens"] == log.stats.model_usage[name].total_tokens
        assert per_judge[name]["failed"] == 0
    assert "these 3 judges" in ours["panel"]["target"]
    assert ours["panel"]["notes"] == []


def test_order_of_completion_changes_no_seat(run: Any) -> None:
    one = run(budgeted(task(), budget=30, judges=panel()), max_samples=1)
    many = run(budgeted(task(), budget=30, judges=panel()))
    both = seats(one).keys() & seats(many).keys()
    assert len(both) >= 24
    assert {cell: seats(one)[cell] for cell in both} == {cell: seats(many)[cell] for cell in both}


def test_every_category_is_balanced(run: Any) -> None:
    mine = task(18)
    for i, sample in enumerate(mine.dataset):
        sample.metadata = {"category": "abc"[i % 3]}
    who = seats(run(budgeted(mine, budget="1x", judges=panel())))
    for c in range(3):
        assert Counter(who[f"item-{i}", 1] for i in range(c, 18, 3)) == dict.fromkeys(JUDGES, 2)


def test_all_judges_score_one_generation(run: Any, metrics: Any, calls: Any) -> None:
    log = run(budgeted(task(6), budget="3x", judges=panel(), rotation="all", repeat="judge"))
    assert log.status == "success"
    assert calls(log, "simulated/writer") == 6
    who = seats(log)
    for i in range(6):
        assert {who[f"item-{i}", epoch] for epoch in (1, 2, 3)} == set(JUDGES)
    told = metrics(log)
    assert told["variance_item_and_generation"] == pytest.approx(0, abs=0.3)
    assert told["estimate"] == pytest.approx(16 / 3, abs=0.3)


def test_cheap_judges_score_more(run: Any, metrics: Any, diagnostics: Any) -> None:
    prices = "simulated/harsh=1,simulated/fair=1,simulated/kind=16"
    log = run(budgeted(task(36), budget=36, judges=panel(), rotation="priced", judge_prices=prices))
    assert Counter(seats(log).values()) == dict(zip(JUDGES, (16, 16, 4), strict=True))
    assert metrics(log)["estimate"] == pytest.approx(16 / 3, abs=0.3)  # not the raw mean, 4.4
    entry = diagnostics(log)["panel"]["per_judge"]["simulated/kind"]
    assert (entry["calls"], entry["price"]) == (4, 64)


def noisy(items: int = 12) -> Task:
    """Judges disagree by a constant everywhere; every third item also gets a different score each time."""
    made = task(items)
    for i, sample in enumerate(made.dataset):
        sample.metadata = {"simulated_sd": 2.5 if i % 3 == 0 else 0.2}
    return made


@pytest.mark.parametrize(
    ("sampler", "repeat", "max_samples"),
    [  # every two of them meet
        variant("eb-bernstein", "generation", 1),
        variant("eb-bernstein", "judge", 7),
        variant("rating-kernel", "generation", 7),
        ("rating-kernel", "judge", 1),
    ],
)
def test_repeats_go_where_scores_vary_whoever_judges(
    run: Any, metrics: Any, diagnostics: Any, sampler: str, repeat: str, max_samples: int
) -> None:
    options = {"objective": "mean"} if sampler == "rating-kernel" else {}
    log = run(
        budgeted(noisy(), budget=120, sampler=sampler, judges=panel(), repeat=repeat, **options),
        max_samples=max_samples,
    )
    assert log.status == "success"
    who, ours = seats(log), diagnostics(log)
    assert len(who) == 120 == ours["readings"]
    counts = Counter(item for item, _ in who)
    assert counts.total() == 120
    varying = sum(counts[f"item-{i}"] for i in range(0, 12, 3)) / 4
    assert varying > 1.7 * (120 - 4 * varying) / 8
    for i in range(12):  # each item's judges take turns
        of_item = Counter(judge for (item, _), judge in who.items() if item == f"item-{i}")
        assert max(of_item.values()) - min(of_item[judge] for judge in JUDGES) <= 1

    scores = table(log)
    fixed = ours["fixed_repeats"]
    theirs = panel_mean(scores, allocation=Allocation(ours["allocation"]), fixed_repeats=fixed)
    told = metrics(log)
    assert told["estimate"] == pytest.approx(theirs.value)
    assert told["stderr"] == pytest.approx(max(theirs.standard_error, told["repeats_stderr"]))
    exact = 1e-6 if repeat == "generation" else 0.3  # a kept generation compares judges within it
    assert told["bias_kind"] == pytest.approx(judge_biases(scores).value[2], abs=exact)
    per_item = ours["per_item"]
    assert "judges' deviations taken out" in per_item["interval"]
    assert per_item["estimate"][1] == pytest.approx(16 / 3, abs=0.6)  # whichever judges it met
    assert "anytime_lower" not in per_item


def test_an_adaptive_run_with_judges_can_be_retried(task_file: Path, run: Any, diagnostics: Any) -> None:
    names = ["simulated/a", "simulated/b", "simulated/c"]
    arguments = {"task": str(task_file), "budget": 36, "judges": names, "sampler": "eb-bernstein"}
    failed = run(
        "evalbudget_inspect/budgeted",
        task_args=arguments,
        writer={"fail": 0.1},
        fail_on_error=4,
        max_samples=1,
    )
    assert failed.status == "error"
    again = retried(failed, max_samples=1)
    assert seats(failed).items() <= seats(again).items()
    assert diagnostics(again)["spent"] == 36


@pytest.mark.parametrize("epochs", [variant(1), 3])
def test_without_a_budget_the_hosts_epochs_are_all_there_is(
    run: Any, metrics: Any, diagnostics: Any, epochs: int
) -> None:
    log = run(budgeted(task(), judges=panel()), epochs=epochs)
    assert log.status == "success"
    counts = Counter(seats(log).values())
    assert counts == dict.fromkeys(JUDGES, 4 * epochs)
    assert metrics(log)["estimate"] == pytest.approx(16 / 3, abs=0.3)
    ours = diagnostics(log)
    assert (ours["budget_scores"], ours["spent"], ours["stop_reason"]) == (
        None,
        12 * epochs,
        "no budget given",
    )


def test_without_a_budget_there_is_nothing_to_decide(run: Any) -> None:
    for options in ({}, {"judges": "a/x,b/y", "sampler": "eb-bernstein"}):
        with pytest.raises(BudgetError, match="no budget given"):
            budgeted(task(), **options)


def test_a_retry_keeps_every_judge(task_file: Path, run: Any, diagnostics: Any) -> None:
    names = ["simulated/a", "simulated/b", "simulated/c"]
    arguments = {"task": str(task_file), "budget": 30, "judges": names}
    whole = run("evalbudget_inspect/budgeted", task_args=arguments, max_samples=1)
    failed = run(
        "evalbudget_inspect/budgeted",
        task_args=arguments,
        writer={"fail": 0.2},
        fail_on_error=3,
        max_samples=1,
    )
    assert failed.status == "error"
    before = seats(failed)
    again = retried(failed, max_samples=1)
    after = seats(again)
    assert before
    assert before.items() <= after.items()
    common = after.keys() & seats(whole).keys()
    assert len(common) > 12
    assert all(after[cell] == seats(whole)[cell] for cell in common)
    for name in names:  # those of the first attempt included
        used = [s.role_usage["grader"].total_tokens for s in again.samples if name in s.model_usage]
        assert diagnostics(again)["panel"]["per_judge"][name]["tokens"] == sum(used)


def test_a_judge_that_always_fails_is_reported(run: Any, metrics: Any, diagnostics: Any) -> None:
    log = run(budgeted(task(), budget=24, judges=panel(failing="simulated/kind")), fail_on_error=False)
    assert log.status == "success"
    told, ours = metrics(log), diagnostics(log)["panel"]
    assert told["estimate"] == pytest.approx(4.0, abs=0.3)
    assert told["judges"] == 2
    assert "bias_kind" not in told
    kind = ours["per_judge"]["simulated/kind"]
    assert kind["failed"] == kind["calls"] > 0
    assert "these 2 of 3 judges" in ours["target"]
    assert any("'simulated/kind' failed in all" in note for note in ours["notes"])


@pytest.mark.parametrize("sampler", [variant("uniform"), "eb-bernstein"])
def test_a_dead_judge_is_asked_no_more(
    run: Any, metrics: Any, diagnostics: Any, warnings_of_plugin: list[str], sampler: str
) -> None:
    dead = panel(failing="simulated/kind")
    log = run(budgeted(task(12), budget=60, judges=dead, sampler=sampler), fail_on_error=False, max_samples=3)
    ours, told = diagnostics(log), metrics(log)
    kind = ours["panel"]["per_judge"]["simulated/kind"]
    assert 8 <= kind["calls"] == kind["failed"] <= 14  # of 20
    assert ours["spent"] == 60
    assert any("'simulated/kind' was dropped" in note for note in ours["panel"]["notes"])
    assert sum("asked no more" in warning for warning in warnings_of_plugin) == 1
    assert (told["judges"], told["readings"]) == (2, 60 - kind["failed"])
    assert told["estimate"] == pytest.approx(4.0, abs=0.3)


def test_only_calls_count_as_calls(run: Any, diagnostics: Any, metrics: Any) -> None:
    """Neither cells whose model failed, nor scorers that did without a judge; but every attempt."""
    log = run(
        budgeted(task(), budget=24, judges=panel()), writer={"fail": 0.3}, fail_on_error=False, max_samples=4
    )
    per_judge = diagnostics(log)["panel"]["per_judge"]
    scored = Counter(seats(log).values())
    assert sum(scored.values()) < 24
    for name in JUDGES:
        assert (per_judge[name]["calls"], per_judge[name]["failed"]) == (scored[name], 0)
        assert metrics(log)[f"calls_{name.rsplit('/')[-1]}"] == scored[name]
    shaky = [get_model(name, mean=5.0, fail=0.3, memoize=False) for name in JUDGES]
    log = run(budgeted(task(), budget=24, judges=shaky), fail_on_error=False, retry_on_error=1, max_samples=4)
    per_judge = diagnostics(log)["panel"]["per_judge"]
    assert sum(entry["calls"] for entry in per_judge.values()) == diagnostics(log)["spent"]


@scorer(metrics=[mean()])
def length_or_grader(most: int) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        if len(text) > most:
            text = (await get_model(role="grader").generate(text)).completion
        return Score(value=len(text))

    return score


def test_a_role_nobody_asks_for_is_warned_about(
    run: Any, metrics: Any, diagnostics: Any, warnings_of_plugin: list[str]
) -> None:
    log = run(budgeted(task(rate=length_or_grader(10**6)), budget=24, judges=panel()))
    assert sum("--judge-role" in text for text in warnings_of_plugin) == 1
    assert any("'grader'" in note for note in diagnostics(log, "length_or_grader")["panel"]["notes"])
    assert "bias_fair" not in metrics(log, "length_or_grader")
    assert metrics(log, "length_or_grader")["readings"] == 24


@pytest.mark.parametrize(
    "rate",
    [
        match(),
        [match(), includes()],
        model_graded_qa(model="simulated/own"),
        model_graded_qa(model_role="critic"),
        model_graded_fact(model_role=ModelRole("critic")),
    ],
)
def test_judges_that_the_hosts_scorers_do_not_ask_are_refused_at_once(rate: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"no scorer of this task asks for the role 'grader'.*drop"):
        budgeted(task(rate=rate), budget=24, judges=panel())


@pytest.mark.parametrize("budget", [24, None])
def test_judges_that_no_scorer_asks_are_refused_at_the_first_score(
    run: Any, calls: Any, budget: int | None
) -> None:
    log = run(budgeted(task(rate=length()), budget=budget, judges=panel()))
    assert log.status == "error"
    assert calls(log, "simulated/writer") == 1
    assert "no scorer of this task asks for the role 'grader'" in str(take_refusals()[0])


ROLE = "grader"


@scorer(metrics=[mean()])
def untold() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=len((await get_model(role=ROLE).generate("Rate.")).completion))

    return score


def test_until_a_scorer_asks_its_judge_samples_run_one_by_one(
    run: Any, warnings_of_plugin: list[str]
) -> None:
    running, together = 0, []

    @solver
    def fails_at_first() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal running
            running += 1
            together.append(running)
            await anyio.sleep(0.01)
            running -= 1
            if len(together) <= 2:
                raise RuntimeError("broken")
            return await generate(state)

        return solve

    mine = task(rate=untold())
    mine.solver = fails_at_first()
    log = run(budgeted(mine, budget=24, judges=panel()), fail_on_error=False)
    assert log.status == "success"
    assert len(log.samples) == 24
    assert together[:3] == [1, 1, 1]
    assert max(together) > 1
    assert warnings_of_plugin == []


def test_another_role(run: Any, warnings_of_plugin: list[str]) -> None:
    log = run(budgeted(task(rate=critic_rating()), budget=24, judges=panel(), judge_role="critic"))
    assert log.status == "success"
    assert set(Counter(seats(log, "critic_rating").values()).values()) == {8}
    assert warnings_of_plugin == []


def test_a_scorer_without_a_judge_beside_one_with(run: Any, metrics: Any, tmp_path: Path) -> None:
    log = run(
        budgeted(task(rate=[length(), judge_rating()]), budget=24, judges=panel(), score="judge_rating")
    )
    assert "bias_fair" in metrics(log, "judge_rating")
    assert "bias_fair" not in metrics(log, "length")
    recorded = open_scores(Path(log.location))
    assert recorded is not None
    assert sorted(recorded.raters) == sorted(JUDGES)
    assert int(recorded.counts.sum()) == 24


def test_judges_on_different_scales_are_noted(run: Any, diagnostics: Any) -> None:
    wide = get_model("simulated/wide", mean=60, sd=20.0, memoize=False)
    log = run(budgeted(task(24), budget=24, judges=[*panel()[:1], wide]))
    assert any("different scales" in note for note in diagnostics(log)["panel"]["notes"])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"judges": "a/x,a/x"}, InvalidInputError, "listed more than once"),
        ({"judges": "a/x"}, InvalidInputError, "at least 2 judges"),
        ({"judges": ""}, InvalidInputError, "has no name"),
        ({"judges": "a/x,b/y", "rotation": "cylic"}, UnknownNameError, "cyclic"),
        ({"judges": "a/x,b/y", "rotation": "all"}, InvalidInputError, "--repeat judge"),
        ({"judges": "a/x,b/y", "judge_prices": "a/x=1"}, InvalidInputError, "no entry for judge 'b/y'"),
        ({"judges": "a/x,b/y", "judge_prices": "a/x=1,b/z=2"}, UnknownNameError, "b/y"),
        ({"judges": "a/x,b/y", "judge_prices": "a/x=cheap"}, InvalidInputError, "JUDGE=PRICE"),
        ({"rotation": "cyclic"}, InvalidInputError, "--judges"),
        ({"judge_role": "critic"}, InvalidInputError, "--judges"),
    ],
)
def test_what_is_no_panel_is_refused(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        budgeted(task(), budget=24, **options)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"judges": ["nowhere/x", "simulated/b"]}, InvalidInputError, "'nowhere/x' cannot be used"),
        ({"rotation": "all", "repeat": "judge", "budget": 24}, BudgetError, "Raise --budget"),
    ],
)
def test_what_cannot_run_is_refused_before_a_call(
    run: Any, calls: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    log = run(budgeted(task(), **{"budget": 36, "judges": panel(), **options}))
    assert log.status == "error"
    assert calls(log, "simulated/writer") == 0
    refusal = take_refusals()[0]
    assert isinstance(refusal, error)
    assert says in str(refusal)


@pytest.mark.parametrize(
    ("options", "design"),
    [
        ({"budget": "3x"}, "rotated"),
        ({"budget": "1x"}, "rotated, one score per item"),
        ({"budget": "2x", "repeat": "judge"}, "one generation"),
        ({"budget": "3x", "rotation": "all", "repeat": "judge"}, "crossed, one generation"),
        variant({"budget": "6x", "rotation": "all", "repeat": "judge"}, "crossed, one generation"),
    ],
)
def test_a_log_is_a_pilot(run: Any, metrics: Any, options: dict[str, Any], design: str) -> None:
    log = run(budgeted(task(), judges=panel(), **options))
    recorded = open_scores(Path(log.location))
    assert recorded is not None
    assert sorted(recorded.raters) == sorted(JUDGES)
    scores = JudgeScores.from_table(recorded.scores[0], judges=recorded.raters)
    kept = options.get("repeat") == "judge"
    found = variance_components(scores, one_generation=kept)
    assert found.design == design
    assert ("variance_item_and_generation" in metrics(log)) == kept
    assert found["judge"] == pytest.approx(metrics(log)["variance_judge"])
    assert panel_mean(scores).value == pytest.approx(metrics(log)["estimate"])


@solver
def asks_the_grader() -> Solver:
    """A solver with a use of its own for the role."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await get_model(role="grader").generate("Any hints?")
        return await generate(state)

    return solve


def test_model_graded_qa_of_the_host(run: Any, metrics: Any) -> None:
    strict, lenient = (
        get_model(f"simulated/{name}", mean=m, bernoulli=True, template="GRADE: {grade}", memoize=False)
        for name, m in (("strict", 0.0), ("lenient", 1.0))
    )
    mine = task(rate=model_graded_qa())
    mine.solver = asks_the_grader()
    log = run(budgeted(mine, budget=24, judges=[strict, lenient]))
    assert log.status == "success"
    told = metrics(log, "model_graded_qa")
    assert told["estimate"] == pytest.approx(0.5)
    assert told["bias_strict"] == pytest.approx(-0.5)
    assert told["bias_lenient"] == pytest.approx(0.5)
    for sample in log.samples:  # the solver had the role's own model, the scorer its turn's
        assert len(sample.model_usage) == 3
        assert "simulated/judge" in sample.model_usage


def test_a_finished_log_can_be_scored_again_by_the_roles_own_judge(run: Any) -> None:
    mine = budgeted(task(4), budget=8, judges=panel())
    log = run(mine)
    own = get_model("simulated/own", mean=1.0, sd=0.0, memoize=False)
    again = host_score(log, length(), action="append", display="none", model_roles={"grader": own})
    assert again.status == "success"
    assert all("length" in (s.scores or {}) for s in again.samples or [])


def test_failures_change_no_seat(run: Any, diagnostics: Any) -> None:
    calm = seats(run(budgeted(task(), budget=24, judges=panel())))
    for retry_on_error in (0, 1):
        shaky = [get_model(name, mean=5.0, fail=0.15, unparsed=0.1, memoize=False) for name in JUDGES]
        options = {"fail_on_error": False, "retry_on_error": retry_on_error}
        log = run(budgeted(task(), budget=24, judges=shaky), **options)
        assert log.status == "success"
        found = seats(log)
        shared = found.keys() & calm.keys()
        assert len(shared) > 12
        assert all(found[cell] == calm[cell] for cell in shared)
        per_judge = diagnostics(log)["panel"]["per_judge"].values()
        again = sum(len(sample.error_retries or []) for sample in log.samples or [])
        assert sum(entry["failed"] for entry in per_judge) == diagnostics(log)["failed"] - again > 0
        assert all(entry["calls"] > 4 for entry in per_judge)


def test_a_judge_that_is_dropped_keeps_what_it_is_scoring_until_that_is_tried_again() -> None:
    taking_turns = Panel.of(["mockllm/a", "mockllm/b"])
    assert taking_turns is not None
    rotation = Rotation(taking_turns, [f"item-{i}" for i in range(40)])
    first = rotation.judge(0, 0)
    seat = rotation.seat("item-0", 1)
    for i in range(1, 40):
        with rotation.seat(f"item-{i}", 1):
            get_model(role="grader")
        rotation.note(f"item-{i}", 1, scored=rotation.judge(i, 0) != first)
    assert len(rotation.schedule.active) == 1
    assert rotation.seat("item-0", 1).name == seat.name  # of another scorer, on the same attempt
    rotation.attempt_failed("item-0", 1)
    assert rotation.seat("item-0", 1).name != seat.name
