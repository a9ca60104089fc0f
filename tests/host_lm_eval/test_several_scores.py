"""Several scores of every answer decide together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def test_both_decide_and_both_have_estimates_from_the_same_readings(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def run(score: str) -> dict[str, Any]:
        with budgeted(budget="8x", score=score, score_range="0..1", journal=path):
            return evaluate(folder, "", "numbers", **MODEL)

    found = run(f"{WHOLE},{FIRST}")
    block, rows = found["evalbudget"], found["results"]["numbers"]
    assert (block["sampler"], block["spent"]) == ("joint", 14 * 8)
    assert (block["score"], block["beside"]) == ({"numbers": WHOLE}, {"numbers": [FIRST]})
    told = [json.loads(line) for line in path.read_text().splitlines() if '"beside"' in line]
    assert sum("tell" in entry for entry in told) == 14 * 8
    for name in ("whole", "first"):
        samples = [sample for sample in found["samples"]["numbers"] if sample["filter"] == name]
        assert len(samples) == 14 * 8
        readings = ItemReadings.of(
            [sample["doc_id"] for sample in samples],
            [sample["epoch"] for sample in samples],
            [sample["exact_match"] for sample in samples],
            n_items=14,
            weight=[float("nan") if sample["weight"] is None else sample["weight"] for sample in samples],
        )
        mean = describe_mean(readings, allocation=Allocation.WEIGHTED, fixed_repeats=0, bounds=(0.0, 1.0))
        assert rows[f"exact_match,{name}"] == pytest.approx(mean.rows["estimate"])
        assert rows[f"exact_match_stderr,{name}"] == pytest.approx(mean.rows["stderr"])
    # the same again is told from the record
    assert run(f"{WHOLE},{FIRST}")["results"]["numbers"] == rows


def test_what_cannot_decide_together_is_refused(folder: Path) -> None:
    def refused(message: str, error: type[Exception] = InvalidInputError, **options: Any) -> None:
        given = {"budget": "8x", "score": f"{WHOLE},{FIRST}", "journal": "none", **options}
        with pytest.raises(error, match=message), budgeted(**given):
            evaluate(folder, "", "numbers", **MODEL)

    refused("say the scale that they share")
    refused("goes by one; use --sampler joint", sampler="eb-bernstein", score_range="0..1")
    refused("frist.*first", UnknownNameError, score=f"{WHOLE},exact_match,frist", score_range="0..1")
    write_task(folder, "others", n=4)
    given = {"budget": "8x", "score": f"{WHOLE},{FIRST}", "journal": "none", "score_range": "0..1"}
    with pytest.raises(UnknownNameError, match="whole"), budgeted(**given):
        evaluate(folder, "", "numbers,others", **MODEL)


def test_an_answer_without_one_of_the_scores_failed(folder: Path) -> None:
    with budgeted(budget="4x", score=f"{WHOLE},{FIRST}", score_range="0.5..1", journal="none"):
        found = evaluate(folder, "", "numbers", samples={"numbers": [0, 10, 11]}, **MODEL)
    block = found["evalbudget"]
    assert block["readings"] + block["failed"] <= 12
    assert block["failed"] > 0
    assert any("outside 0.5..1" in reason for reason in block["failures"])
