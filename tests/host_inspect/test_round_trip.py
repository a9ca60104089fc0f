"""A run's own rows come back from its log, by whatever reads it, to the last digits."""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai.model import get_model
from inspect_ai.scorer import mean
from inspect_ai.solver import Generate, Solver, TaskState, chain, solver
from tests.claims import variant
from tests.host_inspect.log_worlds import logged, notes, number, questions, quiz, read
from tests.host_inspect.test_cyclic_judge import graders
from tests.host_inspect.test_cyclic_judge import task as questions_of_judges
from tests.host_inspect.worlds import entry_of, rows_of, scoring

import evalbudget
from evalbudget.cli.main import cli
from evalbudget.report import report
from evalbudget_inspect import budgeted, cyclic_judge
from evalbudget_inspect.demo.story_rating import story_rating
from evalbudget_inspect.repeats import sample_source

PRICES = "simulated/*: {call: 0.001, max_output: 60}\n"
KINDS: dict[str, dict[str, Any]] = {
    "auto": {"budget": 24},
    "adaptive": {"budget": 24, "sampler": "robin", "pilot": 2},
    "uniform": {"budget": "4x", "sampler": "uniform"},
    "judge again": {"budget": 24, "repeat": "judge"},
    "judges": {"budget": 24, "judges": ("x", "y")},
    "judges of one answer": {"budget": 24, "judges": ("x", "y"), "repeat": "judge"},
    "money": {"budget": "$0.03"},
    "a sample of items": {"budget": 4},
    "a declared range": {"budget": 24, "score_range": "1..10"},
}


OF_TWO = ("judge again", "judges of one answer")  # what others show one by one


@pytest.mark.parametrize("kind", [variant(kind) if kind in OF_TWO else kind for kind in KINDS])
def test_a_run_gives_its_own_rows(kind: str, run: Any, tmp_path: Path) -> None:
    options = dict(KINDS[kind])
    if "judges" in options:
        means = {"x": 3.0, "y": 6.0}
        options["judges"] = [get_model(f"simulated/{n}", mean=means[n], memoize=False) for n in ("x", "y")]
    if str(options["budget"]).startswith("$"):
        (tmp_path / "prices.yaml").write_text(PRICES)
        options["prices"] = str(tmp_path / "prices.yaml")
    log = run(budgeted(story_rating(6), **options))
    assert log.status == "success"
    check(rows_of(log, "judge_rating"), tmp_path / "logs")


def check(told: dict[str, float], folder: Path, rater: str | None = None) -> None:
    """Of the run, of the report and of a frame."""
    (row,) = report(read(folder), rater=rater)["leaderboard"].rows
    assert math.isfinite(told["estimate"])
    found = {"estimate": row.estimate, "stderr": row.standard_error, "lower": row.low, "upper": row.high}
    assert found == {name: pytest.approx(told[name], rel=1e-12, abs=1e-12) for name in found}
    rows = evalbudget.read(folder).models().to_dict("records")
    (frame,) = (row for row in rows if rater in (None, row["rater"]))
    assert {name: frame[name] for name in found} == pytest.approx(found, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "fail"),
    [
        variant({"repeat": "judge"}, 0.0),
        ({"repeat": "judge"}, 0.3),
        variant({"sampler": "uniform"}, 0.3),
        ({"score_range": "1..6"}, 0.0),
    ],
    ids=["one answer", "one answer, failures", "as often each, failures", "scores outside the range"],
)
def test_judges_in_turn_give_their_own_rows(
    options: dict[str, Any], fail: float, run: Any, tmp_path: Path
) -> None:
    means = {"x": 3.0, "y": 6.0}
    judges = [get_model(f"simulated/{n}", mean=means[n], fail=fail, memoize=False) for n in means]
    task = budgeted(story_rating(6), budget=36, judges=judges, **options)
    log = run(task, fail_on_error=False)
    told = rows_of(log, "judge_rating")
    if (worst := entry_of(log, "summary")["summary"]["at_worst"]) is not None:
        told |= zip(("lower", "upper"), worst, strict=True)
    (found,) = evalbudget.read(tmp_path / "logs").models().to_dict("records")
    names = ("estimate", "stderr", "lower", "upper", "repeats_stderr", "repeats_lower", "repeats_upper")
    assert [found[name] for name in names] == pytest.approx([told[name] for name in names], abs=1e-12)


