"""Models of one race in several processes, with one budget in money: the providers' own bill is below it."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from anyio import CapacityLimiter, from_thread
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
from tests.host_inspect.paid_model import Till, judged_by, paid_model, tills
from tests.host_inspect.race_tasks import board, quiz, run
from tests.races.test_shared_money import Host, crew

from evalbudget.book import Book
from evalbudget.book._turn import Turn
from evalbudget.errors import StoreDownError
from evalbudget.prices import Price, Tariff
from evalbudget.races import Entry, RacePurchase, SharedBill, leaderboard_of
from evalbudget.run import spent_on
from evalbudget.store import Database
from evalbudget_inspect import race
from evalbudget_inspect.host.bill import Account
from evalbudget_inspect.races.shared import shared_race
from postgresql_server import Server

PRICE = Price(input=10.0, output=100.0)


@pytest.fixture
def till() -> Till:
    tills["here"] = Till(PRICE)
    return tills["here"]


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.yaml"
    path.write_text("paid/*: {input: 10, output: 100}\nm: {input: 10, output: 10}\n")
    return str(path)


def _race(prices: str, folder: Path, arms: int, **options: Any) -> Any:
    scorer = judged_by(lambda: get_model(role="grader"))
    given = {"score_range": "0..10", "sampler": "uniform", "budget": "$0.5", "store": folder / "store.db"}
    return race(quiz(60, scorer=scorer), prices=prices, all_arms=arms, **{**given, **options})


def _run(raced: Any, names: str, folder: Path, **more: Any) -> list[Any]:
    grader = paid_model("j", "here", latency=0.002)
    models = [paid_model(name, "here", refuses=0.1, latency=0.002) for name in names]
    return run(raced, models, folder / "logs", model_roles={"grader": grader}, max_samples=8, **more)


def _other(here: RacePurchase, tariff: Tariff, group: Any) -> tuple[float, dict[str, Any]]:
    """Another process that runs a model of its own in this race; dollars it paid, and its leaderboard."""
    about = {"task": group.task, "task arguments": group.arguments, "score": group.series}
    bill = SharedBill(here.budget, tariff)
    given: dict[str, Any] = {"widths": [3], "about": about, "cost_of": bill.of_sample, "bill": bill}
    theirs = RacePurchase(here.config, ["z"], here.design.items, **given)
    theirs.join([Entry("z")], bill=bill)
    host = Host("z", theirs, bill, random.Random(4))
    deadline = time.monotonic() + 60
    while not (theirs.begun and theirs.finished) and time.monotonic() < deadline:
        host.begins()
        host.goes_on()
        time.sleep(0.002)
    found = leaderboard_of(theirs, bill=bill).as_json
    theirs.close()
    return 10e-6 * host.billed, found


def test_the_cap_holds_for_two_processes(
    till: Till, prices: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[Future[tuple[float, dict[str, Any]]]] = []
    joins = shared_race

    def joined(group: Any, arms: Any, tariff: Any) -> Any:
        here = joins(group, arms, tariff)
        others.append(pool.submit(_other, here[0], tariff, group))
        return here

    monkeypatch.setattr("evalbudget_inspect.races.coordinator.shared_race", joined)
    with ThreadPoolExecutor() as pool:  # they meet in the store alone
        logs = _run(_race(prices, tmp_path, 3, budget="$0.2"), "ab", tmp_path)
        paid, theirs = others[0].result()
    assert {log.status for log in logs} == {"success"}
    found = board(logs)
    assert found.as_json == theirs
    assert found.stop_reason == "budget used up"
    assert paid > 0.02
    assert found.paid is not None
    assert 0.8 * 0.2 < till.total + paid <= found.paid + 1e-9 <= 0.2 + 1e-9
    (told,) = (note for note in found.notes if note.startswith("Paid "))
    assert "of $0.20: " in told
    assert "paid/j as grader" in told


def test_the_event_loop_goes_on_while_others_are_waited_for(
    till: Till, prices: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, turns = Book._take, list[Any]()

    def turn(self: Book, *given: Any) -> Any:
        if self._parts and self._thread is None and not self.finished:
            from_thread.run_sync(turns.append, given)  # it hangs for good if the loop waits for it
        return take(self, *given)

    monkeypatch.setattr(Book, "_take", turn)
    logs = _run(_race(prices, tmp_path, 2, budget="$0.05"), "ab", tmp_path)
    assert {log.status for log in logs} == {"success"}
    assert board(logs).paid == pytest.approx(till.total)
    assert turns


def test_a_server_that_is_away_for_a_while_costs_nothing_but_time(
    till: Till, prices: str, tmp_path: Path, postgresql: Server
) -> None:
    def goes_and_comes_back() -> None:
        deadline = time.monotonic() + 60
        while len(till.paid) < 10 and time.monotonic() < deadline:
            time.sleep(0.005)
        postgresql.stop()
        time.sleep(0.5)
        postgresql.start()

    raced = _race(prices, tmp_path, 2, budget="$0.15", store=f"{postgresql.url}#outage")
    with ThreadPoolExecutor() as pool:
        gone = pool.submit(goes_and_comes_back)
        logs = _run(raced, "ab", tmp_path)
        gone.result()
    assert {log.status for log in logs} == {"success"}
    found = board(logs)
    assert found.stop_reason == "budget used up"
    assert found.paid == pytest.approx(till.total)
    assert 0.8 * 0.15 < till.total <= 0.15


def test_a_store_that_stays_away_ends_the_run_and_logs_are_kept(
    till: Till, prices: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = Database.write, [40]

    def write(self: Database, **given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise StoreDownError("the store cannot be reached")
        return real(self, **given)

    monkeypatch.setattr(Database, "write", write)
    logs = _run(_race(prices, tmp_path, 2), "ab", tmp_path)
    assert {log.status for log in logs} == {"error"}
    assert "the store cannot be reached" in logs[0].error.message
    assert sum(len(log.samples or []) for log in logs) > 5


def test_one_process_with_a_store_pays_what_the_store_says(till: Till, prices: str, tmp_path: Path) -> None:
    logs = _run(_race(prices, tmp_path, 2, budget="$0.1"), "ab", tmp_path, retry_on_error=1)
    found = board(logs)
    assert found.stop_reason == "budget used up"
    assert found.paid == pytest.approx(till.total)
    (copy,) = (tmp_path / "logs").glob(".evalbudget-*.bill")
    assert sum(spent_on(copy)[1].values()) == pytest.approx(till.total)
    assert 0.8 * 0.1 < till.total <= 0.1
    assert sum(standing.paid or 0.0 for standing in found.standings) <= till.total + 1e-9


def test_room_for_a_call_that_was_cancelled_on_the_way_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, given = get_model("mockllm/model"), GenerateConfig(max_tokens=1000)

    async def cancelled(account: Account) -> None:
        write, began = Turn.write, threading.Event()

        def slow(*given: Any) -> None:
            write(*given)
            began.set()
            time.sleep(0.2)

        with monkeypatch.context() as patch:
            patch.setattr(Turn, "write", slow)
            call = asyncio.ensure_future(
                account.reserve(model, [ChatMessageUser(content="hi")], [], given, "s")
            )
            while not began.is_set():
                await asyncio.sleep(0.01)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            account.sample_ended("s")

    with crew(str(tmp_path / "store.db"), defers=True) as workers:
        for each in workers:
            each.race.turn()
        bill = workers[0].bill
        asyncio.run(cancelled(Account(bill, lambda error: None, turns=CapacityLimiter(1))))
        workers[0].race.turn()
        assert (bill.under_way, bill.held, bill.spent) == (0, 0.0, 0.0)
