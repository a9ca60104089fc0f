"""Several scores of every answer: one drives the sampler, and each has its estimate."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.host_lm_eval.judged_worlds import evaluate
from tests.host_lm_eval.worlds import write_task

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.repeats import describe_mean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.sampler import Allocation
from evalbudget_lm_eval import budgeted

WHOLE, FIRST = "exact_match,whole", "exact_match,first"
FILTERS = [
    {"name": "whole", "filter": [{"function": "take_first"}]},
    {
        "name": "first",
        "filter": [{"function": "regex", "regex_pattern": "(\\d)"}, {"function": "take_first"}],
    },
]
MODEL = {"model": "evalbudget-test-coin", "apply_chat_template": False}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks", n=14, filter_list=FILTERS)


def test_one_score_decides_and_both_have_estimates_from_the_same_readings(folder: Path) -> None:
    with budgeted(budget="8x", score=FIRST, score_range="0..1", journal="none"):
        found = evaluate(folder, "", "numbers", **MODEL)
    block, rows = found["evalbudget"], found["results"]["numbers"]
    assert (block["score"], block["spent"]) == ({"numbers": FIRST}, 14 * 8)
    for name in ("whole", "first"):
        samples = [sample for sample in found["samples"]["numbers"] if sample["filter"] == name]
        assert len(samples) == 14 * 8
        readings = ItemReadings.of(
            [sample["doc_id"] for sample in samples],
            [sample["epoch"] for sample in samples],
            [sample["exact_match"] for sample in samples],
            n_items=14,
            phase=[sample["phase"] for sample in samples],
        )
        mean = describe_mean(readings, allocation=Allocation.PHASED, fixed_repeats=0, bounds=(0.0, 1.0))
        assert rows[f"exact_match,{name}"] == pytest.approx(mean.rows["estimate"])
        assert rows[f"exact_match_stderr,{name}"] == pytest.approx(mean.rows["stderr"])


@pytest.mark.parametrize("named", [f"{WHOLE},{FIRST}", f"{WHOLE},first", "exact_match,exact_match"])
def test_several_scores_to_drive_are_refused(folder: Path, named: str) -> None:
    refused = pytest.raises(InvalidInputError, match=f"--score {named} names several scores .* that one")
    with refused, budgeted(budget="8x", score=named, journal="none"):
        evaluate(folder, "", "numbers", **MODEL)


def test_an_unknown_filter_is_named(folder: Path) -> None:
    with (
        pytest.raises(UnknownNameError, match=r"frist.*first"),
        budgeted(budget="8x", score="exact_match,frist", journal="none"),
    ):
        evaluate(folder, "", "numbers", **MODEL)
