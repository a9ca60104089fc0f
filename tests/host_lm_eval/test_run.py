"""Budgeted runs in Python: what is bought, what is told, what is left behind."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import lm_eval.evaluator
import numpy as np
import pytest
from tests.host_lm_eval.worlds import (
    CoinModel,
    bought_in,
    simple_evaluate,
    write_group,
    write_scored,
    write_task,
)

from evalbudget import Allocation
from evalbudget.book import Book
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import mean_over_fixed_items, mean_over_sampled_items
from evalbudget_lm_eval import budgeted, race
from evalbudget_lm_eval.repeats import run as rounds
from evalbudget_lm_eval.repeats.task_estimates import Scored, readings_of

STOCK = lm_eval.evaluator.evaluate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_task(tmp_path_factory.mktemp("tasks"), n=20, num_fewshot=1)
    write_task(path, "others", n=10, task_alias="The others")
    write_group(path, "both", ["numbers", "others"])
    return path


def test_the_budget_is_used_up_exactly_where_scores_vary(folder: Path) -> None:
    lm = CoinModel()
    with budgeted(sampler="eb-bernstein", budget=400, score_range="0..1"):
        results = simple_evaluate(folder, lm)

    assert lm_eval.evaluator.evaluate is STOCK
    assert len(lm.calls) == 400
    block = results["evalbudget"]
    assert (block["spent"], block["readings"], block["failed"]) == (400, 400, 0)
    assert (block["sampler"], block["seed"], block["score"]) == (
        "eb-bernstein",
        0,
        {"numbers": "exact_match,none"},
    )
    assert block["stop_reason"] == "budget used up"
    counts = dict(
        zip(block["tasks"]["numbers"]["doc_id"], block["tasks"]["numbers"]["readings"], strict=True)
    )
    assert sum(counts.values()) == 400
    # documents 0 and 10 are never said wrongly, 9 and 19 every second time
    assert counts[9] + counts[19] > 1.1 * (counts[0] + counts[10])

    samples = results["samples"]["numbers"]
    assert Counter(record["doc_id"] for record in samples) == counts
    assert all(record["doc"]["number"] == record["doc_id"] for record in samples)
    prompts = {record["doc_id"]: record["arguments"][0][0] for record in samples}
    assert Counter(lm.calls) == Counter(prompts[doc] for doc in counts for _ in range(counts[doc]))

    journal = bought_in(block["journal"])
    assert journal.spent == 400
    json.dumps(results, default=str)


def test_what_came_back_is_told_in_the_turn_that_asks_for_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untold, trade = list[int](), Book.trade

    def traded(book: Book, *given: Any) -> Any:
        untold.append(len(book.untold))
        return trade(book, *given)

    monkeypatch.setattr(Book, "trade", traded)
    monkeypatch.setattr(rounds, "ROUND", 5)
    monkeypatch.setattr(rounds, "LARGER", 1)
    with budgeted(sampler="uniform", budget=20, journal="none"):
        results = simple_evaluate(folder, CoinModel())
    assert untold == [0, 5, 5, 5, 5]
    assert results["evalbudget"]["readings"] == 20


def test_the_rows_are_the_estimators_on_the_samples(folder: Path) -> None:
    with budgeted(sampler="eb-bernstein", budget="8x", objective="mean", journal="none"):
        results = simple_evaluate(folder, CoinModel())
    row = results["results"]["numbers"]
    scored = [(r["doc_id"], r["epoch"], float(r["exact_match"])) for r in results["samples"]["numbers"]]
    phases = [record["phase"] for record in results["samples"]["numbers"]]
    readings = readings_of(
        [Scored(*one, phase) for one, phase in zip(scored, phases, strict=True)], range(20), ()
    )
    assert Counter(phases) == {0: 40, 1: 40, 2: 80}
    how: dict[str, Any] = {"allocation": Allocation.PHASED, "bounds": (0.0, 1.0)}
    fixed, sampled = mean_over_fixed_items(readings, **how), mean_over_sampled_items(readings, **how)
    assert row["exact_match,none"] == row["exact_match_repeats,none"] == fixed.value
    assert sampled.standard_error > fixed.standard_error
    assert row["exact_match_stderr,none"] == sampled.standard_error
    assert row["exact_match_repeats_stderr,none"] == fixed.standard_error
    wide, narrow = sampled.confidence_interval(0.95), fixed.confidence_interval(0.95)
    assert (row["exact_match_lower,none"], row["exact_match_upper,none"]) == (wide.low, wide.high)
    assert row["exact_match_repeats_lower,none"] == narrow.low
    assert row["exact_match_repeats_upper,none"] == narrow.high
    # what the host had: one number per document
    plain = row["exact_match_plain_mean,none"]
    assert plain == pytest.approx(np.mean(readings.moments.mean), abs=1e-12)
    assert plain != row["exact_match,none"]
    # they come first in the files, the estimate before the rest
    assert [name for name in row if "," in name] == [
        f"exact_match{ending},none"
        for ending in (
            "",
            "_stderr",
            "_lower",
            "_upper",
            "_repeats",
            "_repeats_stderr",
            "_repeats_lower",
            "_repeats_upper",
            "_plain_mean",
        )
    ]
    assert results["evalbudget"]["journal"] is None
    assert not Path("evalbudget-journals").exists()


def test_every_document_once_is_the_stock_run_and_our_rows(folder: Path) -> None:
    stock = simple_evaluate(folder, CoinModel(noise=False), log_samples=False)
    with budgeted(sampler="uniform", budget="1x"):
        ours = simple_evaluate(folder, CoinModel(noise=False), log_samples=False)
    assert "samples" not in ours
    row = ours["results"]["numbers"]
    plain = stock["results"]["numbers"]
    assert row["exact_match,none"] == pytest.approx(plain["exact_match,none"], abs=1e-12)
    assert "exact_match_repeats,none" not in row  # nothing was repeated
    assert "exact_match_plain_mean,none" not in row  # it is the estimate
    assert row.pop("exact_match_lower,none") < row["exact_match,none"] < row.pop("exact_match_upper,none")
    assert row["exact_match_stderr,none"] == pytest.approx(
        math.sqrt(row["exact_match,none"] * (1 - row["exact_match,none"]) / 19)
    )
    row["exact_match,none"], row["exact_match_stderr,none"] = plain["exact_match,none"], "N/A"
    ours.pop("evalbudget")
    del ours["date"], stock["date"]
    assert ours == stock


def test_groups_share_a_budget_and_are_made_of_their_tasks_estimates(folder: Path) -> None:
    lm = CoinModel()
    with budgeted(sampler="uniform", budget=90):
        results = simple_evaluate(folder, lm, "both")
    assert len(lm.calls) == 90
    assert results["n-samples"] == {
        "numbers": {"original": 20, "effective": 20},
        "others": {"original": 10, "effective": 10},
    }
    table = results["results"]
    assert table["others"]["alias"] == "The others"
    group = results["groups"]["both"]
    pooled = (20 * table["numbers"]["exact_match,none"] + 10 * table["others"]["exact_match,none"]) / 30
    assert group["exact_match,none"] == table["both"]["exact_match,none"] == pytest.approx(pooled)
    for error in ("exact_match_stderr,none", "exact_match_repeats_stderr,none"):
        parts = (20 / 30 * table["numbers"][error], 10 / 30 * table["others"][error])
        assert group[error] == pytest.approx(math.hypot(*parts))
    assert set(results["evalbudget"]["tasks"]) == {"numbers", "others"}
    assert set(results["evalbudget"]["estimates"]) == {"both", "numbers", "others"}
    assert "exact_match_lower,none" in table["others"]
    assert [part["name"] for part in results["evalbudget"]["summary"]["parts"]] == [
        "both",
        "numbers",
        "others",
    ]


def test_the_same_seed_buys_the_same(folder: Path) -> None:
    bought = []
    for seed in (1, 1, 2):
        with budgeted(sampler="eb-bernstein", budget=100, seed=seed, journal="none"):
            results = simple_evaluate(folder, CoinModel(), limit=8)
        bought.append(results["evalbudget"]["tasks"]["numbers"]["readings"])
    assert bought[0] == bought[1]
    assert bought[0] != bought[2]
    assert sum(bought[2]) == 100


def test_documents_that_take_several_calls_cost_them(folder: Path, tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "costly", "costly", n=5, repeats=3)
    lm = CoinModel()
    with budgeted(sampler="uniform", budget=40):
        results = simple_evaluate(tasks, lm, "costly")
    # 5 documents at 3 calls: 13 answers cost 39, and a 14th does not fit
    assert len(lm.calls) == 39
    assert results["evalbudget"]["spent"] == 39
    assert results["evalbudget"]["readings"] == 13
    assert results["evalbudget"]["summary"]["plain"] is None  # told in answers, a third of the calls
    lm = CoinModel()
    with budgeted(sampler="uniform", budget="4x", journal="again.db"):
        assert simple_evaluate(tasks, lm, "costly")["evalbudget"]["readings"] == 20
    assert len(lm.calls) == 60


def test_a_score_outside_of_the_range_has_failed(folder: Path) -> None:
    with budgeted(sampler="uniform", budget=48, score_range="0..0.5"):
        results = simple_evaluate(folder, CoinModel(noise=False), limit=6, rounds=1)
    block = results["evalbudget"]
    # all but the multiples of 3 are said rightly, score 1, and close when they fail more than the others
    assert block["closed_items"] == ["numbers:1", "numbers:2", "numbers:4", "numbers:5"]
    assert block["failures"] == {"score 1 is outside 0..0.5": 29}
    assert block["tasks"]["numbers"]["doc_id"] == [0, 3]
    assert block["spent"] == 48


def test_how_often_each_document_failed_is_kept(folder: Path) -> None:
    with budgeted(sampler="uniform", budget=24, score_range="0.5..1"):
        block = simple_evaluate(folder, CoinModel(seed=1), limit=6, rounds=6)["evalbudget"]
    own = block["tasks"]["numbers"]
    assert own["failed"] == [0, 0, 1, 1, 1, 2]  # wrong answers, asked again until they are right
    assert block["failed"] == 5 == 24 - sum(own["readings"])


def test_one_run_at_a_time(folder: Path) -> None:
    with (
        budgeted(budget=100),
        pytest.raises(InvalidInputError, match="within another one"),
        budgeted(budget=100),
    ):
        pass
    assert lm_eval.evaluator.evaluate is STOCK


BLOCK = {"class": "evalbudget_lm_eval.BudgetedTask", "evalbudget": {"sampler": "uniform", "budget": "3x"}}


def test_a_task_brings_its_budget_along(tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "own", n=6, **BLOCK)
    lm = CoinModel()
    results = simple_evaluate(tasks, lm)
    assert len(lm.calls) == 18
    assert results["evalbudget"]["sampler"] == "uniform"
    assert lm_eval.evaluator.evaluate is STOCK
    lm = CoinModel()
    with budgeted(sampler="eb-bernstein", budget=30):  # comes before the block
        assert simple_evaluate(tasks, lm)["evalbudget"]["budget"] == 30
    assert len(lm.calls) == 30
    assert lm_eval.evaluator.evaluate is STOCK


def test_blocks_that_cannot_be_run(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {
        "a": BLOCK,
        "b": {**BLOCK, "evalbudget": {"budget": "4x"}},
        "c": {**BLOCK, "evalbudget": {"budgets": "4x", "budget": 3}},
        "d": {"class": BLOCK["class"]},
    }
    for name, block in tasks.items():
        write_task(tmp_path / "own", name, n=6, **block)
    for names, message in {
        ("a", "b"): "tasks 'a' and 'b' are run together with different evalbudget blocks",
        ("c",): "option of sampler 'auto' 'budgets'",
        ("d",): r"task 'd' has the block evalbudget: None; write evalbudget: \{sampler",
    }.items():
        with pytest.raises(Exception, match=message):
            simple_evaluate(tmp_path / "own", CoinModel(), *names)
        lm_eval.evaluator.evaluate = STOCK


@pytest.mark.usefixtures("own_tasks_only")
def test_a_race_has_a_budget_of_its_own(tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "own", n=6, **BLOCK)
    one, other = CoinModel(noise=False), CoinModel()
    result = race({"one": one, "other": other}, "numbers", budget=8, include_path=tasks, journal="none")
    assert len(one.calls) + len(other.calls) == 8
    assert set(result.results) == {"one", "other"}
    assert lm_eval.evaluator.evaluate is STOCK


def test_a_document_of_which_the_task_says_none_is_given_up_and_the_others_have_their_mean(
    tmp_path: Path,
) -> None:
    folder = write_scored(tmp_path, "own", "None if doc['number'] == 3 else float(doc['number'] % 2)", n=20)
    with budgeted(sampler="uniform", budget="6x"):
        found = simple_evaluate(folder, CoinModel())
    block, row = found["evalbudget"], found["results"]["numbers"]
    assert block["spent"] <= 120
    assert block["failed"] == block["spent"] - block["readings"] > 0
    assert row["own,none"] == pytest.approx(9 / 19, abs=1e-12)
