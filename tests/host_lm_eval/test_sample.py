"""A budget below an answer to every document: a random sample of them, once each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.claims import variant
from tests.host_lm_eval.worlds import CoinModel, broken_off, simple_evaluate, write_group, write_task

from evalbudget.errors import BudgetError, EvalbudgetError
from evalbudget.repeats.estimates import ItemReadings, Strata, mean_of_full_run
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.repeats.forecast import Foreseen

N = 60
GREEDY = {"generation_kwargs": {"until": ["\n"], "do_sample": False, "temperature": 0.0}}


def _with_kinds(folder: Path, name: str, n: int, **changes: Any) -> Path:
    path = write_task(folder, name, n, **changes)
    docs = ({"number": i, "text": f"{i}", "kind": "easy" if i % 3 else "hard"} for i in range(n))
    (folder.resolve() / f"{name}.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = _with_kinds(tmp_path_factory.mktemp("tasks"), "numbers", N)
    _with_kinds(path, "others", 30)
    _with_kinds(path, "greedy", N, **GREEDY)
    write_group(path, "both", ["numbers", "others"])
    return path


def right(number: int) -> float:
    """What ``CoinModel(noise=False)`` scores."""
    return float(number % 3 != 0)


def asked(results: dict[str, Any], task: str = "numbers") -> list[int]:
    return sorted(record["doc_id"] for record in results["samples"][task])


@pytest.mark.parametrize("task", ["numbers", "greedy"])
def test_a_budget_below_the_documents_reads_a_sample_in_proportion(folder: Path, task: str) -> None:
    lm = CoinModel(noise=False)
    with budgeted(budget=24, strata="kind"):
        results = simple_evaluate(folder, lm, task)
    assert len(lm.calls) == 24
    docs = asked(results, task)
    assert len(set(docs)) == 24
    assert sum(doc % 3 == 0 for doc in docs) == 8
    block = results["evalbudget"]
    assert (block["sampler"], block["strata"], block["spent"]) == ("sample", "kind", 24)
    text = " ".join(block["summary"]["text"].split())
    assert "24 of 60 items, once each in proportion to kind: a further item tells more than a second" in text
    rows = results["results"][task]
    assert rows["exact_match,none"] == pytest.approx(2 / 3)  # each kind is known for certain


def test_the_rows_are_those_of_the_core(folder: Path) -> None:
    with budgeted(budget=24, score_range="0..1"):
        results = simple_evaluate(folder, CoinModel(noise=False))
    docs = asked(results)
    table = ItemReadings.of(docs, [0] * 24, [right(doc) for doc in docs], n_items=N)
    full = mean_of_full_run(table, Strata.of(None, N), bounds=(0.0, 1.0)).confidence_interval()
    rows = results["results"]["numbers"]
    assert (rows["exact_match_full_lower,none"], rows["exact_match_full_upper,none"]) == pytest.approx(
        (full.low, full.high), abs=1e-12
    )
    assert rows["exact_match_lower,none"] < full.low < 2 / 3 < full.high < rows["exact_match_upper,none"]


def test_tasks_of_a_group_are_read_in_proportion_to_their_sizes(folder: Path) -> None:
    with budgeted(budget=30, strata="kind"):
        results = simple_evaluate(folder, CoinModel(seed=1), "both")
    assert len(asked(results)) == 20
    assert len(asked(results, "others")) == 10
    both = results["evalbudget"]["estimates"]["both"]["exact_match,none"]
    parts = [results["results"][task]["exact_match,none"] for task in ("numbers", "others")]
    assert both["estimate"] == pytest.approx((60 * parts[0] + 30 * parts[1]) / 90)
    assert both["lower"] < both["full_lower"] < both["full_upper"] < both["upper"]
    assert "30 of 90 items" in results["evalbudget"]["summary"]["text"]


def test_between_one_answer_of_each_and_the_default_every_document_is_read(folder: Path) -> None:
    with budgeted(budget=70):
        results = simple_evaluate(folder, CoinModel())
    docs = asked(results)
    assert len(docs) == 70
    assert set(docs) == set(range(N))
    assert "exact_match_full_lower,none" not in results["results"]["numbers"]


@pytest.mark.parametrize("budget", [60, 70, 119])
def test_where_repeats_would_be_the_same_no_document_is_read_twice(folder: Path, budget: int) -> None:
    with budgeted(budget=budget):
        results = simple_evaluate(folder, CoinModel(noise=False), "greedy")
    assert asked(results, "greedy") == list(range(N))
    block = results["evalbudget"]
    assert (block["spent"], block["sampler"]) == (60, "sample")
    if budget > 60:
        assert "every item that can be scored was read once" in block["summary"]["text"]
    with pytest.raises(Foreseen) as foreseen, budgeted(budget=budget, dry_run=True):
        simple_evaluate(folder, CoinModel(), "greedy")
    assert foreseen.value.forecast.most == 60
    with pytest.raises(EvalbudgetError, match="greedily"), budgeted(budget=budget + 1, sampler="sample"):
        simple_evaluate(folder, CoinModel(), "greedy")
    with pytest.raises(EvalbudgetError, match="greedily"), budgeted(budget=120):
        simple_evaluate(folder, CoinModel(), "greedy")


@pytest.mark.parametrize("budget", [90, variant(400)])
def test_once_all_that_can_be_scored_was_read_no_larger_run_is_spoken_of(folder: Path, budget: int) -> None:
    # every third document scores 0, and is given up only when it fails more than the others do
    with budgeted(budget=budget, score_range="1..2"):
        results = simple_evaluate(folder, CoinModel(noise=False), rounds=1)
    assert ("exact_match_full_lower,none" in results["results"]["numbers"]) == (budget == 90)
    text = " ".join(results["evalbudget"]["summary"]["text"].split())
    assert ("would have averaged" in text) == ("would halve that interval" in text) == (budget == 90)
    if budget > 90:
        assert "20 items of 60 without a score" in text


def test_a_run_that_was_cut_off_goes_on_with_the_same_sample(folder: Path, tmp_path: Path) -> None:
    with budgeted(budget=24, strata="kind", seed=3, journal="none"):
        whole = asked(simple_evaluate(folder, CoinModel(noise=False)))
    options = {"budget": 25, "strata": "kind", "seed": 3, "journal": str(tmp_path / "j")}
    with pytest.raises(KeyboardInterrupt), broken_off(CoinModel, "_answer", 12), budgeted(**options):
        simple_evaluate(folder, CoinModel(noise=False), rounds=5)
    lm = CoinModel(noise=False)
    with budgeted(**options):
        results = simple_evaluate(folder, lm, rounds=5)
    assert set(whole) <= set(asked(results))
    assert results["evalbudget"]["spent"] <= 25
    other = {**options, "strata": None}
    with pytest.raises(EvalbudgetError, match="strata"), budgeted(**other):
        simple_evaluate(folder, CoinModel())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 20, "strata": "subject"}, "no item has a field 'subject': they have kind, number"),
        ({"budget": 20, "strata": "number"}, "each of the 60 items has a value of its own"),
        ({"budget": 2000, "strata": "kind", "sampler": "uniform"}, "--sampler sample, or drop --strata"),
        ({"budget": 24, "sampler": "auto"}, "--sampler sample, or no --sampler at all"),
        ({"budget": 24, "objective": "mean"}, "--sampler sample"),
    ],
)
def test_bad_input_names_the_remedy(folder: Path, options: dict[str, Any], said: str) -> None:
    lm = CoinModel()
    with pytest.raises((BudgetError, EvalbudgetError), match=said), budgeted(**options):
        simple_evaluate(folder, lm)
    assert lm.calls == []


def test_a_budget_of_one_reads_one_document(folder: Path) -> None:
    with budgeted(budget=1, strata="kind"):
        results = simple_evaluate(folder, CoinModel())
    assert len(asked(results)) == 1
    assert "exact_match_lower,none" not in results["results"]["numbers"]
