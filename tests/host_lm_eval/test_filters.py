"""Filters that return fewer answers than they were given."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_task

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.repeats.forecast import Foreseen

FEWER = """
from lm_eval.api.filter import Filter


class Fewer(Filter):
    def __init__(self, without):
        self.without = without

    def apply(self, resps, docs):
        return [said for said, doc in zip(resps, docs) if {DROPS}]
"""


def _task(folder: Path, drops: str, *, beside: bool = False, without: int = 4) -> Path:
    """Six documents, some answers of which the filter named ``x`` drops."""
    write_task(folder, n=6)
    (folder / "own.py").write_text(FEWER.replace("{DROPS}", drops))
    path = folder / "numbers.yaml"
    take = yaml.safe_dump({"function": "take_first"}).strip()
    lines = [*(["  - name: all", "    filter:", f"      - {take}"] if beside else []), "  - name: x"]
    lines += [
        "    filter:",
        "      - function: !function own.Fewer",
        f"        without: {without}",
        f"      - {take}",
    ]
    path.write_text(path.read_text() + "filter_list:\n" + "".join(f"{line}\n" for line in lines))
    return folder


@pytest.mark.parametrize("beside", [False, True])
def test_a_document_whose_answers_a_filter_drops_has_failed(tmp_path: Path, beside: bool) -> None:
    folder = _task(tmp_path / "tasks", "doc['number'] != self.without", beside=beside)
    with budgeted(budget="2x", sampler="uniform"):
        found = simple_evaluate(folder, CoinModel(noise=False))
    block = found["evalbudget"]
    assert (block["readings"], block["failed"]) == (10, 2)
    (why,) = block["failures"]
    assert "filter 'x' of task 'numbers' returned 0 of 1 answers; a filter must return one for each" in why
    assert block["closed_items"] == ["numbers:4"]
    for record in found["samples"]["numbers"]:
        assert record["filtered_resps"] == record["resps"][0]  # nobody has another's


def test_an_answer_that_a_filter_drops_by_what_it_says_has_failed(tmp_path: Path) -> None:
    folder = _task(tmp_path / "tasks", "said != [str(doc['number'] + 1)]", beside=True)
    with budgeted(budget="8x", sampler="uniform"):
        found = simple_evaluate(folder, CoinModel(seed=1))
    block = found["evalbudget"]
    assert 0 < block["failed"] < block["readings"]
    assert found["results"]["numbers"]["exact_match,x"] == 1.0


def test_a_filter_that_returns_nothing_is_refused_after_one_answer(tmp_path: Path) -> None:
    lm = CoinModel(noise=False)
    with (
        pytest.raises(InvalidInputError, match="filter 'x' of task 'numbers' returned 0 of 1 answers"),
        budgeted(budget="2x", sampler="uniform"),
    ):
        simple_evaluate(_task(tmp_path / "tasks", "False"), lm)
    assert len(lm.calls) == 1


@pytest.mark.parametrize(
    ("steps", "wastes"), [(["take_first"], True), (["majority_vote", "take_first"], False)], ids=str
)
def test_what_several_answers_to_a_reading_cost_is_said(
    tmp_path: Path, steps: list[str], wastes: bool
) -> None:
    filters = [{"name": "x", "filter": [{"function": step} for step in steps]}]
    folder = write_task(tmp_path / "tasks", n=6, repeats=4, filter_list=filters)
    with budgeted(budget=48):
        block = simple_evaluate(folder, CoinModel())["evalbudget"]
    assert (block["spent"], block["readings"]) == (48, 12)
    (said,) = block["summary"]["beside"]
    assert said.startswith("A reading of numbers takes 4 calls, by its repeats: 4")
    assert ("with repeats: 1 the same budget buys 4 times as many readings" in said) == wastes
    with pytest.raises(Foreseen) as known, budgeted(budget=48, dry_run=True):
        simple_evaluate(folder, CoinModel())
    assert said.lower() in f"{known.value.forecast.rows['Beware']}.".lower()
