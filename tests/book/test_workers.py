"""Processes that share a book: some are killed, a server goes away, a disk is full; the bill is true."""

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
from evalbudget import Budget, Design, Reading, Request
from evalbudget.book import LOST, Book, drive
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.store import Address
from postgresql_server import Server

WORKER = """
import os, random, sys
import anyio
from evalbudget import Design
from evalbudget.book import drive
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.testing import gaussian

book, bill, budget = sys.argv[1], sys.argv[2], int(sys.argv[3])
file = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def answer(request):
    os.write(file, b"%d\\n" % request.id)  # the provider bills what it is sent
    await anyio.sleep(random.uniform(0, 0.03))
    if random.random() < 0.05:
        raise OSError("lost")
    return gaussian(request.cell)

sampler = EBBernstein(Design.of_items(20), seed=4)
anyio.run(lambda: drive(sampler, answer, budget=budget, concurrency=4, book=book))
"""
FULL = """
import resource, signal, sys
import anyio
from evalbudget import Design
from evalbudget.book import drive
from evalbudget.errors import StoreError
from evalbudget.repeats.samplers import EBBernstein

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
asked = 0

async def answer(request):
    global asked
    asked += 1
    await anyio.sleep(0)
    return float(request.cell.item % 2)

sampler = EBBernstein(Design.of_items(6), seed=4)
try:
    anyio.run(lambda: drive(sampler, answer, budget=1000, concurrency=4, book=sys.argv[1]))
except StoreError as ex:
    print(ex, file=sys.stderr)
print(asked)
"""
DESIGN = Design.of_items(20)


def started(book: str, bill: Path, budget: int) -> subprocess.Popen[bytes]:
    return warm.Popen([sys.executable, "-c", WORKER, book, str(bill), str(budget)], host="core")


def billed(bill: Path) -> list[int]:
    return [int(line) for line in bill.read_text().split()] if bill.exists() else []


def kept(where: str, budget: int) -> tuple[float, tuple[Reading, ...]]:
    book = Book(EBBernstein(DESIGN, seed=4), Budget(budget), Address.parse(where))
    book.close()
    return book.spent, readings_of(where, budget)


def readings_of(where: str, budget: int) -> tuple[Reading, ...]:
    async def nothing(request: Request) -> float:
        raise AssertionError("nothing is left to ask")

    sampler = EBBernstein(DESIGN, seed=4)
    return anyio.run(lambda: drive(sampler, nothing, budget=budget, book=where)).readings


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
    bill, budget, rng = tmp_path / "bill", 300, random.Random(1)
    processes += [started(store, bill, budget) for _ in range(4)]
    for calls in (40, 110, 180):
        wait_for(lambda calls=calls: len(billed(bill)) >= calls)
        place = rng.randrange(4)
        processes[place].kill()
        processes[place].wait()
        processes[place] = started(store, bill, budget)
    for process in processes:
        assert process.wait(120) == 0

    spent, readings = kept(store, budget)
    calls = billed(bill)
    lost = [reading for reading in readings if reading.error == LOST]
    assert spent == len(readings) == budget
    assert 0 < len(lost) <= 12  # what three workers had under way
    assert budget - len(lost) <= len(calls) <= budget  # of what was lost some was never sent
    assert max(Counter(calls).values()) == 1
    assert {reading.request.id for reading in readings} >= set(calls)
    cells = [reading.request.cell for reading in readings if reading.value is not None]
    assert len(set(cells)) == len(cells)


def test_a_server_that_goes_and_comes_back(
    postgresql: Server, tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    where, bill = f"{postgresql.url}#comes_back", tmp_path / "bill"
    processes += [started(where, bill, 150) for _ in range(2)]
    wait_for(lambda: len(billed(bill)) >= 40)
    postgresql.stop()
    time.sleep(1.0)
    postgresql.start()
    for process in processes:
        assert process.wait(120) == 0
    spent, readings = kept(where, 150)
    assert len(billed(bill)) == len(readings) == spent == 150


def test_two_in_one_process(store: str) -> None:
    async def answer(request: Request) -> float:
        return float(request.cell.item)

    async def main() -> list[int]:
        found = []

        async def one() -> None:
            bought = await drive(EBBernstein(DESIGN, seed=4), answer, budget=100, book=store, concurrency=3)
            found.append(len(bought.readings))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return found

    assert anyio.run(main) == [100, 100]
    assert anyio.run(main) == [100, 100]  # nothing is left to buy


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files")
def test_a_full_disk_ends_the_run_and_loses_only_what_was_under_way(tmp_path: Path) -> None:
    where, paid, told = tmp_path / "run.db", 0, []
    for limit in (150_000, 300_000, 0):
        done = warm.run([sys.executable, "-c", FULL, str(where), str(limit)], host="core")
        assert done.returncode == 0, done.stderr
        paid += int(done.stdout)
        told.append(done.stderr)
        if limit:
            assert "Traceback" not in done.stderr
            assert f"{where} cannot be written: " in done.stderr
            assert "Make room, then go on: what was recorded before is in it" in done.stderr
    assert told[-1] == ""
    readings = anyio.run(
        lambda: drive(EBBernstein(Design.of_items(6), seed=4), _never, budget=1000, book=where)
    ).readings
    assert len(readings) == 1000
    assert 1000 <= paid <= 1000 + 2 * 4  # as many as were under way at each end were paid and not recorded
    assert {r.error for r in readings if r.value is None} <= {LOST}


async def _never(request: Request) -> float:
    raise AssertionError("nothing is left to ask")


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    where = tmp_path / "run.db"
    book = Book(EBBernstein(DESIGN), Budget(40), Address(path=where))
    book.trade((), 1)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    book.close()
    assert set(modes.values()) == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]
