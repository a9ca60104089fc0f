"""What all samplers of pairs share: the order of a pair's comparisons, steps, failures, what is proved."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np

from evalbudget.design import Cell, Design, Reading
from evalbudget.errors import Choice, InvalidInputError
from evalbudget.pairwise._proof import PairEvidence, beats, winner
from evalbudget.sampler import Eligible, Kind, Option, Sampler, SamplerOptions
from evalbudget.statistics._best_proof import check_delta
from evalbudget.statistics._bounds import FloatArray

_BOTH_EVERY = 10
"""One item in so many is shown in both orders at once, which tells how often verdicts flip."""
_SHARE = 8
"""A pair is given one comparison in so many of those it had, if that is more than a batch."""
_SETTLED = 0.05
"""Error at which a pair counts as settled when the next one is planned."""
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
    named = tuple(f"{first}\n{second}" for first, second in permutations(models, 2))
    return Design(tuple(items), named, (judge,))


class PairSampler(Sampler):
    """Compares answers of models two by two, each pair, item and order at most once; see :meth:`_plan`.

    The design is one of :func:`duels`. Every pair goes through one sequence of comparisons that no verdict
    changes: the items in one random order, the model that is shown first alternating, one item in ten in
    both orders at once; then the orders that are left. A sampler only decides how far each pair gets. With
    ``orders="both"`` every item is shown in both orders at once.

    Why one order: n items in one order each tell more than n / 2 in both, unless a judge's position effect
    differs from item to item more than the items themselves do (:mod:`evalbudget.pairwise._position`). What
    position does on average cancels either way.

    The unit of decision is a step: the next comparisons of some pairs. The next one is planned when all of
    them were read or closed, so decisions do not depend on who answers first.

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
        self._number = {pair: n for n, pair in enumerate(permutations(range(self.n_models), 2))}
        order = np.random.default_rng([self.seed, 0]).permutation(design.n_items).tolist()
        self._sequence = [self._sequence_of(pair, order) for pair in range(len(self.pairs))]
        self._length = 2 * design.n_items
        self._places: dict[Cell, int] = {}
        self._begun = [0] * len(self.pairs)  # comparisons of the sequence that steps had
        self._value: dict[Cell, float] = {}  # at epoch 0
        self._shut: set[Cell] = set()
        self._out: set[Cell] = set()  # asked, not answered
        self._next_epoch: dict[Cell, int] = {}
        self._step: list[Cell] = []
        self._log: FloatArray = np.zeros((self.n_models, self.n_models))
        self._looked: list[tuple[int, int]] = [(0, 0)] * len(self.pairs)
        self._answered = [0] * len(self.pairs)

    # what hosts may look at

    @property
    def minimum_readings(self) -> int:
        """Every pair in both orders."""
        return 2 * len(self.pairs)

    @property
    def proved(self) -> FloatArray:
        """1 where the row's model is proved to beat the column's, shape (n_models, n_models)."""
        return self._beats(self.delta)

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
    def _plan(self) -> Mapping[int, int] | None:
        """How many comparisons each pair gets next, by its number; None after setting ``stop_reason``."""

    # what an author may use

    def _open(self) -> list[int]:
        """Pairs that have comparisons left."""
        return [pair for pair, begun in enumerate(self._begun) if begun < self._length]

    def _settled(self) -> FloatArray:
        """As :attr:`proved`, always at the same error: what is asked next does not depend on ``delta``."""
        return self._beats(_SETTLED)

    def _beats(self, delta: float) -> FloatArray:
        for pair in range(len(self.pairs)):
            self._look(pair)
        return beats(self._log, delta)

    def _portion(self, pair: int) -> int:
        return max(self.batch, self._begun[pair] // _SHARE)

    def _values(self, pair: int) -> tuple[list[int], list[bool], list[float]]:
        """Item, whether the first-named model was shown first, and its value, along the sequence."""
        a, b = self.pairs[pair]
        found: tuple[list[int], list[bool], list[float]] = ([], [], [])
        forward = self._number[a, b]
        for cell in self._sequence[pair][: self._begun[pair]]:
            value = self._value.get(cell)
            if value is not None:
                found[0].append(cell.item)
                found[1].append(cell.model == forward)
                found[2].append(value if cell.model == forward else 1.0 - value)
        return found

    # what a driver calls

    def tell(self, readings: Iterable[Reading]) -> None:
        """As :meth:`Sampler.tell`.

        Raises:
            InvalidInputError: a value is outside of 0 to 1; nothing of the readings is taken in.
        """
        told = list(readings)
        for reading in told:
            if reading.value is not None and not 0.0 <= reading.value <= 1.0:
                raise InvalidInputError(
                    f"a preference of {reading.value:g} is outside of score_range, 0 to 1: give 1 where the "
                    "first answer was better, 0 where the second was, 0.5 for a tie"
                )
        super().tell(told)

    def _next(self, eligible: Eligible | None) -> Cell | None:
        while True:
            open_ones = False
            for cell in self._step:
                if cell in self._value or cell in self._shut:
                    continue
                open_ones = True
                if cell not in self._out and (eligible is None or eligible(cell)):
                    return cell._replace(epoch=self._next_epoch.get(cell, 0))
            if open_ones or not self._next_step():
                return None

    def _next_step(self) -> bool:
        """Plan one; False if there is none."""
        plan = self._plan_or_stop()
        if plan is None:
            return False
        self._step = []
        rows = []
        for pair, count in plan.items():
            begun = self._begun[pair]
            rows.append(self._sequence[pair][begun : begun + count])
            self._begun[pair] = min(begun + count, self._length)
        for row in range(max(map(len, rows), default=0)):  # the first comparison of every pair first
            self._step += [cells[row] for cells in rows if row < len(cells)]
        return True

    def _plan_or_stop(self) -> Mapping[int, int] | None:
        if self.until_proved and self._step:
            proved = self.proved
            if winner(proved) is not None:
                self.stop_reason = "a winner is proved"
                return None
            if (proved.sum(axis=0) > 0.0).all():
                self.stop_reason = "every model is proved to be beaten by another one, so there is no winner"
                return None
        if not self._open():
            self.stop_reason = "every comparison was asked in both orders"
            return None
        return self._plan()

    def _asked(self, cell: Cell) -> None:
        key = cell._replace(epoch=0)
        self._out.add(key)
        self._next_epoch[key] = max(self._next_epoch.get(key, 0), cell.epoch + 1)

    def _learn(self, cell: Cell, value: float) -> None:
        key = cell._replace(epoch=0)
        self._out.discard(key)
        self._value[key] = value
        first, second = sorted(self.shown(key))
        self._answered[self._pair_of[first, second]] += 1

    def _failed(self, cell: Cell) -> None:
        self._out.discard(cell._replace(epoch=0))

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        (self._shut.discard if is_open else self._shut.add)(cell)

    def _look(self, pair: int) -> None:
        """Bring the evidence of a pair up to date."""
        seen = (self._begun[pair], self._answered[pair])
        if seen != self._looked[pair]:
            self._looked[pair] = seen
            a, b = self.pairs[pair]
            self._log[a, b], self._log[b, a] = PairEvidence.of(*self._values(pair)).both

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
