"""One measurement in a process of its own, whose memory is that of nothing else.

::

    python -m load_sections.measured race '{"sampler": "race", "models": 500, ...}'
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import tempfile
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from evalbudget import Budget, Design, Sampler
from evalbudget.book import Book, drive
from evalbudget.design import Reading, Request
from evalbudget.hooks import plugins
from evalbudget.races import RaceConfig, RacePurchase
from evalbudget.sampler import Kind
from evalbudget.store import Address

_UNIT = 1024**2 if sys.platform == "darwin" else 1024  # of ru_maxrss, to MiB


def made(name: str, kind: Kind, design: Design) -> Sampler:
    """A registered sampler with its defaults."""
    sampler: Sampler = plugins().sampler(name, kind)(design, seed=1)
    return sampler


def told(seconds: array[float], whole: float) -> dict[str, float]:
    """What is printed of the times of single decisions, and of the process."""
    times = np.frombuffer(seconds, dtype=np.float64)
    return {
        "calls": float(times.size),
        "seconds": whole,
        "mean": float(times.mean()),
        "p99": float(np.quantile(times, 0.99)),
        "longest": float(times.max()),
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _UNIT,
    }


def book(readings: int, at_once: int) -> dict[str, float]:
    """What a reading costs in a book on disk: so many are taken in, and as many handed out, at a time."""
    sampler = made("uniform", Kind.REPEATS, Design.of_items(1000))
    seconds = array("d")
    with tempfile.TemporaryDirectory() as folder:
        kept = Book(sampler, Budget(readings), Address(path=Path(folder) / "book.db"))
        begun = perf_counter()
        came: list[Reading] = []
        while not kept.finished:
            start = process_time()
            requests = kept.trade(came, at_once)
            seconds.extend([(process_time() - start) / at_once] * len(requests))
            came = [Reading(request, 0.5) for request in requests]
        kept.close()
        return told(seconds, perf_counter() - begun)


def decisions(sampler: Sampler, calls: int, score: Callable[[Request], float]) -> dict[str, float]:
    """One score after the other, as a host asks for them when an answer comes in; on a book in memory."""
    seconds = array("d")
    begun = perf_counter()
    kept = Book(sampler, Budget(calls))
    came: list[Reading] = []
    while True:
        start = perf_counter()
        requests = kept.trade(came, 1)
        seconds.append(perf_counter() - start)
        if not requests:
            break
        came = [Reading(request, score(request)) for request in requests]
    return told(seconds, perf_counter() - begun)


def items(sampler: str, items: int, beyond: int) -> dict[str, float]:
    """A run over so many items, as far past its first readings as ``beyond`` says; five levels of scores."""
    one = made(sampler, Kind.REPEATS, Design.of_items(items))
    draws = random.Random(2)
    first = items * max(1, one.fixed_repeats)
    return decisions(one, first + beyond, lambda _: float(draws.randrange(5)))


def race(sampler: str, models: int, items: int, evaluations: int) -> dict[str, float]:
    """Models whose chances of being right lie evenly between .3 and .7; ten cells of each at once."""
    names, documents = [f"model {m}" for m in range(models)], list(map(str, range(items)))
    config = RaceConfig.of(budget=evaluations, sampler=sampler, seed=1)
    draws, seconds = random.Random(2), array("d")
    begun = perf_counter()
    bought = RacePurchase(config, names, documents, widths=[10] * models)
    flying = deque(bought.wanted())
    while flying:
        asked = flying.popleft()
        value = float(draws.random() < 0.3 + 0.4 * asked.arm / models)
        start = perf_counter()
        bought.completed(asked.arm, asked.key, value)
        flying += bought.wanted()
        seconds.append(perf_counter() - start)
    return told(seconds, perf_counter() - begun)


def concurrent(sampler: str, at_once: int, items: int, readings: int, latency: float) -> dict[str, float]:
    """So many calls under way in one process, of half to one and a half times the latency; with a book."""
    one = made(sampler, Kind.REPEATS, Design.of_items(items))
    seconds, waiting, most, draws = array("d"), 0, 0, random.Random(2)
    decide = one.decide

    def timed(*given: Any) -> Any:
        start = perf_counter()
        planned = decide(*given)
        seconds.append(perf_counter() - start)
        return planned

    one.decide = timed  # type: ignore[method-assign,assignment]

    async def answer(request: Request) -> float:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(latency * draws.uniform(0.5, 1.5))
        waiting -= 1
        return float(draws.randrange(5))

    with tempfile.TemporaryDirectory() as folder:
        path, begun = Path(folder) / "book.db", perf_counter()
        record = asyncio.run(drive(one, answer, budget=readings, concurrency=at_once, book=path))
        found = told(seconds, perf_counter() - begun)
    return found | {"most": float(most), "spent": record.spent}


def arms(**sizes: Any) -> dict[str, float]:
    """A race on lm-eval with several arms at once."""
    from load_sections.arms_at_once import arms_at_once  # takes seconds

    return arms_at_once(**sizes)


def slow(**sizes: Any) -> dict[str, float]:
    """Budgeted runs on models that take their time, against plain ones."""
    from load_sections.slow_calls import slow_calls  # takes seconds

    return slow_calls(**sizes)


MEASUREMENTS: dict[str, Callable[..., dict[str, float]]] = {
    "book": book,
    "items": items,
    "race": race,
    "concurrent": concurrent,
    "arms": arms,
    "slow": slow,
}

if __name__ == "__main__":
    print(json.dumps(MEASUREMENTS[sys.argv[1]](**json.loads(sys.argv[2]))))
