"""Budgeted runs against plain ones on models that take their time: what waiting between rounds costs.

Latencies are log-normal, of one stream per run, the same for both ways; each pair of runs is one in turn with
the other, in this process.
"""

from __future__ import annotations

import asyncio
import logging
import random
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

Pair = tuple[Callable[[], None], Callable[[], None]]


class Latency:
    """Seconds of one call after another."""

    def __init__(self, draw: Callable[[random.Random], float]) -> None:
        self._draw = draw
        self.restart(0)

    def restart(self, seed: int) -> None:
        """From the first call of a run on."""
        self._rng = random.Random(seed)

    async def wait(self) -> bool:
        """As long as a call takes; whether its answer is right."""
        await asyncio.sleep(self._draw(self._rng))
        return self._rng.random() < 0.5


def paired(runs: Pair, times: int) -> dict[str, float]:
    """Medians of seconds of the plain run, of the budgeted one, and of their ratio."""
    plain, ours = runs
    for each in runs:
        each()  # imports, and data sets that are prepared once
    seconds = []
    for _ in range(times):
        found = []
        for each in (plain, ours):
            begun = perf_counter()
            each()
            found.append(perf_counter() - begun)
        seconds.append(found)
    return {
        "plain": statistics.median(p for p, _ in seconds),
        "ours": statistics.median(o for _, o in seconds),
        "ratio": statistics.median(o / p for p, o in seconds),
    }


def slow_calls(host: str, concurrent: int, items: int, repeats: int, times: int) -> dict[str, float]:
    """See :func:`paired`."""
    if host == "lm-eval":  # each host takes seconds to load
        from load_sections.slow_on_lm_eval import runs
    else:
        from load_sections.slow_on_inspect import runs
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as scratch:
        return paired(runs(Path(scratch), concurrent, items, repeats), times)
