"""What all samplers of pairs share: the order of a pair's comparisons, rounds, failures, what is proved."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from evalbudget.cells import Cells, Planned, Stop
from evalbudget.design import Cell, Design, Reading
from evalbudget.errors import Choice, InvalidInputError
from evalbudget.sampler import Kind, Option, Sampler, SamplerOptions
from evalbudget.statistics import BoolArray, FloatArray, IntArray, check_delta
from evalbudget_pairwise._proof import PairEvidence, beats, winner

PAIRS = Kind(
    "pairs",
    "decides which answers a judge compares two by two: evalbudget inspect pairwise or lm-eval pairwise",
)
"""Answers of two models to an item, in one order or the other: which is preferred."""

_BOTH_EVERY = 10
"""One item in so many is shown in both orders at once, which tells how often verdicts flip."""
_SHARE = 8
"""A pair is given one comparison in so many of those it had, if that is more than a batch."""
_LEAST_MODELS = 2


class Orders(Choice):
    """In which orders an item's two answers are shown."""

    FRESH = "fresh"
    """One order, another from item to item; the other orders once a pair has used up the items."""
    BOTH = "both"
    """Both, one after the other."""


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


class PairOptions(SamplerOptions, total=False):
    """What every sampler of pairs takes besides its own arguments; see :class:`PairSampler`."""

    orders: str
    delta: float
    until_proved: bool
    batch: int


def duels(items: Sequence[str], models: Sequence[str], judge: str) -> Design:
    """The design of comparisons: every two models in both orders stand where others have models.

    Args:
        items: names.
        models: names, at least two.
        judge: who compares.

    Raises:
        InvalidInputError: fewer than two models.
    """
    if len(models) < _LEAST_MODELS:
        raise InvalidInputError(
            f"{len(models)} model: a preference is between two; give the answers of another one"
        )
    if any("\n" in model for model in models):
        models = [json.dumps(model, ensure_ascii=False) for model in models]
    named = tuple(f"{first}\n{second}" for first, second in permutations(models, 2))
    return Design(tuple(items), named, (judge,))


