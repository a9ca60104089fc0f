"""Samplers that ask the most urgent item next: warm-up, exact sums, the heap."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from itertools import zip_longest
from types import MappingProxyType
from typing import Unpack

import numpy as np

from evalbudget.design import Cell, Design
from evalbudget.errors import SamplerError
from evalbudget.repeats.samplers._base import ALL_CLOSED, JudgeOf, RepeatSampler
from evalbudget.repeats.samplers._goal import Goal
from evalbudget.repeats.samplers._heap import UrgencyHeap
from evalbudget.sampler import Allocation, Eligible, Option, SamplerOptions
from evalbudget.statistics._costs import Costs
from evalbudget.statistics._judge_effects import judge_effects

# Scores are summed as integer multiples of 2^-50: integer sums do not depend on the order of completion.
_SHIFT = 50
_ONE = float(2**_SHIFT)
_HUGE = float(2**900)
_SHIFTED = 2**_SHIFT  # an integer: so divided, even huge sums come out as floats
_LARGEST = 1e290  # so that sums over items stay finite


class UrgencySampler(RepeatSampler):
    """Asks the most urgent item next; an author writes :meth:`_urgency`.

    Every item is read ``warmup`` times first. Then the most urgent item is asked next, counting requests in
    flight as readings to come; among equally urgent items the one with the fewest readings.

    The warm-up is over when a request is handed out after every open item was read ``warmup`` times.

    With several judges (:meth:`rotate`) their deviations are estimated from the warm-up and frozen.

    After :meth:`weigh_costs` an item's urgency is divided by a power of what its readings are expected to
    cost (:class:`~evalbudget.statistics._costs.Costs`; how much items differ is frozen with the warm-up).

    Args:
        design: one model, any number of items; several raters only if they take turns.
        warmup: readings of each item before any is preferred, at least 1.
        common: see Sampler; the seed is of the order among equals.

    Raises:
        InvalidInputError: several models, or a warm-up too short.
    """

    def __init__(
        self,
        design: Design,
        *,
        warmup: int = 1,
        options: Mapping[str, Option] = MappingProxyType({}),
        **common: Unpack[SamplerOptions],
    ) -> None:
        super().__init__(design, warmup=warmup, options=options, **common)
        n_items = design.n_items
        self._sum = [0] * n_items
        self._sum_sq = [0] * n_items
        self._costs: Costs | None = None
        self._held: list[tuple[int, int, int, int]] = []  # until gammahat is known: item, epoch, judge, score
        self._gamma: list[int] = []  # of each judge, in the units of the scores
        self._cold = n_items  # open items with fewer readings than the warm-up needs
        self._warming = True
        self._frozen = False  # the end of the warm-up is final
        self._order: list[int] = np.random.default_rng(self.seed).permutation(n_items).tolist()
        self._heap = self._ranked(self._order)
        self._fill()

    def rotate(self, judge_of: JudgeOf, *, rotation: str = "given") -> None:
        """Have the raters of the design take turns; see RepeatSampler."""
        super().rotate(judge_of, rotation=rotation)
        # where a budget ends within a round, the judges must have had their turns equally often
        by_judge: dict[int, list[int]] = {}
        for item in self._order:
            by_judge.setdefault(judge_of(item, 0), []).append(item)
        turns = zip_longest(*by_judge.values())
        self._heap = self._ranked([item for turn in turns for item in turn if item is not None])
        self._fill()

    def weigh_costs(self, budget: float | None = None) -> None:
        """Ask items whose readings are dear less, as far as the objective allows; see Sampler."""
        super().weigh_costs(budget)
        self._costs = self._costs or Costs(self.design.n_items)

    # what an author writes

    @abstractmethod
    def _urgency(self, item: int) -> float:
        """How much the item's next reading is wanted after the warm-up; larger first.

        It may use :meth:`n_asked`, :meth:`n_read`, :meth:`sum_of_squares`. It is called again when one of
        these changed.
        """

    def _cost_power(self) -> float:
        """By which power of the item's cost a positive urgency is divided; 0 where costs do not matter."""
        return 0.0

    def _warmed_up(self) -> None:
        """Fix what is learned from the whole pool; called before the first :meth:`_urgency`.

        It is called again if more readings come in before a request was handed out.
        """

    # what an author may look at

    def n_read(self, item: int) -> int:
        """Readings of the item that came back with a score."""
        return self._n[item]

    def sum_of_squares(self, item: int) -> float:
        """sum_j (x_j - mean)^2 of the :meth:`n_read` readings, independent of their order; at most 1e290."""
        n = self._n[item]
        if n < 2:
            return 0.0
        total = self._sum[item]
        try:
            return min((n * self._sum_sq[item] - total * total) / (n << 2 * _SHIFT), _LARGEST)
        except OverflowError:
            return _LARGEST

    # Sampler

    def _next(self, eligible: Eligible | None) -> Cell | None:
        self._check_raters()
        self._end_warmup()
        if self._goal is not None and not self._warming and self._reached(self._goal):
            self.stop_reason = self._goal.reason
            return None
        item = self._heap.peek(None if eligible is None else lambda item: eligible(self._cell(item)))
        if item is not None:
            return self._cell(item)
        if self._n_open == 0 and not self._pending:
            self.stop_reason = ALL_CLOSED
        return None

    def _reached(self, goal: Goal) -> bool:
        """Whether the goal is; what is known is asked no more."""
        for item in goal.newly_known():
            self._place(item)
        return goal.is_reached(self._open)

    def _asked(self, cell: Cell) -> None:
        self._end_warmup()
        if not self._warming:
            self._frozen = True
            self._held = []
        super()._asked(cell)
        self._place(cell.item)

    def _paid(self, cell: Cell, cost: float) -> None:
        if self._costs is not None:
            self._costs.add(cell.item, cost)

    def _learn(self, cell: Cell, value: float) -> None:
        self._reconsider_warmup()
        super()._learn(cell, value)
        if self._goal is not None:
            self._goal.learn(cell.item, cell.epoch, value)
        item, units = cell.item, _units(value)
        if self._judge_of is not None and not self._frozen:
            self._held.append((item, cell.epoch, cell.rater, units))
        else:
            self._look_at(item, units - self._gamma[cell.rater] if self._gamma else units)
        if self._n[item] == self.warmup and self._open[item]:
            self._cold -= 1
        if not self._warming:
            self._place(item)

    def _look_at(self, item: int, units: int) -> None:
        self._sum[item] += units
        self._sum_sq[item] += units * units

    def _correct_judges(self) -> None:
        """Estimate the judges' deviations from the warm-up and take them out of it."""
        self._held.sort()  # the order of completion must not matter
        item, _, judge, units = (list(column) for column in zip(*self._held, strict=True))
        gamma = judge_effects(
            np.array(item, dtype=np.int64),
            np.array(judge, dtype=np.int64),
            np.array([u / _SHIFTED for u in units]),
            self.design.n_raters,
        )
        self._gamma = [_units(g) for g in gamma.tolist()]
        self._sum, self._sum_sq = [0] * len(self._n), [0] * len(self._n)
        for entry in self._held:
            self._look_at(entry[0], entry[3] - self._gamma[entry[2]])

    def _failed(self, cell: Cell) -> None:
        self._reconsider_warmup()
        super()._failed(cell)
        self._place(cell.item)

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        self._reconsider_warmup()
        super()._set_open(cell, is_open)
        if self._n[cell.item] < self.warmup:
            self._cold += 1 if is_open else -1
        self._place(cell.item)

    # the warm-up ends with a request, not with a reading, so that the order of completion does not matter

    def _end_warmup(self) -> None:
        if self._warming and self._cold == 0 and self._n_open > 0:
            self._warming = False
            if self._judge_of is not None:
                self._correct_judges()
            if self._costs is not None:
                self._costs.fit()
            self._warmed_up()
            self._fill()

    def _reconsider_warmup(self) -> None:
        if not (self._warming or self._frozen):
            self._warming = True
            self._fill()

    # the heap

    def _ranked(self, order: list[int]) -> UrgencyHeap:
        """An empty heap; among equally urgent items the first in the order comes first."""
        rank = [0] * len(self._n)
        for position, item in enumerate(order):
            rank[item] = position
        return UrgencyHeap(rank)

    def _fill(self) -> None:
        ranked = ((item, self._rank(item)) for item, is_open in enumerate(self._open) if is_open)
        self._heap.fill((item, u, self._active[item]) for item, u in ranked if u is not None)

    def _place(self, item: int) -> None:
        """Put the item where it belongs: in the heap at its urgency, or out of it."""
        urgency = self._rank(item) if self._open[item] else None
        if urgency is None:
            self._heap.remove(item)
        else:
            self._heap.update(item, urgency, self._active[item])

    def _rank(self, item: int) -> float | None:
        """Urgency of an open item now; None if it must not be asked."""
        if self._active[item] < self.warmup:
            # after the warm-up: one of its readings failed, or the item opened again
            return math.inf
        known = self._goal is not None and self._goal.known[item]
        if self._warming or (known and self.allocation is not Allocation.FIXED):
            return None
        urgency = self._urgency(item)
        if math.isnan(urgency):
            raise SamplerError(f"sampler {self.name!r} gave item {item} the urgency nan")
        if self._costs is None or urgency <= 0.0:
            return urgency
        return urgency * math.exp(-self._cost_power() * self._costs.log_relative(item))


def _units(value: float) -> int:
    return int(value * _ONE) if abs(value) < _HUGE else int(value) << _SHIFT
