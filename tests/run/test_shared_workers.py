"""Processes that share a purchase: some are killed, one server goes away; the bill is what the store says."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

import warm
from evalbudget import Budget, Design, Request
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.run import drive
from evalbudget.run._shared_purchase import SharedPurchase
from postgresql_server import Server

WORKER = """
import os, random, sys
import anyio
from evalbudget import Design
from evalbudget.run import drive
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.testing import gaussian

store, bill, budget = sys.argv[1], sys.argv[2], int(sys.argv[3])
file = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def answer(request):
    os.write(file, b"%d\\n" % request.id)  # the provider bills what it is sent
    await anyio.sleep(random.uniform(0, 0.03))
    if random.random() < 0.05:
        raise OSError("lost")
    return gaussian(request.cell)

sampler = EBBernstein(Design.of_items(20), seed=4)
anyio.run(lambda: drive(sampler, answer, budget=budget, concurrency=4, store=store, lease=3.0))
"""
DESIGN = Design.of_items(20)


def started(store: str, bill: Path, budget: int) -> subprocess.Popen[bytes]:
    return warm.Popen([sys.executable, "-c", WORKER, store, str(bill), str(budget)], host="core")


def billed(bill: Path) -> list[int]:
    return [int(line) for line in bill.read_text().split()] if bill.exists() else []


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        if process.poll() is None:
            process.kill()
        process.wait()


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_killed_at_random(store: str, tmp_path: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    bill, budget, rng = tmp_path / "bill", 600, random.Random(1)
    processes += [started(store, bill, budget) for _ in range(4)]
    for calls in (60, 200, 350):
        wait_for(lambda calls=calls: len(billed(bill)) >= calls)
        place = rng.randrange(4)
        processes[place].kill()
        processes[place].wait()
        processes[place] = started(store, bill, budget)
    for process in processes:
        assert process.wait(120) == 0

    kept = SharedPurchase(EBBernstein(DESIGN, seed=4), Budget(budget), store)
    kept.close()
    calls, lost = billed(bill), sum(kept.tally.unread.values())
    assert kept.finished
    assert (kept.ledger.spent, kept.ledger.promised) == (budget, 0.0)
    assert len(kept.journal.readings) + lost == budget
    assert 0 < lost <= 12  # what three workers had under way
    assert budget - lost <= len(calls) <= budget  # of what was lost some was never sent
    read = {reading.request.id for reading in kept.journal.readings}
    assert read <= set(calls)
    assert len(set(calls) - read) <= lost  # what was lost at the end there was no budget to ask again
    assert sum(times - 1 for times in Counter(calls).values()) <= lost
    cells = [reading.request.cell for reading in kept.journal.readings]
    assert len(set(cells)) == len(cells)


def test_a_server_that_goes_and_comes_back(
    postgresql: Server, tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    store, bill = f"{postgresql.url}#comes_back", tmp_path / "bill"
    processes += [started(store, bill, 300) for _ in range(2)]
    wait_for(lambda: len(billed(bill)) >= 60)
    postgresql.stop()
    time.sleep(3.2)  # longer than a lease
    postgresql.start()
    for process in processes:
        assert process.wait(120) == 0
    kept = SharedPurchase(EBBernstein(DESIGN, seed=4), Budget(300), store)
    kept.close()
    assert len(billed(bill)) == len(kept.journal.readings) == kept.ledger.spent == 300


def test_drive_with_a_store_by_itself(store: str) -> None:
    async def answer(request: Request) -> float:
        return float(request.cell.item)

    async def main() -> list[int]:
        found = []

        async def one() -> None:
            journal = await drive(EBBernstein(DESIGN, seed=4), answer, budget=100, store=store, concurrency=3)
            found.append(len(journal.readings))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return found

    assert anyio.run(main) == [100, 100]
    assert anyio.run(main) == [100, 100]  # nothing is left to buy


def test_a_reading_dearer_than_promised_ends_the_worker_and_is_kept(store: str) -> None:
    from evalbudget import Reading

    async def answer(request: Request) -> Reading:
        return Reading(request, 0.5, 3.0)

    with pytest.raises(BudgetError, match="at most 1 was promised"):
        anyio.run(lambda: drive(EBBernstein(DESIGN, seed=4), answer, budget=100, store=store, concurrency=1))
    kept = SharedPurchase(EBBernstein(DESIGN, seed=4), Budget(100), store)
    kept.close()
    assert kept.ledger.spent == 3.0


def test_what_a_store_does_not_go_with(tmp_path: Path) -> None:
    async def answer(request: Request) -> float:
        return 0.0

    for more in ({"journal": tmp_path / "x.jsonl"}, {"cost": lambda request: 1.0}):
        with pytest.raises(InvalidInputError, match="the store is one"):
            anyio.run(
                lambda more=more: drive(
                    EBBernstein(DESIGN), answer, budget=100, store=tmp_path / "s.db", **more
                )
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_worker_tells_what_came_back(tmp_path: Path, backend: str) -> None:
    answered: list[int] = []

    async def answer(request: Request) -> float:
        await anyio.sleep(0.01 * (request.id % 3))
        answered.append(request.id)
        return 0.5

    async def main() -> None:
        with anyio.move_on_after(1.0):
            await drive(EBBernstein(DESIGN, seed=4), answer, budget=100_000, store=tmp_path / "s.db")

    anyio.run(main, backend=backend)
    kept = SharedPurchase(EBBernstein(DESIGN, seed=4), Budget(100_000), tmp_path / "s.db")
    kept.close()
    assert {reading.request.id for reading in kept.journal.readings} == set(answered)