class PairSampler(Sampler):
    """Compares answers of models two by two, each pair, item and order once; an author writes :meth:`plan`.

    The design is one of :func:`duels`. Every pair goes through one sequence of comparisons that no verdict
    changes: the items in one random order, the model that is shown first alternating, one item in ten in
    both orders at once; then the orders that are left. A sampler only decides how far each pair gets. With
    ``orders="both"`` every item is shown in both orders at once.

    Why one order: n items in one order each tell more than n / 2 in both, unless a judge's position effect
    differs from item to item more than the items themselves do (:mod:`evalbudget_pairwise._position`). What
    position does on average cancels either way.

    A round is the next comparisons of some pairs. The next one is planned when all of them were read or
    closed, so decisions do not depend on who answers first.

    Args:
        design: see :func:`duels`.
        orders: ``fresh`` or ``both``.
        delta: probability that any "A beats B" that is proved is wrong, at whatever moment one looks.
        until_proved: stop once a winner is proved, or once none can be.
        batch: comparisons that a pair is given at a time, or one in 8 of those it had if that is more.
        common: see Sampler.

    Raises:
        InvalidInputError: the design is none of duels, a batch below 1, delta is no probability.
        UnknownNameError: other orders.
    """

    kind = PAIRS
    _common: ClassVar[Any] = PairOptions

    def __init__(
        self,
        design: Design,
        *,
        orders: str = Orders.FRESH.value,
        delta: float = 0.05,
        until_proved: bool = False,
        batch: int = 8,
        options: Mapping[str, Option] = MappingProxyType({}),
        **common: Unpack[SamplerOptions],
    ) -> None:
        own: dict[str, Option] = {"orders": orders, "batch": batch}
        super().__init__(design, options={**options, **own}, **common)
        self.orders = Orders.named(orders)
        self.delta = check_delta(delta)
        self.until_proved = until_proved
        self.n_models = k = _models_of(design)
        if design.n_raters != 1:
            raise InvalidInputError(f"{self.name} asks one judge; got {self._shape()}")
        if batch < 1:
            raise InvalidInputError(f"{self.name} got batch={batch}; give 1 comparison or more")
        self.batch = batch
        self.pairs = list(combinations(range(k), 2))
        self._ordered = list(permutations(range(k), 2))
        self._pair = np.array([self.pairs.index((min(both), max(both))) for both in self._ordered])
        self._a_first = np.array([first < second for first, second in self._ordered])
        order = np.random.default_rng([self.seed, 0]).permutation(design.n_items)
        self._sequence = [self._sequence_of(pair, order) for pair in range(len(self.pairs))]
        self._seen = Note.start(k)  # the evidence as last looked at

    # what hosts may look at

    @property
    def minimum_readings(self) -> int:
        """Every pair in both orders."""
        return 2 * len(self.pairs)

    @property
    def proved(self) -> FloatArray:
        """1 where the row's model is proved to beat the column's, shape (n_models, n_models)."""
        return beats(self._seen.log, self.delta)

    @property
    def winner(self) -> int | None:
        """The model that is proved to beat every other one."""
        return winner(self.proved)

    def shown(self, cell: Cell) -> tuple[int, int]:
        """Which model's answer is shown first, and which second."""
        return self._ordered[cell.model]

    @cached_property
    def _places(self) -> IntArray:
        places: IntArray = np.zeros((self.design.n_models, self.design.n_items), dtype=np.int64)
        for model, item in self._sequence:
            places[model, item] = np.arange(item.size)
        return places

    def place(self, cell: Cell) -> int:
        """Where a comparison stands in the sequence of its pair, whenever it was answered."""
        return int(self._places[cell.model, cell.item])

    # what an author writes

    @abstractmethod
    def plan(self, table: Table, last: Note | None) -> Round | Stop:
        """How many comparisons each pair gets next, as a function of what is known and of nothing else.

        Args:
            table: every comparison that was asked; all rounds are finished.
            last: the note of the round before; None at the start. Neither is written to.
        """

    # what an author may use

    def looked(self, table: Table, last: Note | None) -> Note:
        """The evidence now."""
        return (last or Note.start(self.n_models)).after(table)

    def why_over(self, table: Table, note: Note) -> str:
        """The reason if there is nothing left to ask or to find out; empty otherwise."""
        if self.until_proved and table.begun.any():
            proved = beats(note.log, self.delta)
            if winner(proved) is not None:
                return "a winner is proved"
            if (proved.sum(axis=0) > 0.0).all():
                return "every model is proved to be beaten by another one, so there is no winner"
        return "" if table.open else "every comparison was asked in both orders"

    def portion(self, table: Table, pair: int) -> int:
        """How many comparisons a pair is given at a time."""
        return max(self.batch, int(table.begun[pair]) // _SHARE)

    # what a book calls

    note_kinds = (Note,)

    def decide(self, cells: Cells, last: Note | None) -> Planned | Stop:
        """The next comparisons; see :class:`~evalbudget.sampler.Sampler`."""
        table = self._table_of(cells)
        planned = self.plan(table, last)
        if isinstance(planned, Stop):
            return planned
        parts = [self._sequence[p][:, table.begun[p] :][:, :n] for p, n in planned.portions.items()]
        turn = np.concatenate([np.arange(part.shape[1]) for part in parts])
        model, item = np.concatenate(parts, axis=1)[:, np.argsort(turn, kind="stable")]
        return Planned(model, item, cells.n_rounds, planned.note)

    def look(self, cells: Cells, last: Note | None) -> None:
        """For :attr:`proved` and :attr:`winner`."""
        self._seen = (last or Note.start(self.n_models)).after(self._table_of(cells))

    def _table_of(self, cells: Cells) -> Table:
        pair, a_first = self._pair[cells.model], self._a_first[cells.model]
        return Table(
            pairs=self.pairs,
            pair=pair,
            item=cells.item,
            a_first=a_first,
            value=np.where(a_first, cells.value, 1.0 - cells.value),
            begun=np.bincount(pair, minlength=len(self.pairs)),
            length=2 * self.design.n_items,
        )

    # what a driver calls

    def check(self, reading: Reading) -> None:
        """Refuse what is no preference.

        Raises:
            InvalidInputError: the value is outside of 0 to 1.
        """
        if reading.value is not None and not 0.0 <= reading.value <= 1.0:
            raise InvalidInputError(
                f"a preference of {reading.value:g} is outside of score_range, 0 to 1: give 1 where the "
                "first answer was better, 0 where the second was, 0.5 for a tie"
            )

    def _sequence_of(self, pair: int, order: IntArray) -> IntArray:
        """Numbers of the ordered pair and of the item of each comparison, shape (2, 2 n_items)."""
        place = np.arange(order.size)[:, None]
        sides = np.flatnonzero(self._pair == pair)
        model = sides[(place + pair + self.seed + np.array([0, 1])) % 2]
        both = (place % _BOTH_EVERY == 0) | (self.orders is Orders.BOTH)
        later = ~both & np.array([False, True])
        return np.stack([model.ravel(), np.repeat(order, 2)])[:, np.argsort(later.ravel(), kind="stable")]


def _models_of(design: Design) -> int:
    k = (1 + math.isqrt(1 + 4 * design.n_models)) // 2
    if k < _LEAST_MODELS or k * (k - 1) != design.n_models:
        raise InvalidInputError(
            f"{design.n_models} is no number of ordered pairs (2, 6, 12, 20, ...); make the design by "
            "evalbudget_pairwise.samplers.duels"
        )
    return k
