"""Section ``contention``: what a turn at the store takes here, and what follows for many workers."""

from __future__ import annotations

import heapq
import random
import tempfile
import time
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from evalbudget import Reading
from judges_sections.found import Found, Table, Target
from postgresql_server import server, why_not
from scale_sections import worker

_SECONDS = 120.0
"""Simulated."""
_HANDS = 10
_READINGS = 100_000_000


@dataclass(frozen=True)
class Constants:
    """Measured here.

    Attributes:
        turn: seconds that a turn takes with nothing to do.
        step: seconds for each ask or tell of one's own, beyond that.
        read: seconds for each ask or tell of others, to read what came of it.
    """

    turn: float
    step: float
    read: float


def measured(quick: bool) -> Constants:
    """One worker alone at the store, and a second one that reads what the first did."""
    turns = 20 if quick else 400
    with tempfile.TemporaryDirectory() as folder, nullcontext() if why_not() else server() as there:
        store = str(Path(folder) / "store.db") if there is None else f"{there.url}#constants"
        first = worker.opened(store, 100 * turns)
        second = worker.opened(store, 100 * turns)
        first.trade((), 1)  # until there is a round each turn reads everything
        started = time.perf_counter()
        for _ in range(turns):
            first.trade((), 0)
        turn = (time.perf_counter() - started) / turns
        started = time.perf_counter()
        for _ in range(turns // 4):
            first.trade([Reading(request, 0.5) for request in first.trade((), 50)], 0)
        own = (time.perf_counter() - started) / (turns // 4)
        started = time.perf_counter()
        second.trade((), 0)
        read = (time.perf_counter() - started) / (100 * (turns // 4))
        first.close()
        second.close()
    return Constants(turn, max(own - 2 * turn, 0.0) / 100, read)


@dataclass(frozen=True)
class Outcome:
    """Of a simulation.

    Attributes:
        readings: in a second.
        held: share of the time that somebody has the store.
        idle: share of the time that a hand waits for the store instead of a model.
        reading: share of a processor that each worker takes to read what others did.
    """

    readings: float
    held: float
    idle: float
    reading: float


def simulated(
    constants: Constants, *, workers: int, call: float, seconds: float = _SECONDS, seed: int = 0
) -> Outcome:
    """Workers with ten calls at a time each, whose lengths vary by half; one at the store at a time.

    Args:
        constants: of the store.
        workers: how many.
        call: mean seconds of a call of the model.
        seconds: simulated.
        seed: of the lengths of calls.
    """
    rng = random.Random(seed)
    back: list[tuple[float, int]] = []  # when a call comes back, and whose it is
    arrived, waiting = [0] * workers, [False] * workers
    seen, steps, done, free_at, held, reading, idle = [0] * workers, 0, 0, 0.0, 0.0, 0.0, 0.0
    since: list[list[float]] = [[] for _ in range(workers)]
    line: deque[int] = deque()
    for each in range(workers):
        for _ in range(_HANDS):
            heapq.heappush(back, (rng.uniform(0.5, 1.5) * call * rng.random(), each))
    now = 0.0
    while now < seconds:
        if line and (not back or free_at <= back[0][0]):
            each = line.popleft()
            begin = max(free_at, max(since[each][:1]))
            # most of what was missed is read while others are at the store
            missed, own = steps - seen[each], 2 * arrived[each]
            taken = constants.turn + constants.step * own
            free_at = now = begin + taken
            held, reading = held + taken, reading + constants.read * missed
            idle += sum(free_at - at for at in since[each])
            steps, done = steps + own, done + arrived[each]
            seen[each] = steps
            for _ in range(arrived[each]):
                heapq.heappush(back, (free_at + rng.uniform(0.5, 1.5) * call, each))
            arrived[each], waiting[each] = 0, False
            since[each] = []
        else:
            now, each = heapq.heappop(back)
            arrived[each] += 1
            since[each].append(now)
            if not waiting[each]:
                waiting[each] = True
                line.append(each)
    hands = workers * _HANDS * seconds
    return Outcome(done / seconds, min(1.0, held / seconds), idle / hands, reading / seconds / workers)


def contention(quick: bool) -> Found:
    """Constants, and simulations that are made of them."""
    constants = measured(quick)
    rows = []
    hundred: Outcome | None = None
    for workers in (4, 16, 100, 400):
        for call in (0.5, 2.0, 10.0):
            found = simulated(constants, workers=workers, call=call, seconds=15.0 if quick else _SECONDS)
            hundred = found if (workers, call) == (100, 2.0) else hundred
            rows.append(
                (
                    f"{workers}",
                    f"{call:g}",
                    f"{workers * _HANDS / call:,.0f}",
                    f"{found.readings:,.0f}",
                    f"{found.held:.0%}",
                    f"{found.idle:.1%}",
                    f"{found.reading:.1%}",
                )
            )
    assert hundred is not None
    join = 2 * _READINGS * constants.read
    return Found(
        "What one turn at the store takes here, and a simulation of workers with 10 calls at a time each "
        "that share it. One worker has the store at a time; what others did it reads before.",
        (
            *("workers", "seconds a call", "readings a second wanted", "had"),
            *("store in use", "hands idle for the store", "of a processor, each worker"),
        ),
        tuple(rows),
        tables=(
            Table(
                "Constants",
                ("what", "measured"),
                (
                    ("a turn with nothing to do", f"{1e3 * constants.turn:.2f} ms"),
                    ("an ask or a tell of one's own", f"{1e6 * constants.step:.0f} µs"),
                    ("an ask or a tell of another worker, read", f"{1e6 * constants.read:.0f} µs"),
                    (f"to join after {_READINGS:,} readings", f"{join / 60:,.0f} minutes"),
                ),
            ),
        ),
        targets=(
            Target(
                "100 workers with calls of 2 s lose less than 5% of their time to the store",
                f"{hundred.idle:.1%}",
                hundred.idle < 0.05,
            ),
        ),
    )
