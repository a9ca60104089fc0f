"""What a sampler of pairs is asked and what it answers: comparisons so far, and the next round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evalbudget.cells import Stop
from evalbudget.pairwise._proof import PairEvidence
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

__all__ = ["Note", "Round", "Stop", "Table"]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Every comparison that rounds asked for, those of a pair in the order of its sequence.

    Attributes:
        pairs: the two models of each pair, the first-named one first.
        pair: of each comparison, shape (k,).
        item: of each, same shape.
        a_first: whether the first-named model was shown first, same shape.
        value: for the first-named model, in [0, 1], same shape; nan if there is none.
        begun: comparisons that rounds asked of each pair, shape (n_pairs,).
        length: of each pair's sequence.
    """

    pairs: list[tuple[int, int]]
    pair: IntArray
    item: IntArray
    a_first: BoolArray
    value: FloatArray
    begun: IntArray
    length: int

    @property
    def open(self) -> list[int]:
        """Pairs that have comparisons left."""
        return np.flatnonzero(self.begun < self.length).tolist()

    def of(self, pair: int) -> tuple[IntArray, BoolArray, FloatArray]:
        """Item, order and value of what was read of a pair."""
        own = (self.pair == pair) & np.isfinite(self.value)
        return self.item[own], self.a_first[own], self.value[own]


class Note(NamedTuple):
    """The evidence at the last plan, so that only pairs with news are looked at again.

    Attributes:
        log: log evidence that the row's model beats the column's, shape (n_models, n_models).
        read: comparisons of each pair that it rests on, shape (n_pairs,).
    """

    log: FloatArray
    read: IntArray

    @classmethod
    def start(cls, n_models: int) -> Note:
        """Of nothing."""
        pairs = n_models * (n_models - 1) // 2
        return cls(np.zeros((n_models, n_models)), np.zeros(pairs, np.int64))

    def after(self, table: Table) -> Note:
        """The evidence of what is read now."""
        there = table.pair[np.isfinite(table.value)]
        read = np.bincount(there, minlength=len(table.pairs))
        log = self.log.copy()
        for pair in np.flatnonzero(read != self.read).tolist():
            a, b = table.pairs[pair]
            item, a_first, value = table.of(pair)
            log[a, b], log[b, a] = PairEvidence.of(item.tolist(), a_first.tolist(), value.tolist()).both
        return Note(log, read)


class Round(NamedTuple):
    """How many comparisons each of some pairs gets next, and what the plan after them must know."""

    portions: Mapping[int, int]
    note: Note
