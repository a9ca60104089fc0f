"""Section ``workers``: processes that share one budget through one store, some killed on the way."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from evalbudget.cells import CAME
from judges_sections.found import Found, Target
from postgresql_server import server, why_not
from scale_sections import worker

RATE = 2_000.0
"""Asks and tells in a second."""
_LOOK = 0.25


@dataclass(frozen=True)
class Campaign:
    """What one store went through.

    Attributes:
        rate: asks and tells in a second, while all workers were there.
        turns: times in a second that a worker had the store.
        spent: of the budget, scores.
        readings: that came back.
        lost: calls of killed workers, which count.
        twice: cells with more than one reading.
        kills: of workers.
        promised: at the end.
    """

    rate: float
    turns: float
    spent: float
    readings: int
    lost: float
    twice: int
    kills: int
    promised: float


def campaign(store: str, *, workers: int, budget: int, width: int, kills: int) -> Campaign:
    """Start the workers, kill some at random and start others, and read the store.

    Args:
        store: address of a store that is not there.
        workers: processes.
        budget: for all of them, scores.
        width: requests that a worker has at a time.
        kills: how many are killed.
    """
    rng = random.Random(1)
    command = [sys.executable, worker.__file__, store, str(budget), str(width)]
    watch = worker.opened(store, budget)
    running = [subprocess.Popen(command) for _ in range(workers)]
    seen: list[tuple[float, int, int]] = []
    killed = 0
    try:
        while any(each.poll() is None for each in running):
            watch.trade((), 0)
            cells = watch.cells()
            seen.append((time.monotonic(), cells.asked, int(cells.returned.sum())))
            due = budget * (killed + 1) / (kills + 2)
            if killed < kills and (cells.state == CAME).sum() > due:
                place = rng.randrange(workers)
                running[place].kill()
                running[place].wait()
                running[place] = subprocess.Popen(command)
                killed += 1
            time.sleep(_LOOK)
    finally:
        for each in running:
            each.kill()
            each.wait()
    calls = watch.calls()
    steady = [(at, asked + told) for at, asked, told in seen if 0.1 * budget < told < 0.9 * budget]
    if len(steady) < 2:  # of a tiny campaign too little was seen in the middle
        steady = [(seen[0][0], 0), (time.monotonic(), 2 * budget)]
    (first, before), (last, after) = steady[0], steady[-1]
    rate = (after - before) / max(last - first, 1e-9)
    read = Counter(called.reading.request.cell for called in calls if called.reading.value is not None)
    found = Campaign(
        rate,
        rate / (2 * width),
        watch.spent,
        read.total(),
        sum(called.reading.cost for called in calls if called.is_lost),
        sum(times > 1 for times in read.values()),
        killed,
        budget - watch.spent - watch.free,
    )
    watch.close()
    return found


def workers(quick: bool) -> Found:
    """Both kinds of store, each worker with as many requests at a time as stand in the table."""
    reason = why_not()
    plans = [("SQLite", 1 if quick else 4, 8), *([] if reason else [("PostgreSQL", 1 if quick else 16, 8)])]
    rows, exact = [], []
    rates: dict[str, float] = {}
    for kind, number, width in plans:
        budget = 2_000 if quick else 40_000
        with (
            tempfile.TemporaryDirectory() as folder,
            server() if kind == "PostgreSQL" else nullcontext() as there,
        ):
            store = str(Path(folder) / "store.db") if there is None else f"{there.url}#workers"
            found = campaign(store, workers=number, budget=budget, width=width, kills=0 if quick else 6)
        rates[kind] = found.rate
        exact.append(
            found.spent == found.readings + found.lost == budget and not found.promised and not found.twice
        )
        rows.append(
            (
                kind,
                f"{number}",
                f"{width}",
                f"{found.rate:,.0f}",
                f"{found.turns:,.0f}",
                f"{found.spent:,.0f} of {budget:,}",
                f"{found.lost:,.0f}",
                f"{found.kills}",
                f"{found.twice}",
            )
        )
    targets = [
        Target(
            "the budget is spent exactly, and no cell is read twice",
            f"{sum(exact)} of {len(exact)}",
            all(exact),
        )
    ]
    if "PostgreSQL" in rates:
        rate = rates["PostgreSQL"]
        targets.append(
            Target(
                f"16 processes ask and tell {RATE:,.0f} times a second on one PostgreSQL server",
                f"{rate:,.0f} a second",
                rate >= RATE,
            )
        )
    return Found(
        "Processes that share a budget: each tells what it was given and asks for as many again, without "
        f"waiting for any model. {worker.ITEMS:,} items, sampler {worker.sampler().name}; workers are killed "
        f"at random and others started, and a lease is {worker.LEASE:g} s. Workers and server share the "
        "processors of this machine.",
        (
            *("store", "workers", "requests at a time", "asks and tells a second", "turns a second"),
            *("scores spent", "lost with killed workers", "kills", "cells read twice"),
        ),
        tuple(rows),
        targets=tuple(targets),
        notes=() if reason is None else (f"PostgreSQL was not measured: {reason}.",),
    )
