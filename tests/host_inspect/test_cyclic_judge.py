"""Scorers that have judges take turns by themselves: in plain runs, on finished logs, under a budget."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import score as host_score
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import Model, get_model
from inspect_ai.scorer import Scorer, mean, model_graded_qa
from inspect_ai.solver import generate
from tests.claims import variant
from tests.host_inspect.worlds import retried, scoring

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges.estimates import JudgeScores, judge_biases, panel_mean
from evalbudget_inspect import budgeted, cyclic_judge, rotate
from evalbudget_inspect.reading.open_logs import open_scores

CHANCE = {"strict": 0.1, "fair": 0.5, "kind": 0.9}
JUDGES = list(CHANCE)
GRADES = {"bernoulli": True, "template": "GRADE: {grade}"}
SCORE_OPTIONS: dict[str, Any] = {"display": "none"}


def graders(**options: dict[str, Any]) -> list[dict[str, Any]]:
    """Judges that grade C with a stated chance; options by name."""
    return [
        {
            "name": name,
            "model": f"simulated/{name}",
            "model_args": {**GRADES, "mean": chance, **options.get(name, {})},
        }
        for name, chance in CHANCE.items()
    ]


def task(rate: Scorer | list[Scorer], items: int = 24, period: int = 3) -> Task:
    """A dataset whose categories repeat with a period."""
    samples = [
        Sample(
            id=f"q{i:03d}", input=f"Question {i}?", target="yes", metadata={"category": "abcdef"[i % period]}
        )
        for i in range(items)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="questions"), solver=generate(), scorer=rate, name="questions"
    )


def entries(log: EvalLog, name: str = "cyclic_judge") -> dict[tuple[str, int], dict[str, Any]]:
    return {
        (str(s.id), s.epoch): (s.scores or {})[name].metadata["evalbudget"]  # type: ignore[index]
        for s in log.samples or []
        if name in (s.scores or {})
    }


def seats(log: EvalLog, name: str = "cyclic_judge") -> dict[tuple[str, int], str]:
    return {cell: entry["judge"] for cell, entry in entries(log, name).items()}


def assert_balanced(log: EvalLog, name: str = "cyclic_judge") -> None:
    """Within one call per judge, overall and in every category of every epoch."""
    who = seats(log, name)
    category = {str(s.id): s.metadata["category"] for s in log.samples or []}
    groups = {("all", 0): list(who.values())}
    for (item, epoch), judge in who.items():
        groups.setdefault((category[item], epoch), []).append(judge)
    for group in groups.values():
        counts = Counter(dict.fromkeys(JUDGES, 0)) + Counter(group)
        assert max(counts.values()) - min(counts.get(judge, 0) for judge in JUDGES) <= 1


def table(log: EvalLog, name: str = "cyclic_judge") -> JudgeScores:
    who = seats(log, name)
    items = sorted({item for item, _ in who})
    rows = [(items.index(item), epoch - 1, JUDGES.index(judge)) for (item, epoch), judge in who.items()]
    value = [
        {"C": 1.0, "I": 0.0}.get(str(s.scores[name].value), float("nan"))  # type: ignore[index]
        for s in log.samples or []
    ]
    return JudgeScores.of(*zip(*rows, strict=True), value, judges=JUDGES)


def constant(value: float) -> Scorer:
    return scoring("constant", lambda state: value)()


def two_values(value: float) -> Scorer:
    return scoring("two_values", lambda state: {"style": value, "facts": 2 * value}, {"*": [mean()]})()


# a plain run


@pytest.mark.parametrize(("backend", "max_samples"), [variant("asyncio", 1), ("asyncio", None), ("trio", 7)])
def test_a_plain_task_has_the_panels_estimate(
    run: Any, metrics: Any, monkeypatch: pytest.MonkeyPatch, backend: str, max_samples: int | None
) -> None:
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", backend)
    log = run(
        task(cyclic_judge(graders(), prices="strict=1,fair=2,kind=5"), items=12),
        epochs=2,
        max_samples=max_samples,
    )
    assert log.status == "success"
    assert_balanced(log)
    for item in {item for item, _ in seats(log)}:
        assert seats(log)[item, 1] != seats(log)[item, 2]
    for sample in log.samples:
        judge = seats(log)[str(sample.id), sample.epoch]
        assert set(sample.model_usage) == {"simulated/writer", f"simulated/{judge}"}
    told, scores = metrics(log, "cyclic_judge"), table(log)
    theirs = panel_mean(scores)
    interval = theirs.confidence_interval(0.95)
    error = max(theirs.standard_error, told["repeats_stderr"])  # the items hardly differ
    assert (told["estimate"], told["stderr"]) == pytest.approx((theirs.value, error))
    assert told["lower"] == pytest.approx(min(interval.low, told["repeats_lower"]))
    assert told["upper"] == pytest.approx(max(interval.high, told["repeats_upper"]))
    for name, value in zip(JUDGES, judge_biases(scores).value, strict=True):
        assert told[f"bias_{name}"] == pytest.approx(value)
        assert told[f"calls_{name}"] == 8
    assert [told[f"cost_{name}"] for name in JUDGES] == [8, 16, 40]
    assert "variance_judge" in told
    assert "accuracy" not in told


def test_the_seed_and_the_samples_alone_decide(run: Any) -> None:
    one = seats(run(task(cyclic_judge(graders()), items=12), max_samples=1))
    assert seats(run(task(cyclic_judge(graders()), items=12))) == one
    other = seats(run(task(cyclic_judge(graders(), seed=1), items=12)))
    assert other.keys() == one.keys()
    assert other != one


def test_no_category_follows_the_order_of_the_dataset(run: Any) -> None:
    """Categories with the period of the panel would each have one judge, if judges went by position."""
    for seed in range(2):
        log = run(task(cyclic_judge(graders(), seed=seed), items=18))
        assert_balanced(log)


def test_unparsed_replies_are_unscored_and_cost(run: Any, metrics: Any) -> None:
    judges = graders(kind={"unparsed": 0.5}, strict={"mean": 1.0}, fair={"mean": 1.0})
    log = run(task(cyclic_judge(judges, prices="strict=1,fair=1,kind=3"), items=60))
    told = metrics(log, "cyclic_judge")
    unscored = [s for s in log.samples if s.scores["cyclic_judge"].value != s.scores["cyclic_judge"].value]
    assert 4 < len(unscored) < 16
    assert told["readings"] == 60 - len(unscored)
    assert told["calls_kind"] == 20
    assert told["cost_kind"] == 60
    assert told["estimate"] == pytest.approx(panel_mean(table(log)).value)
    assert told["estimate"] > 0.9  # not what zeros would make of it
    panel = panel_in(log)
    assert panel["per_judge"]["kind"]["failed"] == len(unscored)


def panel_in(log: EvalLog, name: str = "cyclic_judge") -> dict[str, Any]:
    assert log.results is not None
    found = next(s for s in log.results.scores if s.name == name)
    assert found.metadata is not None
    return dict(found.metadata["evalbudget"]["panel"])


def test_a_judge_that_always_fails_is_dropped_and_reported(run: Any, metrics: Any) -> None:
    log = run(task(cyclic_judge(graders(kind={"unparsed": 1.0})), items=30), epochs=2, max_samples=2)
    told = metrics(log, "cyclic_judge")
    assert told["judges"] == 2
    assert 8 <= told["calls_kind"] <= 10  # of 20
    assert told["calls_strict"] + told["calls_fair"] + told["calls_kind"] == 60
    # what the dead judge was asked in vain would have been somebody's turn
    assert abs(told["calls_strict"] - told["calls_fair"]) <= told["calls_kind"]
    assert "bias_kind" not in told
    calls = round(told["calls_kind"])
    assert any(f"'kind' failed in all of its {calls} calls" in note for note in panel_in(log)["notes"])
    assert any("'kind' was dropped" in note for note in panel_in(log)["notes"])
    assert "2 of 3 judges" in panel_in(log)["target"]


def test_errors_are_the_hosts_to_bear_and_count_as_calls(run: Any, metrics: Any) -> None:
    ill = graders(kind={"fail": 0.5})
    log = run(task(cyclic_judge(ill)), fail_on_error=False, retry_on_error=1)
    assert log.status == "success"
    calm = seats(run(task(cyclic_judge(graders()))))
    assert seats(log).items() <= calm.items()
    tried = sum(1 + len(s.error_retries or []) for s in log.samples if calm[str(s.id), s.epoch] == "kind")
    assert metrics(log, "cyclic_judge")["calls_kind"] == tried > 8


def test_a_retry_keeps_judges_and_counts(
    task_file: Path, run: Any, metrics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(task_file.parent)
    task_file.write_text(
        "from inspect_ai import task\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_cyclic_judge import graders, task as make, cyclic_judge\n"
        "@task\ndef rating():\n"
        "    return make(cyclic_judge(graders(fair={'unparsed': 0.5})))\n"
    )
    failed = run(task_file.name, writer={"fail": 0.2}, fail_on_error=4, max_samples=1)
    assert failed.status == "error"
    again = retried(failed)
    assert seats(failed).items() <= seats(again).items()
    told = metrics(again, "cyclic_judge")
    assert sum(told[f"calls_{name}"] for name in JUDGES) == len(seats(again))


def test_own_scorers_take_turns(run: Any, metrics: Any) -> None:
    mine = rotate([constant(1.0), constant(5.0), constant(6.0)], names=JUDGES)
    log = run(task(mine))
    assert_balanced(log, "rotate")
    told = metrics(log, "rotate")
    assert told["estimate"] == pytest.approx(4.0)
    assert [told[f"bias_{name}"] for name in JUDGES] == pytest.approx([-3, 1, 2])
    assert set(metrics(run(task(rotate([constant(1.0), constant(2.0)]))), "rotate")) >= {
        "bias_constant",
        "bias_constant1",
    }


def test_values_by_key_have_a_panel_each(run: Any, metrics: Any) -> None:
    log = run(task(rotate({"a": two_values(1.0), "b": two_values(3.0)})))
    assert metrics(log, "style")["estimate"] == pytest.approx(2.0)
    assert metrics(log, "facts")["bias_b"] == pytest.approx(2.0)
    with pytest.raises(InvalidInputError, match="single value"):
        rotate({"a": two_values(1.0), "b": two_values(3.0)}, rotation="all")


def test_all_judges_read_one_generation(run: Any, metrics: Any, calls: Any) -> None:
    log = run(task(cyclic_judge(graders(fair={"unparsed": 0.3}), rotation="all"), items=20), epochs=2)
    assert calls(log, "simulated/writer") == 40
    told = metrics(log, "cyclic_judge")
    assert [told[f"calls_{name}"] for name in JUDGES] == [40, 40, 40]
    rows = []
    for sample in log.samples:
        found = sample.scores["cyclic_judge"]
        read = found.metadata["evalbudget"]["readings"]
        assert list(read) == JUDGES
        known = [value for value in read.values() if value is not None]
        assert found.as_float() == pytest.approx(sum(known) / len(known))
        assert found.metadata["judges"]["strict"]["metadata"]["grading"]
        cell = int(str(sample.id)[1:]), sample.epoch - 1
        rows += [(*cell, j, v) for j, v in enumerate(read.values()) if v is not None]
    item, epoch, judge, value = zip(*rows, strict=True)
    scores = JudgeScores.of(item, epoch, judge, value, judges=JUDGES)
    assert told["readings"] == len(rows) < 120
    assert told["estimate"] == pytest.approx(panel_mean(scores).value)
    assert "variance_item_x_judge" in told or "variance_residual" in told


def test_one_judge_of_all_may_fail(run: Any, metrics: Any) -> None:
    log = run(task(cyclic_judge(graders(kind={"fail": 1.0}), rotation="all"), items=8))
    assert log.status == "success"
    assert metrics(log, "cyclic_judge")["judges"] == 2
    assert panel_in(log)["per_judge"]["kind"] == {"calls": 8, "failed": 8}
    every = graders(**{name: {"fail": 1.0} for name in JUDGES})
    assert run(task(cyclic_judge(every, rotation="all"), items=4)).status == "error"


def test_a_judge_that_judges_itself_is_warned_about_once(run: Any, warnings_of_plugin: list[str]) -> None:
    log = run(task(cyclic_judge(graders())), writer={}, model=get_model("simulated/fair", memoize=False))
    assert sum("may favour itself" in text for text in warnings_of_plugin) == 1
    assert any("judge 'fair' is the model judged" in note for note in panel_in(log)["notes"])
    run(budgeted(task(model_graded_qa()), budget=24, judges=graders()), model="simulated/kind")
    assert sum("may favour itself" in text for text in warnings_of_plugin) == 2


# a finished log


@pytest.fixture
def finished(run: Any) -> EvalLog:
    log: EvalLog = run(task(constant(3.0)), epochs=2)
    return log


@pytest.mark.parametrize("backend", ["asyncio", variant("trio")])
def test_a_finished_log_is_judged_again(
    run: Any, metrics: Any, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", backend)
    finished = run(task(constant(3.0)), epochs=2)
    assert finished.samples  # the host reads them late, and not from within trio
    ours = cyclic_judge(graders(), prices="strict=1,fair=2,kind=5")
    log = host_score(finished, ours, action="append", **SCORE_OPTIONS)
    assert_balanced(log)
    assert seats(log) == seats(run(task(cyclic_judge(graders())), epochs=2))
    told = metrics(log, "cyclic_judge")
    assert told["estimate"] == pytest.approx(panel_mean(table(log)).value)
    assert [told[f"calls_{name}"] for name in JUDGES] == [16, 16, 16]
    again = host_score(finished, ours, action="append", **SCORE_OPTIONS)
    assert metrics(again, "cyclic_judge") == told  # nothing of the first pass is left in the scorer
    twice = host_score(log, ours, action="append", **SCORE_OPTIONS)
    assert metrics(twice, "cyclic_judge1")["calls_fair"] == 16


def test_a_failing_judge_does_not_undo_the_others(
    finished: EvalLog, metrics: Any, warnings_of_plugin: list[str]
) -> None:
    for ill in ({"fail": 1.0}, {"fail": 0.4}):
        log = host_score(finished, cyclic_judge(graders(kind=ill)), action="append", **SCORE_OPTIONS)
        told = metrics(log, "cyclic_judge")
        if ill["fail"] == 1.0:
            assert 8 <= told["calls_kind"] < 16
            assert abs(told["calls_strict"] - told["calls_fair"]) <= told["calls_kind"]
        else:
            assert_balanced(log)
            assert told["calls_kind"] == 16
        failed = panel_in(log)["per_judge"]["kind"]["failed"]
        assert told["readings"] == 48 - failed
        assert told["estimate"] == pytest.approx(panel_mean(table(log)).value)
        assert told["judges"] == (2 if ill["fail"] == 1.0 else 3)
        assert sum("judge 'kind' failed (" in text for text in warnings_of_plugin) == 1
        warnings_of_plugin.clear()


def test_an_uneven_log_is_judged_evenly_per_item(run: Any) -> None:
    log = run(budgeted(task(constant(3.0), items=9), budget=40, sampler="uniform"))
    log = host_score(log, cyclic_judge(graders()), action="append", **SCORE_OPTIONS)
    who = seats(log)
    for item in {item for item, _ in who}:
        counts = Counter(judge for (i, _), judge in who.items() if i == item)
        assert max(counts.values()) - min(counts.get(judge, 0) for judge in JUDGES) <= 1


def test_without_a_list_of_samples_judges_come_in_blocks() -> None:
    from evalbudget_inspect.judges.judge_names import read_judges
    from evalbudget_inspect.judges.panel import Panel
    from evalbudget_inspect.judges.scorer_turns import Cells, Pass

    panel = Panel(tuple(JUDGES), models=read_judges(JUDGES))
    nobody = Pass(panel, 0, Cells([], {}, {}, ""))
    dealt = [nobody.judges(f"q{i}", 1, "ab"[i % 2])[0] for i in range(31)]
    for category in range(2):
        assert set(Counter(dealt[category::2][:15]).values()) == {5}
    assert len({tuple(dealt[i : i + 6 : 2]) for i in range(0, 30, 6)}) > 1  # not one fixed order
    assert nobody.judges("q4", 1, "a")[0] == dealt[4]


# under a budget


def test_a_budget_deals_the_judges_of_a_scorer(run: Any, metrics: Any, diagnostics: Any, calls: Any) -> None:
    ours = cyclic_judge(graders(), prices="strict=1,fair=2,kind=5")
    log = run(budgeted(task(ours, items=12), budget=30))
    assert log.status == "success"
    told, asked = metrics(log, "cyclic_judge"), diagnostics(log, "cyclic_judge")
    assert (asked["sampler"], asked["rotation"], asked["judges"]) == ("uniform", "cyclic", JUDGES)
    assert len(seats(log)) == 30
    assert sum(1 for metric in log.results.scores[0].metrics if metric.startswith("estimate")) == 1
    assert told["estimate"] == pytest.approx(panel_mean(table(log)).value)
    counts = Counter(seats(log).values())
    assert {name: told[f"calls_{name}"] for name in JUDGES} == counts
    assert {name: calls(log, f"simulated/{name}") for name in JUDGES} == counts
    assert asked["panel"]["per_judge"]["kind"]["price"] == 5 * counts["kind"]


def test_all_under_a_budget_costs_a_score_per_judge(run: Any, calls: Any) -> None:
    ours = cyclic_judge(graders(), rotation="all")
    log = run(budgeted(task(ours, items=6), budget="3x", repeat="judge"))
    assert calls(log, "simulated/writer") == 6
    assert len(seats(log)) == 18
    assert set(Counter(seats(log).values()).values()) == {6}
    with pytest.raises(InvalidInputError, match="--repeat judge"):
        budgeted(task(cyclic_judge(graders(), rotation="all")), budget="3x")


def test_a_rotating_scorer_beside_the_one_that_drives(run: Any, metrics: Any) -> None:
    log = run(
        budgeted(task([constant(2.0), cyclic_judge(graders())], items=12), budget=24, sampler="uniform")
    )
    assert "bias_fair" in metrics(log, "cyclic_judge")
    assert sum(metrics(log, "cyclic_judge")[f"calls_{name}"] for name in JUDGES) == 24
    assert metrics(log, "constant")["estimate"] == 2.0
    assert {entry["epoch"] for entry in entries(log).values()} == {1, 2}


@pytest.mark.parametrize("options", [{"judges": "a/x,b/y"}, {"rotation": "random"}, {"judge_role": "critic"}])
def test_judges_do_not_take_turns_twice(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="take turns already"):
        budgeted(task(cyclic_judge(graders())), budget=24, **options)


# what is refused


@pytest.mark.parametrize(
    ("judges", "options", "error", "says"),
    [
        (["simulated/a"], {}, InvalidInputError, "at least 2 judges"),
        ("simulated/a,simulated/a", {}, InvalidInputError, "listed more than once"),
        (["simulated/a", "nowhere/b"], {}, InvalidInputError, "'nowhere/b' cannot be used"),
        ("simulated/a,simulated/b", {"rotation": "cylic"}, UnknownNameError, "cyclic"),
        ("simulated/a,simulated/b", {"grader": "model_graded_q"}, UnknownNameError, "model_graded_qa"),
        ("simulated/a,simulated/b", {"prices": "simulated/a=1"}, InvalidInputError, "no entry for judge"),
        ("simulated/a,simulated/b", {"names": ["x"]}, InvalidInputError, "1 names for 2 judges"),
        ("simulated/a,simulated/b", {"seed": -1}, InvalidInputError, "seed"),
        ([{"model": "simulated/a", "temprature": 1}, "simulated/b"], {}, UnknownNameError, "temperature"),
        ([{"model": "simulated/a", "temperature": "hot"}, "b"], {}, InvalidInputError, "temperature"),
        ([{"name": "a"}, "b"], {}, InvalidInputError, "no model"),
        ("judges-that-are-not.yaml", {}, InvalidInputError, "cannot be read"),
        ("[a, {", {}, InvalidInputError, "YAML"),
        ([constant(1.0), "simulated/a"], {}, InvalidInputError, "models and scorers"),
        ([constant(1.0), constant(2.0)], {"template": "x"}, InvalidInputError, "options of their own"),
        ([constant(1.0), len], {}, InvalidInputError, "@scorer"),
    ],
)
def test_what_is_no_panel_is_refused(
    judges: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        cyclic_judge(judges, **options)


def test_scorers_that_are_no_panel_are_refused() -> None:
    same = constant(1.0)
    with pytest.raises(InvalidInputError, match="listed more than once"):
        rotate([same, same])
    with pytest.raises(InvalidInputError, match="rotates judges itself"):
        rotate([constant(1.0), rotate([constant(1.0), constant(2.0)])])
    with pytest.raises(InvalidInputError, match="cyclic_judge"):
        rotate("a,b")  # type: ignore[arg-type]


def test_the_graders_options_reach_it(run: Any) -> None:
    judges: list[Model] = [
        get_model(f"simulated/{name}", mean=1.0, template="NOTE {value:g}", bernoulli=True, memoize=False)
        for name in ("a", "b")
    ]
    options: dict[str, Any] = {"template": "{answer} ({instructions})", "instructions": "Be brief."}
    log = run(
        task(cyclic_judge(judges, grade_pattern=r"NOTE (\d)", grader="model_graded_fact", **options), items=4)
    )
    for sample in log.samples:
        found = sample.scores["cyclic_judge"]
        assert found.value == "1"
        assert "(Be brief.)" in str(found.metadata["grading"])
    assert set(seats(log).values()) == {"simulated/a", "simulated/b"}


# recorded scores


def test_logs_come_back_with_judges_as_raters(run: Any, finished: EvalLog) -> None:
    ran = run(task(cyclic_judge(graders(kind={"unparsed": 0.2})), items=12), epochs=2)
    scored = host_score(finished, cyclic_judge(graders(), rotation="all"), action="append", **SCORE_OPTIONS)
    path = Path(finished.location).parent.parent / "scored.eval"
    from inspect_ai.log import write_eval_log

    write_eval_log(scored, str(path))
    for file, count in ((Path(ran.location), table(ran).value.size), (path, 144)):
        recorded = open_scores(file)
        assert recorded is not None
        assert sorted(recorded.raters) == sorted(JUDGES)
        assert int(recorded.counts.sum()) == count
        scores = JudgeScores.from_table(recorded.scores[0], judges=recorded.raters)
        log = read_eval_log(str(file))
        assert log.results is not None
        told = next(s.metrics for s in log.results.scores if s.name == "cyclic_judge")
        assert panel_mean(scores).value == pytest.approx(told["estimate"].value)


def test_readings_of_a_large_panel_come_back(run: Any) -> None:
    many = {f"judge-with-a-long-name-{i}": constant(i + 0.123456) for i in range(40)}
    log = run(task(rotate(many, rotation="all"), items=4))
    recorded = open_scores(Path(log.location))
    assert recorded is not None
    assert sorted(recorded.raters) == sorted(many)
    assert int(recorded.counts.sum()) == 160
