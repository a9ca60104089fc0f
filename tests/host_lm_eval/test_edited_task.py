"""A task that was edited between two attempts: kept answers are worth what today's task makes of them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.claims import variant
from tests.host_lm_eval.worlds import (
    CoinModel,
    bought_in,
    broken_off,
    simple_evaluate,
    write_scored,
    write_task,
)

from evalbudget.errors import JournalError, StoreError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.run.kept import Kept

RIGHT = "float(results[0] == doc['text'])"
WRONG = "float(results[0] != doc['text'])"
N = 6
BUDGET = 30


def run(folder: Path, lm: CoinModel, **more: Any) -> dict[str, Any]:
    with budgeted(**{"budget": BUDGET, "journal": "j.db", **more}):
        return simple_evaluate(folder, lm, rounds=3)


def mean_of(results: dict[str, Any], metric: str = "right") -> float:
    """Of the documents' means, from the samples."""
    scores = defaultdict(list)
    for record in results["samples"]["numbers"]:
        if not math.isnan(record[metric]):
            scores[record["doc_id"]].append(record[metric])
    return math.fsum(math.fsum(own) / len(own) for own in scores.values()) / len(scores)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("sampler", [variant("uniform"), "auto"])
def test_kept_answers_are_scored_again_for_nothing(
    tmp_path: Path, sampler: str, broken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    folder, lm = write_scored(tmp_path / "tasks", "right", WRONG, n=N), CoinModel(seed=1)
    if broken:
        with broken_off(Kept, "hear", at=20), pytest.raises(KeyboardInterrupt):
            run(folder, lm, sampler=sampler)
    else:
        before = run(folder, lm, sampler=sampler)
    paid = len(lm.calls) - broken  # the answer that was not kept costs nothing: the model is local
    planned = bought_in("j.db").requests
    write_scored(tmp_path / "tasks", "right", RIGHT, n=N)
    again = CoinModel(seed=2)
    after = run(folder, again, sampler=sampler)
    block = after["evalbudget"]
    assert paid + len(again.calls) == block["spent"] == block["readings"] == BUDGET
    assert bought_in("j.db").requests[: len(planned)] == planned
    for record in after["samples"]["numbers"]:
        said = record["resps"][0][0]
        assert record["right"] == float(said == record["doc"]["text"])
    truth = mean_of(after)
    row = after["results"]["numbers"]["right,none"]
    if sampler == "uniform":
        assert row == pytest.approx(truth, abs=1e-12)
    if not broken:
        assert again.calls == []
        assert row == pytest.approx(1.0 - before["results"]["numbers"]["right,none"], abs=1e-12)
    assert block["scored_again"] == (BUDGET if not broken else paid)
    assert "kept answers are scored by it as it is now" in block["summary"]["text"]
    assert f"all {BUDGET} were scored again" in caplog.text or broken
    # the same task: nothing is scored again
    caplog.clear()
    third = run(folder, CoinModel(fail_at=1), sampler=sampler)
    assert third["results"]["numbers"] == after["results"]["numbers"]
    assert "scored_again" not in third["evalbudget"]
    assert "scored again" not in caplog.text


def test_a_right_answer_that_was_wrong_in_the_data(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=N)
    lm = CoinModel(noise=False)
    first = run(folder, lm, budget="1x", sampler="uniform")
    data = tmp_path / "tasks" / "numbers.jsonl"
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    data.write_text("".join(json.dumps({**row, "text": f"{row['number'] + 1}"}) + "\n" for row in rows))
    second = run(folder, CoinModel(fail_at=1), budget="1x", sampler="uniform")
    name = "exact_match,none"
    assert first["results"]["numbers"][name] == pytest.approx(2 / 3)
    assert second["results"]["numbers"][name] == pytest.approx(1 / 3)
    assert second["evalbudget"]["spent"] == N


def test_what_had_no_score_has_one_and_the_other_way_round(tmp_path: Path) -> None:
    """An answer that had no score counts now; one that has none any more is asked for again."""
    some = "1.0 if doc['number'] % 2 else float('nan')"
    folder, lm = write_scored(tmp_path / "tasks", "right", some, n=4), CoinModel(noise=False)
    before = run(folder, lm, budget=12, sampler="uniform")["evalbudget"]
    assert sorted(before["closed_items"]) == ["numbers:0", "numbers:2"]
    calls = len(lm.calls)
    assert calls == before["spent"] == 12
    write_scored(tmp_path / "tasks", "right", "0.5", n=4)
    after = run(folder, CoinModel(fail_at=1), budget=12, sampler="uniform")
    block = after["evalbudget"]
    assert block["closed_items"] == []
    assert block["tasks"]["numbers"]["doc_id"] == [0, 1, 2, 3]
    assert after["results"]["numbers"]["right,none"] == 0.5
    assert block["spent"] == 12
    write_scored(tmp_path / "tasks", "right", "float('nan') if doc['number'] == 1 else 0.25", n=4)
    lm = CoinModel(noise=False)
    last = run(folder, lm, budget=16, sampler="uniform")["evalbudget"]
    assert last["spent"] == 16
    assert len(lm.calls) == 4
    assert 1 not in last["tasks"]["numbers"]["doc_id"]


def test_what_asks_the_model_otherwise_is_refused_and_says_what(tmp_path: Path) -> None:
    folder = write_scored(tmp_path / "tasks", "right", RIGHT, n=N)
    run(folder, CoinModel())
    write_scored(tmp_path / "tasks", "right", RIGHT, n=N, doc_to_text="say {{number}} now")
    with pytest.raises(JournalError, match="prompts = "):
        run(folder, CoinModel(fail_at=1))


def test_a_task_that_fails_on_its_answers_costs_nothing_and_may_be_mended(tmp_path: Path) -> None:
    folder, lm = write_scored(tmp_path / "tasks", "right", RIGHT, n=N), CoinModel(seed=1)
    run(folder, lm)
    write_scored(tmp_path / "tasks", "right", "1 / 0", n=N)
    with pytest.raises(ZeroDivisionError):
        run(folder, CoinModel(fail_at=1))
    write_scored(tmp_path / "tasks", "right", WRONG, n=N)
    mended = run(folder, CoinModel(fail_at=1))
    assert mended["evalbudget"]["scored_again"] == BUDGET


def test_processes_that_share_a_budget_score_alike(tmp_path: Path) -> None:
    folder = write_scored(tmp_path / "tasks", "right", RIGHT, n=N)
    run(folder, CoinModel(), store="store.db", sampler="uniform")
    write_scored(tmp_path / "tasks", "right", WRONG, n=N)
    with pytest.raises(StoreError, match="scoring = "):
        run(folder, CoinModel(fail_at=1), store="store.db", sampler="uniform", journal="b.db")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            {"doc_to_text": "Do say {{number}} please"},
            "since what differs is: prompts or settings of the task",
        ),
        ({"metric": "wrong"}, "since what differs is: the metric or filter that decides"),
        ({"score_range": "0..1"}, "by what settings answers count (--score_range)"),
        ({"seed": 2}, "with another sampler, seed or kind of budget, or a larger one, or of one"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_bought_anew_and_not_gone_on_with_is_said(
    edit: dict[str, Any],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_scored(tmp_path / "tasks", "right", RIGHT, n=N)
    options: dict[str, Any] = {"journal": None, "sampler": "uniform"}
    with broken_off(Kept, "hear", at=20), pytest.raises(KeyboardInterrupt):
        run(folder, CoinModel(seed=1), **options)
    (left,) = Path("evalbudget-journals").glob("*.db")
    changes = {name: value for name, value in edit.items() if name == "doc_to_text"}
    write_scored(tmp_path / "tasks", edit.get("metric", "right"), RIGHT, n=N, **changes)
    caplog.clear()
    run(
        folder,
        CoinModel(seed=2),
        **options | {name: edit[name] for name in ("budget", "seed", "score_range") if name in edit},
    )
    (told,) = [record.getMessage() for record in caplog.records if "answers" in record.getMessage()]
    assert told.startswith(f"evalbudget: {left} has ")
    assert said in told


def test_of_records_the_one_of_such_a_run_is_named_before_a_newer_one_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"journal": None, "sampler": "uniform"}
    for words in ({}, {"doc_to_text": "Do say {{number}} please"}, {}):
        folder = write_scored(tmp_path / "tasks", "right", RIGHT, n=N, **words)
        caplog.clear()
        run(folder, CoinModel(seed=1), **options)
        options["budget"] = options.get("budget", BUDGET) - N
    (told,) = [record.getMessage() for record in caplog.records if "answers" in record.getMessage()]
    assert (
        f"has {BUDGET} answers of such a run with another sampler, seed or kind of budget, or a larger"
        in told
    )
