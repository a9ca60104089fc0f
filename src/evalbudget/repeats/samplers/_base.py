"""What all repeats samplers share: warm-up, a held-out reading per item, exact sums, failures, the heap."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from itertools import zip_longest
from types import MappingProxyType
from typing import Unpack

import numpy as np

from evalbudget.design import Cell, Design, Request
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.repeats.samplers._goal import Goal
from evalbudget.repeats.samplers._heap import UrgencyHeap
from evalbudget.repeats.samplers._unbiased_weights import Shares
from evalbudget.sampler import Allocation, Eligible, Option, Sampler, SamplerOptions
from evalbudget.statistics._costs import Costs, MeanCost
from evalbudget.statistics._judge_effects import judge_effects

# Scores are summed as integer multiples of 2^-50: integer sums do not depend on the order of completion.
_SHIFT = 50
_ONE = float(2**_SHIFT)
_HUGE = float(2**900)
_SHIFTED = 2**_SHIFT  # an integer: so divided, even huge sums come out as floats
_LARGEST = 1e290  # so that sums over items stay finite

JudgeOf = Callable[[int, int], int]
"""Who scores this item and epoch, both counted from 0."""


class RepeatSampler(Sampler):
    """Asks items of one model again and again; an author writes :meth:`_urgency`.

    Every item is read ``warmup`` times first. Then the most urgent item is asked next, counting requests in
    flight as readings to come; among equally urgent items the one with the fewest readings.

    Items whose first scores look settled are asked less, so the plain mean of what was bought is biased. With
    ``hold_out`` every reading has a share in its item's mean that was fixed before it was seen, and one
    reading of every item steers nothing, so that the benchmark mean is unbiased whatever was decided and
    whenever the run ends; see :class:`~evalbudget.repeats.samplers._unbiased_weights.Shares`.

    The warm-up is over when a request is handed out after every open item was read ``warmup`` times.

    With several judges call :meth:`rotate` first. Scores of an item then differ because judges differ, so
    their deviations from the panel, gammahat, are estimated from the warm-up by two-way least squares
    (:mod:`evalbudget.statistics._judge_effects`), frozen, and taken out of every score: what is left decides.

    After :meth:`weigh_costs` an item's urgency is divided by a power of what its readings are expected to
    cost (:class:`~evalbudget.statistics._costs.Costs`; how much items differ is frozen with the warm-up). A
    held-out reading's cost is as little looked at as its score: dear readings may be those that fail.

    Args:
        design: one model, any number of items; several raters only if they take turns.
        warmup: readings of each item before any is preferred, at least 1.
        hold_out: keep one reading of every item out of all decisions.
        budget: readings that will be bought in all, if known: so that what is left of an item's share lasts.
            Not known: as many again as were asked so far. It changes shares, never what is asked.
        common: see Sampler; the seed is of the order among equals.

    Raises:
        InvalidInputError: several models, or a warm-up too short.
    """

    def __init__(
        self,
        design: Design,
        *,
        warmup: int = 1,
        hold_out: bool = False,
        budget: int | None = None,
        options: Mapping[str, Option] = MappingProxyType({}),
        **common: Unpack[SamplerOptions],
    ) -> None:
        super().__init__(design, options={**options, "warmup": warmup}, **common)
        if design.n_models != 1:
            raise InvalidInputError(
                f"{self.name} allocates repeats over the items of one model; got {self._shape()}. Use one "
                "sampler per model"
            )
        if warmup < 1:
            raise InvalidInputError(f"warmup is {warmup}; {self.name} needs at least 1")
        self.warmup = warmup
        self.fixed_repeats = warmup
        n_items = design.n_items
        self._active = [0] * n_items  # asked and not failed
        self._epochs = [0] * n_items  # next epoch of the item
        self._n = [0] * n_items  # came back with a score
        self._seen = [0] * n_items  # of these, may be looked at
        self._sum = [0] * n_items
        self._sum_sq = [0] * n_items
        self._open = [True] * n_items
        self._n_open = n_items
        self._shares = Shares(n_items, budget) if hold_out else None
        self._costs: Costs | None = None
        self._money: float | None = None  # that will be spent in all
        self._mean_cost = MeanCost()
        self._cost_held_out: dict[int, MeanCost] = {}  # of each item's held-out reading
        self._goal: Goal | None = None
        self._judge_of: JudgeOf | None = None
        self._held: list[tuple[int, int, int, int]] = []  # until gammahat is known: item, epoch, judge, score
        self._gamma: list[int] = []  # of each judge, in the units of the scores
        self._cold = n_items  # open items with fewer readings than the warm-up needs
        self._warming = True
        self._frozen = False  # the end of the warm-up is final
        self._order: list[int] = np.random.default_rng(self.seed).permutation(n_items).tolist()
        self._heap = self._ranked(self._order)
        self._fill()

    @property
    def minimum_readings(self) -> int:
        """The smallest budget that lets this sampler decide anything."""
        return self.design.n_items * self.warmup

    def rotate(self, judge_of: JudgeOf, *, rotation: str = "given") -> None:
        """Have the raters of the design take turns.

        Args:
            judge_of: rater of an item and epoch (both from 0); must always answer the same.
            rotation: name of the schedule, for the journal.

        Raises:
            InvalidInputError: the design has a single rater.
            SamplerError: something was asked already.
        """
        if self.design.n_raters < 2:
            raise InvalidInputError(
                f"{self.name} was told to rotate judges, but the design has the one rater "
                f"{self.design.raters[0]!r}; give the design all of them"
            )
        if self.asked:
            raise SamplerError(f"{self.name} was asked before it was told to rotate judges; rotate first")
        self._judge_of = judge_of
        self.options["rotation"] = rotation
        # where a budget ends within a round, the judges must have had their turns equally often
        by_judge: dict[int, list[int]] = {}
        for item in self._order:
            by_judge.setdefault(judge_of(item, 0), []).append(item)
        turns = zip_longest(*by_judge.values())
        self._heap = self._ranked([item for turn in turns for item in turn if item is not None])
        self._fill()

    def weigh_costs(self, budget: float | None = None) -> None:
        """Ask items whose readings are dear less, as far as the objective allows; see Sampler.

        Args:
            budget: what will be spent in all, if known: so that what is left of an item's share lasts, as
                the number of readings is for a budget in scores. It changes shares, never what is asked.
        """
        super().weigh_costs(budget)
        self._costs = self._costs or Costs(self.design.n_items)
        self._money = budget

    def stop_when_known(self, half_width: float, bounds: tuple[float, float]) -> None:
        """Ask nothing more once every open item's mean is known to within ``half_width``.

        It goes by betting sequences (:mod:`evalbudget.statistics._anytime_betting`), which may be looked at
        at any moment, of all readings but the held-out ones, which steer nothing.

        Args:
            half_width: of the 95% interval of each item, in the units of the scores.
            bounds: smallest and largest possible score.

        Raises:
            InvalidInputError: bounds are no range.
            SamplerError: something was asked already.
        """
        if self.asked:
            raise SamplerError(f"{self.name} was asked before it was told when to stop; say so first")
        self.options["until"] = (half_width, *bounds)
        self._goal = Goal(half_width, bounds, self.design.n_items)

    def closes_as(self, cell: Cell) -> Cell:
        """The item, whoever failed on it."""
        return Cell(item=cell.item)

    def counts(self) -> tuple[int, ...]:
        """Readings per item so far, failed ones not counted."""
        return tuple(self._n)

    # what an author writes

    @abstractmethod
    def _urgency(self, item: int) -> float:
        """How much the item's next reading is wanted after the warm-up; larger first.

        It may use :meth:`n_asked`, and what may be looked at of the item's scores: :meth:`n_read`,
        :meth:`sum_of_squares`. It is called again when one of these changed.
        """

    def _cost_power(self) -> float:
        """By which power of the item's cost a positive urgency is divided; 0 where costs do not matter."""
        return 0.0

    def _warmed_up(self) -> None:
        """Fix what is learned from the whole pool; called before the first :meth:`_urgency`.

        It is called again if more readings come in before a request was handed out.
        """

    # what an author may look at

    def n_asked(self, item: int) -> int:
        """Readings of the item, those in flight and the held-out one included, failed ones not."""
        return self._active[item]

    def n_read(self, item: int) -> int:
        """Readings of the item that came back with a score and may be looked at."""
        return self._seen[item]

    def holds_out(self, cell: Cell) -> bool:
        """Whether the reading of this cell is held out of all decisions."""
        return self._shares is not None and self._shares.holds(cell.item, cell.epoch)

    def sum_of_squares(self, item: int) -> float:
        """sum_j (x_j - mean)^2 of the :meth:`n_read` readings, independent of their order; at most 1e290."""
        n = self._seen[item]
        if n < 2:
            return 0.0
        total = self._sum[item]
        try:
            return min((n * self._sum_sq[item] - total * total) / (n << 2 * _SHIFT), _LARGEST)
        except OverflowError:
            return _LARGEST

    # Sampler

    def assume_weight(self, cell: Cell, weight: float | None) -> None:
        """Take over the weight of a cell that is adopted next; see Sampler."""
        if self._shares is not None and cell in self.design:
            self._shares.assume(cell.item, cell.epoch, weight)

    def adopt(self, cell: Cell) -> Request:
        """Count a cell that somebody else asked (a host's first epochs, an earlier run) as asked.

        Returns:
            The request to tell its reading against.

        Raises:
            InvalidInputError: the cell is not in the design; or all epochs of its item up to the largest so
                far are asked and none failed, so that this one would be asked twice.
        """
        self._check_raters()
        if cell in self.design and cell.epoch < self._epochs[cell.item] <= self._active[cell.item]:
            raise InvalidInputError(
                f"{cell} was asked before, so it cannot be adopted; adopt each cell once, and a new "
                "reading of the item with an epoch of its own"
            )
        return super().adopt(cell)

    def _next(self, eligible: Eligible | None) -> Cell | None:
        self._check_raters()
        self._end_warmup()
        if self._goal is not None and not self._warming and self._reached(self._goal):
            self.stop_reason = f"every item that can be scored is known to ± {self._goal.half_width:g}"
            return None
        item = self._heap.peek(None if eligible is None else lambda item: eligible(self._cell(item)))
        if item is not None:
            return self._cell(item)
        if self._n_open == 0 and not self._pending:
            self.stop_reason = "every item closed after repeated failures"
        return None

    def _reached(self, goal: Goal) -> bool:
        """Whether the goal is; what is known is asked no more."""
        for item in goal.newly_known():
            self._place(item)
        return goal.is_reached(self._open)

    def _weight(self, cell: Cell) -> float | None:
        if self._shares is None:
            return None
        n = self._active[cell.item]
        asked = self.asked if n >= self.warmup else 0
        return self._shares.of_next(
            cell.item, cell.epoch, n, asked, self._readings_in_all(cell.item), self._until_known(cell.item)
        )

    def _until_known(self, item: int) -> int | None:
        """How many further readings the item will get if it is asked until it is known."""
        if self._goal is None:
            return None
        expected = self._goal.expected(item, self._seen[item], self.sum_of_squares(item))
        return math.ceil(expected) - (self._active[item] - 1)  # of those asked, one is held out

    def _readings_in_all(self, item: int) -> int | None:
        """How many readings the money will pay, for all that the item's held-out reading does not tell."""
        if self._money is None:
            return None
        return self._mean_cost.affordable(self._money, self._cost_held_out.get(item))

    def _cell(self, item: int) -> Cell:
        epoch = self._epochs[item]
        return Cell(0, item, epoch, 0 if self._judge_of is None else self._judge_of(item, epoch))

    def _check_raters(self) -> None:
        if self._judge_of is None and self.design.n_raters > 1:
            raise InvalidInputError(
                f"{self.name} has {self.design.n_raters} raters and does not know who scores what; call "
                "rotate() with a schedule, or use one sampler per rater"
            )

    def _asked(self, cell: Cell) -> None:
        self._end_warmup()
        if not self._warming:
            self._frozen = True
            self._held = []
        item = cell.item
        self._epochs[item] = max(self._epochs[item], cell.epoch + 1)
        self._active[item] += 1
        self._place(item)

    def _paid(self, cell: Cell, cost: float) -> None:
        if self._costs is None:
            return
        self._mean_cost.add(cost)
        if self.holds_out(cell):
            self._cost_held_out.setdefault(cell.item, MeanCost()).add(cost)
        else:
            self._costs.add(cell.item, cost)

    def _learn(self, cell: Cell, value: float) -> None:
        self._reconsider_warmup()
        item = cell.item
        self._n[item] += 1
        if self._shares is not None:
            self._shares.came_back(item, cell.epoch)
        if not self.holds_out(cell):
            if self._goal is not None:
                self._goal.learn(item, cell.epoch, value)
            units = _units(value)
            if self._gamma and self._frozen:
                units -= self._gamma[cell.rater]
            if self._judge_of is not None and not self._frozen:
                self._held.append((item, cell.epoch, cell.rater, units))
            else:
                self._look_at(item, units)
        if self._n[item] == self.warmup and self._open[item]:
            self._cold -= 1
        if not self._warming:
            self._place(item)

    def _look_at(self, item: int, units: int) -> None:
        self._seen[item] += 1
        self._sum[item] += units
        self._sum_sq[item] += units * units

    def _look_afresh(self) -> None:
        """Forget what was looked at."""
        n_items = len(self._n)
        self._seen, self._sum, self._sum_sq = [0] * n_items, [0] * n_items, [0] * n_items

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
        self._look_afresh()
        for entry in self._held:
            self._look_at(entry[0], entry[3] - self._gamma[entry[2]])

    def _failed(self, cell: Cell) -> None:
        self._reconsider_warmup()
        self._active[cell.item] -= 1
        if self._shares is not None:
            self._shares.failed(cell.item, cell.epoch)
        self._place(cell.item)

    def _reads(self, key: Cell) -> int:
        return self._n[key.item]

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        self._reconsider_warmup()
        item = cell.item
        self._open[item] = is_open
        if self._goal is not None:
            self._goal.reopen()
        self._n_open += 1 if is_open else -1
        if self._n[item] < self.warmup:
            self._cold += 1 if is_open else -1
        self._place(item)

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
