"""What all samplers of pairs share: the order of a pair's comparisons, rounds, failures, what is proved."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations, zip_longest
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np

from evalbudget.cells import Cells, Planned
from evalbudget.design import Cell, Design, Reading
from evalbudget.errors import Choice, InvalidInputError
from evalbudget.pairwise._proof import beats, winner
from evalbudget.pairwise.samplers._rounds import Note, Round, Stop, Table
from evalbudget.sampler import Kind, Option, Sampler, SamplerOptions
from evalbudget.statistics._best_proof import check_delta
from evalbudget.statistics._bounds import FloatArray, IntArray

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
    differs from item to item more than the items themselves do (:mod:`evalbudget.pairwise._position`). What
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

    kind = Kind.PAIRS
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
        self.n_models = _models_of(design)
        if design.n_raters != 1:
            raise InvalidInputError(f"{self.name} asks one judge; got {self._shape()}")
        if batch < 1:
            raise InvalidInputError(f"{self.name} got batch={batch}; give 1 comparison or more")
        self.batch = batch
        self.pairs = list(combinations(range(self.n_models), 2))
        self._pair_of = {pair: n for n, pair in enumerate(self.pairs)}
        self._pair_number = np.zeros((self.n_models, self.n_models), np.int64)
        for pair, n in self._pair_of.items():
            self._pair_number[pair] = n
        self._number = {pair: n for n, pair in enumerate(permutations(range(self.n_models), 2))}
        order = np.random.default_rng([self.seed, 0]).permutation(design.n_items).tolist()
        self._sequence = [self._sequence_of(pair, order) for pair in range(len(self.pairs))]
        self._length = 2 * design.n_items
        self._places: dict[Cell, int] = {}
        self._seen = Note.start(self.n_models)  # the evidence as last looked at

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
        a, b = divmod(cell.model, self.n_models - 1)
        return a, b + (b >= a)

    def place(self, cell: Cell) -> int:
        """Where a comparison stands in the sequence of its pair, whenever it was answered."""
        if not self._places:
            for cells in self._sequence:
                self._places |= {each: place for place, each in enumerate(cells)}
        return self._places[cell._replace(epoch=0)]

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
        rows = self._portions(planned, table.begun)
        turns = [cell for turn in zip_longest(*rows) for cell in turn if cell is not None]
        model, item = (np.array([cell[at] for cell in turns], np.int64) for at in (0, 1))
        return Planned(model, item, cells.n_rounds, planned.note)

    def look(self, cells: Cells, last: Note | None) -> None:
        """For :attr:`proved` and :attr:`winner`."""
        self._seen = (last or Note.start(self.n_models)).after(self._table_of(cells))

    def _table_of(self, cells: Cells) -> Table:
        first, second = self._shown(cells.model)
        pair = self._pair_number[np.minimum(first, second), np.maximum(first, second)]
        a_first = first < second
        return Table(
            pairs=self.pairs,
            pair=pair,
            item=cells.item,
            a_first=a_first,
            value=np.where(a_first, cells.value, 1.0 - cells.value),
            begun=np.bincount(pair, minlength=len(self.pairs)),
            length=self._length,
        )

    def _shown(self, model: IntArray) -> tuple[IntArray, IntArray]:
        a, b = np.divmod(model, self.n_models - 1)
        return a, b + (b >= a)

    def _portions(self, planned: Round, begun: IntArray) -> list[list[Cell]]:
        return [self._sequence[p][begun[p] : begun[p] + n] for p, n in planned.portions.items()]

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

    def _sequence_of(self, pair: int, order: Sequence[int]) -> list[Cell]:
        a, b = self.pairs[pair]
        sides = self._number[a, b], self._number[b, a]
        now: list[Cell] = []
        later: list[Cell] = []
        for place, item in enumerate(order):
            first = (place + pair + self.seed) % 2
            now.append(Cell(sides[first], item))
            both = self.orders is Orders.BOTH or place % _BOTH_EVERY == 0
            (now if both else later).append(Cell(sides[1 - first], item))
        return now + later


def _models_of(design: Design) -> int:
    k = (1 + math.isqrt(1 + 4 * design.n_models)) // 2
    if k < _LEAST_MODELS or k * (k - 1) != design.n_models:
        raise InvalidInputError(
            f"{design.n_models} is no number of ordered pairs (2, 6, 12, 20, ...); make the design by "
            "evalbudget.pairwise.samplers.duels"
        )
    return k
