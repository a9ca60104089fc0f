"""A run whose budget is money: readings of unknown cost, several in flight, dear ones under way longer."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asking import Asking
from evalbudget.design import Cell, Reading, Request
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.samplers import RepeatSampler

Floats = NDArray[np.float64]

Priced = Callable[[Cell], tuple[float, float]]
"""Score and cost of a reading."""

TWO_DECADES = float(np.log(100.0) / (2.0 * 1.959964))
"""Standard deviation of ln(cost) that puts a factor of 100 between the 2.5% and the 97.5% quantile."""


@dataclass
class Seen:
    """What a rule knows: costs of the readings that came back.

    Attributes:
        of_item: the largest of each item.
        costs: all of them.
        largest: of all.
        total: of all.
    """

    of_item: dict[int, float] = field(default_factory=dict)
    costs: list[float] = field(default_factory=list)
    largest: float = 0.0
    total: float = 0.0

    def add(self, cell: Cell, cost: float) -> None:
        """One came back."""
        self.of_item[cell.item] = max(self.of_item.get(cell.item, 0.0), cost)
        self.costs.append(cost)
        self.largest = max(self.largest, cost)
        self.total += cost


Rule = Callable[[Seen, Cell], float]
"""What to promise for a reading that is about to begin."""


def largest_seen(seen: Seen, cell: Cell) -> float:
    """The largest cost of all readings that came back."""
    return seen.largest


@dataclass(frozen=True, slots=True)
class Bought:
    """One run.

    Attributes:
        readings: that came back, in the order of asking.
        spent: money, that of readings cut off too.
        cut: readings begun that were lost because the money was used up.
    """

    readings: tuple[Reading, ...]
    spent: float
    cut: int = 0


def one_at_a_time(sampler: RepeatSampler, priced: Priced, budgets: Sequence[float]) -> list[Bought]:
    """Begin a reading while the largest cost so far fits; look at each budget where it would have ended.

    Args:
        sampler: fresh.
        priced: what comes back.
        budgets: money, increasing.
    """
    book, told = ArrayBook(sampler), list[Reading]()
    spent = largest = 0.0
    found: list[Bought] = []
    while True:
        while spent + largest > budgets[len(found)]:
            found.append(Bought(tuple(told), spent))
            if len(found) == len(budgets):
                return found
        asked = book.ask(1)
        assert asked is not None
        request = Request(len(told), Cell(item=int(asked.item[0]), epoch=int(asked.epoch[0])))
        reading = Reading(request, *priced(request.cell))
        book.tell(np.array([reading.value]), np.array([reading.cost]))
        told.append(reading)
        spent += reading.cost
        largest = max(largest, reading.cost)


def at_once(
    sampler: RepeatSampler, priced: Priced, budget: float, in_flight: int, rule: Rule | None = largest_seen
) -> Bought:
    """Several readings under way at once, each for as long as it costs; what is begun comes back.

    Args:
        sampler: fresh.
        priced: what comes back.
        budget: money.
        in_flight: readings under way at once.
        rule: what a reading is promised. One begins only if that is free, what is under way being promised by
            what is known now. None: it begins while there is money, and when there is none left all that are
            under way are cut off, and teach nothing.
    """
    seen, book = Seen(), Asking(sampler)
    spent = now = 0.0
    flying: list[tuple[float, int, Request, float, float]] = []
    told: list[Reading] = []
    waiting: Request | None = None
    while True:
        while len(flying) < in_flight:
            if waiting is None:
                (waiting,) = book.ask(1) or (None,)
            if waiting is None:
                break
            promised = 0.0
            if rule is not None and seen.costs:
                promised = sum(rule(seen, request.cell) for _, _, request, _, _ in flying)
                promised += rule(seen, waiting.cell)
            if promised > budget - spent or (not flying and spent >= budget):
                break
            score, cost = priced(waiting.cell)
            heapq.heappush(flying, (now + cost, waiting.id, waiting, now, score))
            waiting = None
        if not flying:
            return _sorted(told, spent)
        end, _, request, begun, score = heapq.heappop(flying)
        accrued = end - begun + sum(end - start for _, _, _, start, _ in flying)
        if rule is None and spent + accrued > budget:
            return _sorted(told, budget, cut=1 + len(flying))
        now = end
        spent += end - begun
        seen.add(request.cell, end - begun)
        told.append(Reading(request, score, end - begun))
        book.tell(told[-1])


def _sorted(told: list[Reading], spent: float, cut: int = 0) -> Bought:
    return Bought(tuple(sorted(told, key=lambda reading: reading.request.id)), spent, cut)
