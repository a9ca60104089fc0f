"""Several scores of every answer: one drives the sampler, and each has its estimate."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from inspect_ai.scorer import Scorer, mean, stderr
from inspect_ai.solver import TaskState
from tests.host_inspect.worlds import entry_of, rows_of, scoring

from evalbudget import Allocation, Budget, Design, Reading
from evalbudget.book import Book
from evalbudget.cells import Planned
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import describe_mean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import Auto
from evalbudget_inspect import budgeted, race


def values(item: str, epoch: int) -> dict[str, float]:
    rng = np.random.default_rng([int(item[-1]), epoch])
    return {
        "depth": float(rng.integers(0, 5)) if item == "item-0" else float(int(item[-1]) % 5),
        "style": float(rng.integers(0, 5)) if item == "item-5" else 2.0,
    }


def rubric(gap: bool = False) -> Scorer:
    def score(state: TaskState) -> dict[str, float]:
        found = values(str(state.sample_id), state.epoch)
        return found | {"style": math.nan} if gap and state.epoch == 2 else found

    return scoring("rubric", score, {"depth": [mean(), stderr()], "style": [mean()]})()


def rows(log: Any, name: str) -> dict[str, float]:
    return {key.removeprefix("eb/"): value for key, value in rows_of(log, name).items()}


def test_one_score_drives_and_each_has_its_estimate(make_task: Any, run: Any) -> None:
    task = make_task(6, scorer=rubric())
    log = run(budgeted(task, budget=90, score="rubric.depth", score_range="0..4"), max_samples=1)
    assert log.status == "success"
    counts = Counter(str(sample.id) for sample in log.samples)

    sampler = Auto(Design(items=tuple(f"item-{i}" for i in range(6))), budget=90)
    depth, style = [], []
    book = Book(sampler, Budget(90))
    first = book.adopt(Planned(np.zeros(6, np.int64), np.arange(6), 0, None), [1.0] * 6, [0] * 6)
    for n in range(90):
        request = first[n] if n < 6 else book.trade((), 1)[0]
        found = values(f"item-{request.cell.item}", request.cell.epoch + 1)
        depth.append(Reading(request, found["depth"]))
        style.append(replace(depth[-1], value=found["style"]))
        book.trade(depth[-1:], 0)
    assert [counts[f"item-{i}"] for i in range(6)] == np.bincount(book.cells().item).tolist()

    for name, bought in {"depth": depth, "style": style}.items():
        readings = ItemReadings.of_bought(bought, 6)
        expected = describe_mean(readings, allocation=Allocation.PHASED, fixed_repeats=2, bounds=None).rows
        for row in ("estimate", "stderr"):
            assert rows(log, name)[row] == pytest.approx(expected[row])


def test_an_answer_that_lacks_another_score_is_a_reading(make_task: Any, run: Any) -> None:
    task = make_task(6, scorer=rubric(gap=True))
    log = run(budgeted(task, budget=60, score="rubric.depth", score_range="0..4"), max_samples=1)
    told = entry_of(log)
    assert (told["readings"], told["failed"]) == (60, 0)
    assert math.isfinite(rows(log, "style")["estimate"])


def test_the_range_is_that_of_the_score_that_decides_alone(make_task: Any, run: Any) -> None:
    def both(state: TaskState) -> dict[str, float]:
        depth = values(str(state.sample_id), state.epoch)["depth"]
        return {"depth": depth, "words": 50.0 + depth}

    wordy = scoring("wordy", both, {"depth": [mean()], "words": [mean()]})
    given = {"budget": 24, "sampler": "uniform", "score_range": "0..4"}
    log = run(budgeted(make_task(6, scorer=wordy()), score="wordy.depth", **given), max_samples=1)
    depth, words = rows(log, "depth"), rows(log, "words")
    assert words["estimate"] == pytest.approx(50.0 + depth["estimate"])
    assert 0.0 <= depth["lower"] <= depth["upper"] <= 4.0
    assert words["lower"] > 40.0


@pytest.mark.parametrize(
    "named",
    ["rubric.depth,rubric.style", ["rubric.depth", "rubric.style"]],
    ids=["as typed", "as inspect splits it"],
)
def test_several_scores_to_drive_are_refused(make_task: Any, named: Any) -> None:
    refused = partial(
        pytest.raises,
        InvalidInputError,
        match=r"'rubric\.depth,rubric\.style' names several .* name that one",
    )
    with refused():
        budgeted(make_task(6, scorer=rubric()), budget=60, score=named)
    with refused():
        race(make_task(6, scorer=rubric()), budget=60, score=named)


def test_a_key_may_have_dots(make_task: Any, run: Any) -> None:
    scorer = scoring(
        "graded", lambda state: {"gpt-4.1": 1.0, "v.mean": float(state.epoch % 2)}, {"*": [mean()]}
    )
    for key, expected in (("gpt-4.1", 1.0), ("v.mean", 0.5)):
        log = run(budgeted(make_task(3, scorer=scorer()), budget="2x", score=f"graded.{key}"))
        assert log.status == "success"
        found = [s for s in log.results.scores if s.name == key and "eb/estimate" in s.metrics]
        assert [s.metrics["eb/estimate"].value for s in found] == [expected]
