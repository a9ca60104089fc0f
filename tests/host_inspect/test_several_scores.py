"""Several scores named by --score: they drive the sampler together, and each has its estimate."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai.scorer import Scorer, mean, stderr
from inspect_ai.solver import TaskState
from tests.host_inspect.worlds import entry_of, retried, rows_of, scoring

from evalbudget import Allocation, Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import Repeat
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items
from evalbudget.repeats.samplers import Joint
from evalbudget_inspect import budgeted
from evalbudget_inspect.reading.open_logs import open_scores
from evalbudget_inspect.repeats.identical_repeats import repeats_were_identical

BOTH = "rubric.depth,rubric.style"
LAST = "item-5"


def values(item: str, epoch: int) -> dict[str, float]:
    rng = np.random.default_rng([int(item[-1]), epoch])
    return {
        "depth": float(rng.integers(0, 5)) if item == "item-0" else float(int(item[-1]) % 5),
        "style": float(rng.integers(0, 5)) if item == LAST else 2.0,
    }


def rubric(gap: bool = False) -> Scorer:
    def score(state: TaskState) -> dict[str, float]:
        found = values(str(state.sample_id), state.epoch)
        return found | {"style": math.nan} if gap and state.epoch == 2 else found

    return scoring("rubric", score, {"depth": [mean(), stderr()], "style": [mean()]})()


def rows(log: Any, name: str) -> dict[str, float]:
    return {key.removeprefix("eb/"): value for key, value in rows_of(log, name).items()}


@pytest.mark.parametrize("named", [BOTH, BOTH.split(",")], ids=["as typed", "as inspect splits it"])
def test_items_are_asked_for_either_score_and_each_has_its_estimate(
    make_task: Any, run: Any, named: Any
) -> None:
    log = run(
        budgeted(make_task(6, scorer=rubric()), budget=90, score=named, score_range="0..4"), max_samples=1
    )
    assert log.status == "success"
    counts = Counter(str(sample.id) for sample in log.samples)
    assert sum(counts.values()) == 90

    sampler = Joint(Design(items=tuple(f"item-{i}" for i in range(6))), ranges=(4.0, 4.0), budget=90)
    bought = []
    for n in range(90):
        request = sampler.adopt(Cell(item=n)) if n < 6 else sampler.ask()[0]
        found = values(f"item-{request.cell.item}", request.cell.epoch + 1)
        bought.append(Reading(request, found["depth"], beside=(found["style"],)))
        sampler.tell(bought[-1:])
    assert [counts[f"item-{i}"] for i in range(6)] == list(sampler.counts())
    assert min(counts["item-0"], counts[LAST]) > 15

    for d, name in enumerate(("depth", "style")):
        readings = ItemReadings.of_bought(bought, 6, score=d)
        expected = mean_over_fixed_items(readings, allocation=Allocation.WEIGHTED, fixed_repeats=3).value
        assert rows(log, name)["estimate"] == pytest.approx(expected)


def test_a_reading_that_lacks_one_of_the_scores_failed(make_task: Any, run: Any) -> None:
    log = run(
        budgeted(make_task(6, scorer=rubric(gap=True)), budget=60, score=BOTH, score_range="0..4"),
        max_samples=1,
    )
    assert log.status == "success"
    ours = entry_of(log, "summary")
    text = " ".join(ours["summary"]["text"].split())
    assert re.search(r"Failed 6\b|6 of 60 .*failed|6 failed", text), text
    # the host's rows rest on the same readings, those of the other score too
    depth, told = rows(log, "depth"), ours["summary"]["rows"]
    assert depth["estimate"] == pytest.approx(told["estimate"])
    assert depth["stderr"] == pytest.approx(told["stderr"])
    recorded = open_scores(Path(log.location))
    assert recorded is not None
    assert np.count_nonzero(~np.isnan(recorded.scores)) == 2 * 54


def test_the_range_is_that_of_the_scores_that_decide_alone(make_task: Any, run: Any) -> None:
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
    ("arguments", "why"),
    [
        (
            {"sampler": "eb-bernstein", "score_range": "0..4"},
            "names 2 scores, and sampler 'eb-bernstein' goes by",
        ),
        ({}, "say the scale that they share"),
        ({"score_range": "0..4", "judges": "a,b"}, "where judges take turns one score decides"),
    ],
)
def test_what_does_not_go_with_several_scores(make_task: Any, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        budgeted(make_task(6, scorer=rubric()), budget=60, score=BOTH, **arguments)


def test_every_score_named_is_looked_for(make_task: Any) -> None:
    with pytest.raises(InvalidInputError, match="'depht' is none of them"):
        budgeted(
            make_task(6, scorer=rubric()), budget=60, score="rubric.style,rubric.depht", score_range="0..4"
        )


def test_repeats_are_identical_only_if_all_their_scores_are() -> None:
    def told(spread: float) -> str | None:
        requests = [Request(n, Cell(item=n % 6, epoch=n // 6)) for n in range(12)]
        readings = [Reading(r, float(r.cell.item), beside=(spread * r.cell.epoch,)) for r in requests]
        return repeats_were_identical(readings, Repeat.GENERATION)

    assert "gave the same score" in (told(0.0) or "")
    assert told(1.0) is None


def test_a_retry_goes_on_with_all_scores(task_file: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(task_file.parent)
    task_file.write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import Sample\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_several_scores import BOTH, budgeted, rubric\n"
        "@task\ndef rated():\n"
        "    samples = [Sample(id=f'item-{i}', input='x') for i in range(6)]\n"
        "    task = Task(dataset=samples, scorer=rubric())\n"
        "    return budgeted(task, budget=90, score=BOTH, score_range='0..4')\n"
    )
    failed = run(task_file.name, writer={"fail": 0.1}, fail_on_error=3, max_samples=1)
    assert failed.status == "error"
    again = retried(failed)
    counts = Counter(str(sample.id) for sample in again.samples or [] if sample.scores)
    assert counts["item-0"] > counts["item-3"]
    assert counts[LAST] > counts["item-3"]
    ours = entry_of(again)
    assert ours["beside"] == ["rubric.style"]
    assert (ours["score"], ours["spent"], ours["sampler"]) == ("rubric.depth", 90.0, "joint")
    assert ours["readings"] == sum(counts.values())
