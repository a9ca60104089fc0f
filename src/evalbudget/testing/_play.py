"""Runs a sampler against made-up scores, in any order of completion, without a host."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import pytest

from evalbudget._version import __version__
from evalbudget.design import Cell, Reading
from evalbudget.journal import Header, Journal
from evalbudget.sampler import Sampler

T = TypeVar("T")
Score = Callable[[Cell], float | None]
"""The value of a cell, None for a failure; a function of the cell alone, so that order does not matter."""


@lru_cache(maxsize=100_000)
def gaussian(cell: Cell) -> float:
    """A score whose mean and spread differ between items."""
    noise = random.Random(f"{cell.model}/{cell.item}/{cell.epoch}/{cell.rater}")
    return noise.gauss(0.1 * cell.item + 0.05 * cell.model, 0.1 + 0.4 * (cell.item % 3))


@lru_cache(maxsize=100_000)
def fails(cell: Cell) -> bool:
    """Whether a cell has no score; those of item 1 more often."""
    return random.Random(f"fails {cell}").random() < (0.6 if cell.item == 1 else 0.15)


def play(
    sampler: Sampler,
    n_requests: int,
    *,
    score: Score = gaussian,
    concurrency: int = 1,
    order: random.Random | None = None,
    cost: Callable[[Cell], float] = lambda cell: 1.0,
) -> Journal:
    """Ask until ``n_requests`` were handed out or the sampler stops, and answer all of them.

    Args:
        sampler: to play with; what is pending already is answered too.
        n_requests: in all, those of before included.
        score: of each cell.
        concurrency: requests in flight.
        order: which request in flight comes back next; None for the oldest.
        cost: of each cell, with or without a score.

    Returns:
        What happened here.
    """
    journal = Journal(Header.of(sampler, __version__))
    in_flight = list(sampler.pending)
    while True:
        while len(in_flight) < concurrency and sampler.asked < n_requests:
            asked = sampler.ask(1)
            if not asked:
                break
            for request in asked:
                in_flight.append(request)
                journal.ask(request)
        if not in_flight:
            return journal
        request = in_flight.pop(order.randrange(len(in_flight)) if order else 0)
        reading = Reading(request, score(request.cell), cost(request.cell))
        sampler.tell([reading])
        journal.tell(reading)


def in_other_worlds(found: Callable[[], T]) -> list[T]:
    """The same twice, with other global random states and clocks, which must change nothing.

    Raises:
        AssertionError: it changed a global random state.
    """
    all_found = []
    state = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        for seed in (1, 2):
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
            with pytest.MonkeyPatch.context() as patch:
                for clock in ("time", "monotonic", "perf_counter"):
                    patch.setattr(time, clock, lambda seed=seed: 1e6**seed)
                all_found.append(found())
            assert before == (random.getstate(), repr(np.random.get_state()))  # noqa: NPY002
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])  # noqa: NPY002
    return all_found