@pytest.mark.parametrize(
    "options", [{}, variant({"sampler": "uniform"}), variant({"repeat": "judge", "sampler": "uniform"})]
)
def test_items_that_no_judge_scored_are_in_what_holds_at_worst(
    options: dict[str, Any], run: Any, tmp_path: Path
) -> None:
    @solver
    def failing() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if str(state.sample_id).endswith(("3", "7")):
                raise RuntimeError("the server went away")
            return state

        return solve

    task = story_rating(7)
    task.solver = chain(task.solver, failing())
    judges = [get_model(f"simulated/{n}", mean=m, memoize=False) for n, m in (("x", 3.0), ("y", 6.0))]
    log = run(budgeted(task, budget=42, judges=judges, **options), fail_on_error=False)
    told, worst = rows_of(log, "judge_rating"), entry_of(log, "summary")["summary"]["at_worst"]
    assert worst[0] < told["lower"]
    check({**told, "lower": worst[0], "upper": worst[1]}, tmp_path / "logs")


def test_plain_epochs_of_judges_in_turn_say_what_holds_whatever_failed_calls_would_have_scored(
    run: Any, tmp_path: Path
) -> None:
    ill = {name: {"fail": 0.3} for name in ("strict", "fair", "kind")}
    log = run(questions_of_judges(cyclic_judge(graders(**ill)), items=12), epochs=3, fail_on_error=False)
    assert log.results is not None
    (score,) = log.results.scores
    told = (score.metadata or {})["evalbudget"]["panel"]
    assert "calls have no score; the 95% interval" in told["missing"]
    rows = {name: metric.value for name, metric in score.metrics.items()}
    assert told["at_worst"][0] < rows["lower"]
    check({**rows, "lower": told["at_worst"][0], "upper": told["at_worst"][1]}, tmp_path / "logs")


