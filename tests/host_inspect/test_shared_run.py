"""One budget on one task and one model, spent by several processes of inspect."""

from __future__ import annotations

import re
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, write_eval_log
from inspect_ai.solver import TaskState, generate
from tests.host_inspect.race_tasks import QUIET
from tests.host_inspect.worlds import entry_of, scoring, solving

import warm
from evalbudget import Reading
from evalbudget.book import Book
from evalbudget.cli.main import cli
from evalbudget.errors import BudgetError, InvalidInputError, StoreDownError, StoreError
from evalbudget.repeats import describe_mean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.run import UNANSWERED
from evalbudget.store import Database
from evalbudget_inspect import budgeted
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.reading.open_logs import open_scores
from evalbudget_inspect.repeats import sample_source
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.diagnostics import outcome
from evalbudget_inspect.repeats.purchase import RepeatPurchase

BUDGET = 48
ITEMS = [f"item-{i}" for i in range(8)]
ABOUT = {
    "task": "rating",
    "task arguments": "[]",
    "model": "simulated/writer",
    "score": "judge_rating",
    "score_range": "None",
    "items, solvers, scorers, models or limits": "as told",
}


@pytest.fixture(autouse=True)
def _as_told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides ask the same, wherever the other one only exists in a store."""
    if "other_questions" not in request.node.name:
        monkeypatch.setattr(sample_source, "digest_of", lambda *asked: "as told")


def of_another(store: Path, **more: Any) -> Book:
    """What a process elsewhere has of the purchase."""
    config = Config.of(budget=BUDGET, store=store, **more)
    return RepeatPurchase(config, ITEMS, epochs=1, seeded=False, about=ABOUT, worker="elsewhere").book


def test_every_log_has_its_samples_and_the_rows_of_all(
    make_task: Any, run: Any, cells: Any, metrics: Any, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    other = of_another(store)
    requests = other.trade((), 20)
    asked = {(ITEMS[r.cell.item], other.attempt(r) + 1) for r in requests}
    other.trade([Reading(request, 4.0 + request.cell.item % 3) for request in requests[:-1]], 0)
    late = threading.Timer(1.0, lambda: other.trade([Reading(requests[-1], 9.0)], 0))
    late.start()
    log = run(budgeted(make_task(), budget=BUDGET, store=store))
    assert not late.is_alive()  # it was waited for
    assert log.status == "success"
    assert len(cells(log)) == len(set(cells(log))) == BUDGET - 20
    assert not asked & set(cells(log))

    table = ItemReadings.of_bought(other.readings(), len(ITEMS))
    assert other.finished
    assert table.value.size == BUDGET
    found = metrics(log)
    assert "accuracy" not in found
    assert "mean" not in found  # which is of this log's samples alone
    sampler = other.sampler
    assert isinstance(sampler, RepeatSampler)
    mean = describe_mean(table, allocation=sampler.allocation, fixed_repeats=sampler.fixed_repeats)
    assert found == pytest.approx({name: mean.rows[name] for name in found}, nan_ok=True)
    assert entry_of(log, "readings")["readings"] == BUDGET
    assert entry_of(log)["spent"] == BUDGET
    assert set(entry_of(log)["processes"]) == {"elsewhere", log.eval.task_id}
    said = " ".join(entry_of(log)["summary"]["text"].split())
    assert re.search(rf"{BUDGET} of 8 items(, [^;]+)?, of 2 processes", said)
    with pytest.raises(InvalidInputError, match="1 of 2 processes bought that shared a budget"):
        open_scores(Path(log.location))
    other.close()


def test_a_process_that_fails_leaves_the_rest_to_the_next_and_its_log_counts(
    make_task: Any, run: Any, cells: Any, metrics: Any, tmp_path: Path
) -> None:
    # in which everything is that addresses may need quotes for
    store, calls = tmp_path / "büch #1, 50%20?.db", Counter[str]()

    def breaks(state: TaskState) -> None:
        calls["all"] += 1
        if calls["all"] > 17:
            raise RuntimeError("out of memory")

    failing = make_task(solver=solving(breaks, generates=True))
    first = run(budgeted(failing, budget=BUDGET, store=store), max_samples=3)
    assert first.status == "error"
    second = run(budgeted(make_task(), budget=BUDGET, store=store), max_samples=3)
    assert second.status == "success"
    ours = entry_of(second)
    assert set(ours["processes"]) == {first.eval.task_id, second.eval.task_id}
    assert ours["spent"] == BUDGET

    whole = open_scores(tmp_path / "logs")
    assert whole is not None
    assert whole.purchases is not None
    assert whole.purchases[0].allocation.value == ours["allocation"]
    counts = dict(zip(ours["per_item"]["id"], ours["per_item"]["readings"], strict=True))
    found = np.isfinite(whole.scores[0]).sum(axis=(1, 2))
    assert dict(zip(whole.items, found.tolist(), strict=True)) == counts


def test_it_does_not_go_on_from_its_log(task_file: Path, run: Any, tmp_path: Path) -> None:
    given = {"task": str(task_file), "budget": 24, "store": str(tmp_path / "store.db")}
    failing = {"writer": {"fail": 0.3}, "fail_on_error": True, "max_samples": 1}
    failed = run("evalbudget_inspect/budgeted", task_args=given, **failing)
    assert failed.status == "error"
    (again,) = eval_retry(failed, **QUIET)
    assert again.status == "error"
    assert "does not go on from its log" in str(take_refusals()[0])


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"budget": "$5"}, BudgetError, "count scores"),
        ({"until": "item±0.3", "score_range": "0..10"}, InvalidInputError, "take no --until"),
        ({"repeat": "judge"}, InvalidInputError, "take no --repeat judge"),
        ({"judges": "a,b"}, InvalidInputError, "take no --judges"),
        ({"store": "postgresql://me:secret@host/db"}, InvalidInputError, "PGPASSWORD"),
        ({"store": ""}, InvalidInputError, "every process would spend the whole budget"),
        ({"store": ":memory:"}, InvalidInputError, "a store in memory is shared with nobody"),
        ({"store": " "}, InvalidInputError, "the store has no address"),
    ],
)
def test_what_they_cannot_do_is_refused(
    make_task: Any, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        budgeted(make_task(), **{"budget": BUDGET, "store": "store.db", **more})


def test_several_scorers_tasks_and_models_are_refused(make_task: Any, task_file: Path) -> None:
    scorers = [scoring(name, lambda state: 1.0)() for name in ("one", "two")]
    with pytest.raises(InvalidInputError, match="take one score"):
        budgeted(make_task(scorer=scorers), budget=BUDGET, store="store.db")
    from click.testing import CliRunner

    command = ["inspect", "eval", str(task_file), "--model", "a,b", "--budget", "9", "--store", "s.db"]
    found = CliRunner().invoke(cli, command)
    assert found.exit_code == 2
    assert "run one task with one model" in found.output


def test_another_model_or_seed_is_refused(make_task: Any, run: Any, tmp_path: Path) -> None:
    of_another(tmp_path / "store.db").close()
    log = run(budgeted(make_task(), budget=BUDGET, store=tmp_path / "store.db", seed=1))
    assert log.status == "error"
    refusal = take_refusals()[0]
    assert isinstance(refusal, StoreError)
    assert "seed = 0 there, 1 here" in str(refusal)


def test_other_questions_under_the_same_names_are_refused(make_task: Any, run: Any, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    assert run(budgeted(make_task(), budget=BUDGET, store=store)).status == "success"
    for change in ({"temperature": 0.3}, {"turn_limit": 9}, {"solver": generate()}, {"target": "?"}):
        task = make_task()
        if "target" in change:
            task.dataset[3].target = change.pop("target")
        assert run(budgeted(task, budget=BUDGET, store=store), **change).status == "error"
        assert "items, solvers, scorers, models or limits" in str(take_refusals()[0])
    faster = {"max_connections": 2, "max_retries": 3}
    assert run(budgeted(make_task(), budget=BUDGET, store=store), **faster).status == "success"


def test_a_store_that_goes_away_ends_the_run(
    make_task: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trade, turns = Book.trade, Counter[str]()

    def gone(book: Book, *given: Any) -> Any:
        turns["all"] += 1
        if turns["all"] > 15:
            raise StoreDownError("store.db cannot be reached")
        return trade(book, *given)

    monkeypatch.setattr(Book, "trade", gone)
    log = run(budgeted(make_task(), budget=BUDGET, store=tmp_path / "store.db"), max_samples=2)
    assert log.status == "error"
    assert "cannot be reached" in str(take_refusals()[0])


def test_what_a_killed_process_logged_and_never_told_counts_once(
    make_task: Any, run: Any, tmp_path: Path
) -> None:
    """Of a killed process the host has logged more than the store was told."""
    store, folder = tmp_path / "store.db", tmp_path / "logs"
    other = of_another(store)
    held = other.trade((), 10)
    keys = [(ITEMS[request.cell.item], other.attempt(request) + 1) for request in held]
    other.trade([Reading(request, 5.0) for request in held[:8]], 0)
    other.close()  # the last two are lost, and bought again
    ended = run(budgeted(make_task(), budget=BUDGET, store=store))
    assert entry_of(ended)["readings"] == BUDGET - 2
    first = {sample.id: sample for sample in ended.samples or []}
    samples = [
        first[item].model_copy(deep=True, update={"epoch": epoch, "uuid": f"{item} {epoch}"})
        for item, epoch in keys
    ]
    spec = ended.eval.model_copy(update={"task_id": "elsewhere", "eval_id": "elsewhere"})
    killed = EvalLog(status="started", eval=spec, plan=ended.plan, samples=samples)
    write_eval_log(killed, str(folder / "2020-01-01T00-00-00+00-00_rating_killed.eval"))
    whole = open_scores(folder)
    assert whole is not None
    table = entry_of(ended)["per_item"]
    found = np.isfinite(whole.scores[0]).sum(axis=(1, 2))
    assert dict(zip(whole.items, found.tolist(), strict=True)) == dict(
        zip(table["id"], table["readings"], strict=True)
    )


def purchase(store: Path, worker: str = "one") -> RepeatPurchase:
    config = Config.of(budget=BUDGET, store=store)
    return RepeatPurchase(config, ITEMS, epochs=1, width=4, seeded=False, about=ABOUT, worker=worker)


def test_whoever_keeps_the_store_locked_keeps_nobody_from_telling(tmp_path: Path) -> None:
    ours = purchase(tmp_path / "store.db")
    for key in ours.wanted():
        ours.completed(key, 1.0)
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert outcome(ours)["readings"] == outcome(ours)["items"] == 4
    ours.ends()


def test_a_store_that_is_away_at_the_end_takes_nothing_from_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours = purchase(tmp_path / "store.db")
    while keys := ours.wanted():
        for key in keys:
            ours.completed(key, None if key == (ITEMS[0], 1) else 1.0, error="timeout")
    assert outcome(ours)["failures"] == {"timeout": 1}

    @contextmanager
    def gone(db: Database, **_: Any) -> Iterator[Any]:
        raise StoreDownError("store.db cannot be reached")
        yield

    monkeypatch.setattr(Database, "_transaction", gone)
    ours.ends()
    assert ours.finished
    told = outcome(ours)
    assert (told["spent"], told["readings"]) == (BUDGET, BUDGET - 1)
    assert len(ours.account.readings) == BUDGET - 1
    assert told["failures"] == {"no score, of reasons that the store did not tell": 1}
    assert "processes" not in told
    assert "as it was last known" in caplog.text


def test_what_was_cut_off_counts_once_when_the_process_leaves(tmp_path: Path) -> None:
    ours = purchase(tmp_path / "store.db")
    ours.completed(ours.wanted()[0], 1.0)
    ours.cut_off = 3
    assert ours.spent == 4
    ours.ends()
    assert ours.spent == 4
    assert ours.account.failures == {UNANSWERED: 3}


def test_a_killed_process_is_taken_over_at_once_also_under_its_name(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    code = (
        "import os, sys; from pathlib import Path; from tests.host_inspect.test_shared_run import purchase; "
        "purchase(Path(sys.argv[1])).wanted(); os._exit(9)"
    )
    assert warm.run([sys.executable, "-c", code, str(store)], host="inspect").returncode == 9
    ours = purchase(store)
    while keys := ours.wanted():
        for key in keys:
            ours.completed(key, 1.0)
    ours.ends()
    assert ours.finished
    assert ours.n_read == BUDGET - 4
    assert ours.processes == ("one",)
