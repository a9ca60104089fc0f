"""What a sampler of repeats is asked and what it answers: readings so far, and the next round."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evalbudget.cells import Stop, Wait
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray
from evalbudget.statistics._judge_effects import judge_effects

__all__ = ["QUORUM", "Index", "Note", "Readings", "Round", "Stop", "Wait"]

QUORUM = 0.95
"""Of what was handed out, that must be in before what depends on it is planned."""

Index = Callable[[IntArray, IntArray], FloatArray]
"""How much one more reading of each of these items is wanted, after so many; larger first."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Every reading that was handed out, in order, and what may be asked.

    Attributes:
        item: of each, shape (n,).
        rater: who scores it, same shape.
        phase: in which it was handed out, same shape.
        value: its score, same shape; nan if it has none.
        cost: of each that came back, with or without a score, same shape; None where readings are counted.
        under_way: whether it may still come, same shape.
        is_open: whether an item may be asked, shape (n_items,).
        is_known: whether an item is known as well as it need be, same shape.
        left: how many more readings are paid for; None if that is not known.
    """

    item: IntArray
    rater: IntArray
    phase: IntArray
    value: FloatArray
    cost: FloatArray | None
    under_way: BoolArray
    is_open: BoolArray
    is_known: BoolArray
    left: int | None

    @property
    def expected(self) -> int | None:
        """How many readings there will be in all, if they go on to come as often as so far."""
        if self.left is None:
            return None
        came = int(self.is_read.sum())
        rate = came / self.settled if came else 1.0
        return came + round(rate * (self.left + self.item.size - self.settled))

    @property
    def n_asked(self) -> IntArray:
        """Readings of each item that have a score or may get one, shape (n_items,)."""
        return np.bincount(self.item[self.under_way | self.is_read], minlength=self.is_open.size)

    def least_read(self, order: IntArray) -> IntArray:
        """Open items with the fewest readings that have a score or may get one, in this order."""
        n = self.n_asked
        fewest = n[self.is_open].min()
        fitting: BoolArray = self.is_open & (n == fewest)
        return order[fitting[order]]

    def most_wanted(self, order: IntArray, size: int, index: Index) -> IntArray:
        """So many readings, each of the item with the largest index then, shape (size,).

        Among equals the item with the fewest readings comes first, then the first in the order. Items that
        are closed, or known, are left out.

        Args:
            order: all items, shape (n_items,).
            size: how many.
            index: of items that were read once or more.
        """
        items = order[(self.is_open & ~self.is_known)[order]]
        n = self.n_asked[items]
        urgency = np.where(n > 0, index(items, np.maximum(n, 1)), np.inf)
        best = np.lexsort((n, -urgency))[:size]  # no other can be among them
        heap = list(zip((-urgency[best]).tolist(), n[best].tolist(), best.tolist(), strict=True))
        found = []
        for _ in range(size if heap else 0):
            _, asked, i = heap[0]
            found.append(items[i])
            again = -float(index(items[i : i + 1], np.array([asked + 1]))[0])
            heapq.heapreplace(heap, (again, asked + 1, i))
        return np.array(found, dtype=np.int64)

    def moments(self, n_raters: int = 1, last_phase: int | None = None) -> tuple[IntArray, FloatArray]:
        """How often each item was read, and the sum of squares of its scores around their mean.

        What judges that take turns differ by is taken out of the scores.

        Args:
            n_raters: how many judges take turns.
            last_phase: leave out what was handed out after it.

        Returns:
            Two of shape (n_items,); the second in units of the square of the largest score.
        """
        there = self.is_read if last_phase is None else self.is_read & (self.phase <= last_phase)
        item, value = self.item[there], self.value[there]
        n: IntArray = np.bincount(item, minlength=self.is_open.size)
        if not item.size:
            return n, np.zeros(n.size)
        value = value / max(float(np.abs(value).max()), np.finfo(np.float64).tiny)
        if n_raters > 1:
            value = value - judge_effects(item, self.rater[there], value, n_raters)[self.rater[there]]
        mean = np.bincount(item, value, n.size) / np.maximum(n, 1)
        return n, np.asarray(np.bincount(item, (value - mean[item]) ** 2, n.size), dtype=np.float64)

    def out_of(self, phase: int) -> int:
        """How many of this phase must still come back."""
        return int(np.count_nonzero(self.under_way & (self.phase == phase)))

    @property
    def is_read(self) -> BoolArray:
        """Whether a reading has a score, shape (n,)."""
        return np.isfinite(self.value)

    @property
    def settled(self) -> int:
        """How many came back, with or without a score."""
        return int((~self.under_way).sum())

    def read_until(self, phase: int) -> int:
        """How many have a score or may get one, of this phase and those before it."""
        return int(np.count_nonzero((self.phase <= phase) & (self.under_way | self.is_read)))

    def missing_before(self, phase: int) -> int:
        """How many of the phases before this one must still come back until 95% of them have."""
        earlier = self.phase < phase
        flying, handed = (int(np.count_nonzero(earlier & these)) for these in (self.under_way, earlier))
        return max(0, flying - int((1.0 - QUORUM) * handed))


class Note(NamedTuple):
    """What a round was, to be given to the next plan.

    Attributes:
        phase: from 0; each of its readings carries it.
        begin: readings before this phase, as planned; with ``end`` it is for those who plan by them.
        end: readings at its end.
        is_head: whether it is one reading of each item, and the rest of the phase comes after it.
    """

    phase: int
    begin: int = 0
    end: int = 0
    is_head: bool = False


class Round(NamedTuple):
    """Items to ask, in this order, perhaps several times each."""

    item: IntArray
    note: Note