@pytest.mark.parametrize(
    ("options", "at", "twice"),
    [
        ({}, 5, False),
        variant({"cluster": "kind"}, 5, False),
        ({"judges": ("x", "y"), "sampler": "uniform"}, 9, True),
    ],
    ids=["auto", "clusters", "judges, at once"],
)
def test_a_run_that_was_interrupted_gives_its_own_rows(
    options: dict[str, Any], at: int, twice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first signal what is under way is waited for; at the second it is given up, and is spent."""
    asked, told = count(1), list[Callable[[], Any]]()
    monkeypatch.setattr(sample_source, "note", lambda _task, summary: told.append(summary))

    @solver
    def interrupted() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if next(asked) == at:
                for _ in range(1 + twice):
                    os.kill(os.getpid(), signal.SIGINT)
                await anyio.sleep(0)
            return state

        return solve

    if "judges" in options:
        judges = [get_model(f"simulated/{n}", mean=m, memoize=False) for n, m in (("x", 3.0), ("y", 6.0))]
        options = {**options, "judges": judges}
    task = story_rating(10)
    for place, sample in enumerate(task.dataset):
        sample.metadata = {"kind": "abcd"[place % 4]}
    task.solver = chain(task.solver, interrupted())
    models = {"model": get_model("simulated/writer"), "model_roles": {"grader": get_model("simulated/judge")}}
    with suppress(KeyboardInterrupt, ValueError):  # the host hands no log back
        logged(budgeted(task, budget=60, **options), tmp_path, max_samples=4, log_realtime=False, **models)
    (summary,) = (each() for each in told)
    assert summary.stop_reason.startswith("interrupted")
    assert summary.without_score > 0
    worst = dict(zip(("lower", "upper"), summary.at_worst, strict=True))
    check({**summary.rows, **worst}, tmp_path)
    (spent,) = report(read(tmp_path))["spent"].models
    assert (spent.counted, spent.failed) == (summary.readings, summary.spent - summary.readings)
    assert f"{summary.without_score} of its 10 items have no answer: missing." in notes(read(tmp_path))


def varying(state: TaskState) -> float:
    """A score that differs between items and between answers to one."""
    return random.Random(f"{state.sample_id}-{state.epoch}").random() + number(state) % 3


def test_a_sample_by_strata_with_failures_gives_its_own_rows(tmp_path: Path) -> None:
    """An item without a score is of the stratum that its field says, or of one of which nothing is known."""

    def fails(state: TaskState) -> float:
        if number(state) % 5 == 0:
            raise RuntimeError("the server went away")
        return varying(state)

    dataset = questions(range(30))
    for sample in dataset:
        sample.metadata = {"kind": "xyz"[int(str(sample.id)) % 3]}
    made = quiz(30, bool, dataset=dataset, scorer=scoring("s", fails)())
    log = logged(budgeted(made, budget=16, strata="kind"), tmp_path, fail_on_error=False)
    assert entry_of(log)["failed"] > 0
    worst = entry_of(log, "summary")["summary"]["at_worst"]
    check({**rows_of(log, "s"), "lower": worst[0], "upper": worst[1]}, tmp_path)


def test_a_sample_by_strata_gives_its_own_rows(tmp_path: Path) -> None:
    """Sampled items are told from all of a benchmark's by what each says of its stratum."""
    dataset = questions(range(30))
    for sample in dataset:
        sample.metadata = {"kind": "xyz"[int(str(sample.id)) % 3]}
    made = quiz(30, bool, dataset=dataset, scorer=scoring("s", varying)())
    log = logged(budgeted(made, budget=12, strata="kind"), tmp_path)
    check(rows_of(log, "s"), tmp_path)
    strata = read(tmp_path).strata
    assert strata is not None
    assert strata.sizes.tolist() == [10, 10, 10]


@pytest.mark.parametrize("options", [{}, variant({"sampler": "uniform"})], ids=["auto", "uniform"])
def test_a_run_with_failures_gives_its_own_rows(options: dict[str, Any], tmp_path: Path) -> None:
    def fails(state: TaskState) -> float:
        if random.Random(f"{state.sample_id}-{state.epoch}").random() < 0.15:
            raise RuntimeError("the server went away")
        return varying(state)

    made = budgeted(quiz(12, bool, scorer=scoring("s", fails)()), budget=70, **options)
    log = logged(made, tmp_path, fail_on_error=False)
    check(rows_of(log, "s"), tmp_path)
    assert entry_of(log)["failed"] > 0
    found = read(tmp_path)
    assert not found.failed.any()  # all were asked again
    assert f"{entry_of(log)['failed']} of 70 answers of mockllm/model failed and were asked" in notes(found)
    lowest = float(np.nanmin(found.scores))
    means, worst = [], []
    for item in found.items:
        own = [sample for sample in log.samples if str(sample.id) == item]
        scores = [sample.scores["s"].as_float() for sample in own if sample.error is None]
        means.append(np.mean(scores))
        worst.append(np.mean([*scores, *[lowest] * (len(own) - len(scores))]))
    told = f"{np.mean(worst):.3g} in place of {np.mean(means):.3g}, were each of them worth {lowest:g}."
    assert told in notes(found)
    paths = [log.location, str(shutil.copy(log.location, tmp_path / "b.eval"))]
    gated = [
        "gate",
        "--baseline",
        paths[0],
        "--candidate",
        paths[1],
        "--margin",
        "1",
        "--score-range",
        "-9..9",
    ]
    for command in (["compare", *paths], gated):
        said = CliRunner().invoke(cli, command).output
        assert told in " ".join(said.split()), said


@pytest.mark.parametrize("options", [{}, variant({"sampler": "uniform"})], ids=["auto", "uniform"])
def test_items_without_a_score_are_in_no_row_and_in_what_holds_at_worst(
    options: dict[str, Any], tmp_path: Path
) -> None:
    def fails(state: TaskState) -> float:
        if number(state) in (3, 7):
            raise RuntimeError("the server went away")
        return varying(state)

    made = budgeted(quiz(12, bool, scorer=scoring("s", fails)()), budget=70, **options)
    log = logged(made, tmp_path, fail_on_error=False)
    told, worst = rows_of(log, "s"), entry_of(log, "summary")["summary"]["at_worst"]
    assert worst[0] < told["lower"]
    assert worst[1] > told["upper"]
    check({**told, "lower": worst[0], "upper": worst[1]}, tmp_path)


def test_an_entry_of_a_dict_gives_its_own_rows(tmp_path: Path) -> None:
    def both(state: TaskState) -> dict[str, float]:
        return {"x": varying(state), "y": 1.0 - varying(state)}

    scorer = scoring("both", both, {"x": [mean()], "y": [mean()]})
    log = logged(budgeted(quiz(12, bool, scorer=scorer()), budget=60, score="both.x"), tmp_path)
    told = {name.removeprefix("eb/"): value for name, value in rows_of(log, "x").items()}
    check(told, tmp_path, rater="both.x")


def test_scores_that_are_all_1_have_no_interval_where_the_range_is_unknown(tmp_path: Path) -> None:
    log = logged(budgeted(quiz(12, bool, scorer=scoring("s", lambda _: 1.0)()), budget=60), tmp_path)
    assert "lower" not in rows_of(log, "s")
    (row,) = report(read(tmp_path))["leaderboard"].rows
    (frame,) = evalbudget.read(tmp_path).models().to_dict("records")
    assert all(map(math.isnan, (row.low, row.high, frame["lower"], frame["upper"])))
