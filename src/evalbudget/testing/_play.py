"""Has a book buy made-up scores for a sampler, in any order of completion, without a host."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import pytest

from evalbudget.book import Book
from evalbudget.budget import Budget, Unit
from evalbudget.design import Cell, Reading, Request
from evalbudget.sampler import Sampler

T = TypeVar("T")
_ENDLESS = 1e300
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


class Played(NamedTuple):
    """What came of it.

    Attributes:
        readings: of every call, in the order of asking.
        attempts: which call of its model and item each was, from 0.
        closed: what was given up, as the sampler's ``closes_as`` names it.
        stopped: why the sampler asks nothing more; None where it would.
    """

    readings: tuple[Reading, ...]
    attempts: tuple[int, ...]
    closed: tuple[Cell, ...]
    stopped: str | None


def play(
    sampler: Sampler,
    n_requests: int,
    *,
    score: Score = gaussian,
    concurrency: int = 1,
    together: int = 1,
    order: random.Random | None = None,
    cost: Callable[[Cell], float] = lambda cell: 1.0,
) -> Played:
    """Have a book ask until ``n_requests`` were handed out or the sampler stops, and answer all of them.

    Args:
        sampler: fresh; it is looked at when all is over.
        n_requests: in all.
        score: of each cell, whose ``epoch`` counts the calls of its model and item here.
        concurrency: requests in flight.
        together: how many of them come back at a time.
        order: which request in flight comes back next; None for the oldest.
        cost: of each cell, with or without a score.
    """
    book = Book(sampler, Budget(_ENDLESS, Unit.TOKENS))
    in_flight: list[Request] = []
    came: list[Reading] = []
    asked = 0
    while True:
        requests = book.trade(came, min(concurrency - len(in_flight), n_requests - asked))
        asked += len(requests)
        in_flight += requests
        if not in_flight:
            break
        came = []
        for _ in range(min(together, len(in_flight))):
            request = in_flight.pop(order.randrange(len(in_flight)) if order else 0)
            cell = request.cell._replace(epoch=book.attempt(request))
            came.append(Reading(request, score(cell), cost(cell)))
    book.look()
    calls = book.calls()
    stopped = book.stop_reason if book.finished else None
    found = Played(tuple(c.reading for c in calls), tuple(c.attempt for c in calls), book.closed, stopped)
    book.close()
    return found


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
