"""Samplers that repeat items in phases: the default, and the same with one model of scores."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from evalbudget.design import Cell, Design, Request
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._objective import Objective
from evalbudget.repeats.phases._counts import FIRST
from evalbudget.repeats.phases._plan import Part, Phases, Readings, Wait
from evalbudget.repeats.phases._spread import Scores
from evalbudget.repeats.samplers._base import ALL_CLOSED, RepeatSampler
from evalbudget.sampler import Allocation, Eligible, SamplerOptions
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._costs import MeanCost
from evalbudget.statistics._phase_means import MOST_PHASES

Entry = tuple[int, int]
"""Phase and item of a planned reading."""


class PhasedSampler(RepeatSampler):
    """Hands out the rounds of :class:`~evalbudget.repeats.phases._plan.Phases` one reading at a time.

    A reading without a score is asked again at once, in its phase.

    Args:
        design: one model, any number of items; several raters only if they take turns.
        objective: ``worst-item``, ``mse`` or ``mean``; None: the benchmark mean on scores of two values, the
            worst item on others.
        weights: w_i of the benchmark mean, shape (n_items,); equal if None.
        budget: readings that will be bought in all, if known; phases end with it.
        warmup: readings of each item in the first phase, at least 2.
        common: see Sampler.

    Raises:
        UnknownNameError: no such objective.
        InvalidInputError: weights of another shape, negative or not finite.
    """

    allocation = Allocation.PHASED
    scores: ClassVar[Scores | None] = None

    def __init__(
        self,
        design: Design,
        *,
        objective: str | None = None,
        weights: Sequence[float] | None = None,
        budget: int | None = None,
        warmup: int = FIRST,
        **common: Unpack[SamplerOptions],
    ) -> None:
        self.objective = None if objective is None else Objective.named(objective)
        options = {
            "objective": None if self.objective is None else self.objective.value,
            "weights": None if weights is None else tuple(weights),
        }
        super().__init__(design, warmup=max(warmup, FIRST), options=options, **common)
        self._weights = _weights(self.name, weights, design.n_items)
        self._budget = budget
        self._money: float | None = None  # that will be spent in all
        self._mean_cost = MeanCost()
        self._part: Part | None = None
        self._queue: deque[Entry] = deque()  # planned, and not asked yet
        self._again: list[tuple[int, Entry]] = []  # when they were asked that failed, in this order
        self._n_again: Counter[Entry] = Counter()
        self._ahead: Counter[Entry] = Counter()  # adopted before they were planned, or out of turn
        self._parked: dict[int, list[Entry]] = {}  # readings of closed items: planned, or failed
        self._known_phase: dict[Cell, int] = {}  # of an earlier run
        self._latest = 0  # of these
        self._phase = 0  # of the next request
        self._table: dict[Cell, _Row] = {}
        self._wait_until = 0  # readings that must have come back before it is worth planning again

    def weigh_costs(self, budget: float | None = None) -> None:
        """Ask items whose readings are dear less, as far as the objective allows; see Sampler.

        Args:
            budget: what will be spent in all, if known; phases end with it.
        """
        super().weigh_costs(budget)
        self._money = budget

    @property
    def minimum_readings(self) -> int:
        """One of each item: with less than two of each, all are asked equally often."""
        return self.design.n_items

    def assume_phase(self, cell: Cell, phase: int) -> None:
        """Say in which phase an earlier run asked a cell, before it is adopted or asked again.

        Raises:
            InvalidInputError: what the run's record calls a phase is none.
        """
        if type(phase) is not int or not 0 <= phase < MOST_PHASES:
            raise InvalidInputError(f"phase {phase!r:.30} is not a whole number from 0 to {MOST_PHASES - 1}")
        self._known_phase[cell] = phase
        self._latest = max(self._latest, phase)

    def adopt(self, cell: Cell) -> Request:
        """Count a cell that somebody else asked as asked.

        It is of the first phase, unless an earlier run knows better; a later epoch that it says nothing of
        was cut off in the last phase it knows.
        """
        self._phase = self._known_phase.get(cell, 0 if cell.epoch < self.warmup else self._latest)
        return super().adopt(cell)

    def follow(self, cell: Cell) -> Request:
        """Ask what an earlier run asked here, planning when that planned; see Sampler."""
        if cell not in self.design or cell.epoch != self._epochs[cell.item] or cell not in self._known_phase:
            raise InvalidInputError(f"{cell} cannot have been asked here")
        self._give_up_and_reopen()
        self._next(None)
        self._phase = self._known_phase[cell]
        return self._hand_out(cell)

    def _next(self, eligible: Eligible | None) -> Cell | None:
        self._check_raters()
        while self._first(None) is None:
            if self._n_open == 0:
                if not self._pending:
                    self.stop_reason = ALL_CLOSED
                return None
            if len(self._table) - len(self._pending) < self._wait_until or not self._plan():
                return None
        entry = self._first(eligible)
        if entry is None:
            return None
        self._phase = entry[0]
        return self._cell(entry[1])

    def _plan(self) -> bool:
        """Queue the next round; False to wait, or after setting ``stop_reason``."""
        table = self._readings()
        if self._goal is not None and self._part is not None and not self._part.is_head:
            # a run that ends by its scores looks at them between phases only
            if table.missing_before(self._part.phase + 1):
                self._wait_until = table.settled + table.missing_before(self._part.phase + 1)
                return False
            for cell, row in self._table.items():
                if row.phase <= self._part.phase and math.isfinite(row.value):
                    self._goal.learn(cell.item, cell.epoch, row.value)
            self._goal.newly_known()
            if self._goal.is_reached(self._open):
                self.stop_reason = self._goal.reason
                return False
            table = self._readings()
        planned = self._planner.plan(table, self._part)
        if isinstance(planned, Wait):
            self._wait_until = planned.until
            return False
        self._part = planned.part
        self._queue.extend((planned.part.phase, item) for item in planned.item.tolist())
        return True

    @property
    def _planner(self) -> Phases:
        return Phases(
            self.design.n_items,
            self.seed,
            self._weights,
            self.warmup,
            self.objective,
            self.scores,
            self.design.n_raters,
            until_known=self._goal is not None,
        )

    def _first(self, eligible: Eligible | None) -> Entry | None:
        """The first reading that may be asked: one that failed, or the next that was planned."""
        for _, entry in self._again:
            if eligible is None or eligible(self._cell(entry[1])):
                return entry
        while self._queue:  # those that were asked before their turn, and of closed items
            entry = self._queue[0]
            if self._ahead[entry]:
                self._ahead[entry] -= 1
            elif not self._open[entry[1]]:
                self._parked.setdefault(entry[1], []).append(entry)
            else:
                break
            self._queue.popleft()
        if eligible is None:
            return self._queue[0] if self._queue else None
        skipped: Counter[Entry] = Counter()
        for entry in self._queue:
            if skipped[entry] < self._ahead[entry]:
                skipped[entry] += 1
            elif self._open[entry[1]] and eligible(self._cell(entry[1])):
                return entry
        return None

    def _readings(self) -> Readings:
        rows, cells = self._table.values(), self._table
        known = self._goal.known if self._goal is not None else [False] * self.design.n_items
        return Readings(
            item=np.array([cell.item for cell in cells], dtype=np.int64),
            rater=np.array([cell.rater for cell in cells], dtype=np.int64),
            phase=np.array([row.phase for row in rows], dtype=np.int64),
            value=np.array([row.value for row in rows], dtype=np.float64),
            cost=np.array([row.cost for row in rows], dtype=np.float64) if self.weighs_costs else None,
            under_way=np.array([row.under_way for row in rows], dtype=np.bool_),
            is_open=np.array(self._open, dtype=np.bool_),
            is_known=np.array(known, dtype=np.bool_),
            left=self._left,
        )

    @property
    def _left(self) -> int | None:
        in_all = self._budget
        if self._money is not None:
            in_all = self._mean_cost.affordable(self._money)
        return None if in_all is None else max(in_all - self.asked, 0)

    def _phase_of(self, cell: Cell) -> int:
        return self._phase

    def _asked(self, cell: Cell) -> None:
        super()._asked(cell)
        entry = (self._phase, cell.item)
        if self._n_again[entry]:
            self._n_again[entry] -= 1
            self._again.pop(next(i for i, each in enumerate(self._again) if each[1] == entry))
        elif self._queue and self._queue[0] == entry:
            self._queue.popleft()
        else:
            self._ahead[entry] += 1
        self._table[cell] = _Row(len(self._table), self._phase)

    def _paid(self, cell: Cell, cost: float) -> None:
        self._mean_cost.add(cost)
        self._table[cell].cost = cost

    def _learn(self, cell: Cell, value: float) -> None:
        super()._learn(cell, value)
        self._table[cell].value, self._table[cell].under_way = value, False

    def _failed(self, cell: Cell) -> None:
        super()._failed(cell)
        row = self._table[cell]
        row.under_way = False
        entry = (row.phase, cell.item)
        if self._ahead[entry]:  # another was asked in its place, or will be in its turn
            self._ahead[entry] -= 1
        elif self._open[cell.item]:
            insort(self._again, (row.number, entry))
            self._n_again[entry] += 1
        else:
            self._parked.setdefault(cell.item, []).append(entry)

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        super()._set_open(cell, is_open)
        if is_open:
            self._queue.extendleft(self._parked.pop(cell.item, []))
        else:
            failed = [entry for _, entry in self._again if entry[1] == cell.item]
            self._again = [each for each in self._again if each[1][1] != cell.item]
            self._n_again.subtract(failed)
            self._parked.setdefault(cell.item, []).extend(failed)


class Auto(PhasedSampler):
    """The default: the model of scores follows what is read.

    Scores of two values are taken for a beta-binomial, those on a scale of at most 32 levels by what one
    reading of an item says about another (``rating-kernel``), others by the items' variances
    (``eb-bernstein``); see :mod:`evalbudget.repeats.phases._spread`.
    """

    name = "auto"


class EBBernstein(PhasedSampler):
    """By the items' variances, shrunk towards the pool's, with a Bernstein term for what was not seen."""

    name = "eb-bernstein"
    scores = Scores.NUMBERS


class RatingKernel(PhasedSampler):
    """By what one reading of an item says about another, on a scale of few levels."""

    name = "rating-kernel"
    scores = Scores.LEVELS


@dataclass(slots=True)
class _Row:
    """A reading that was handed out."""

    number: int
    phase: int
    value: float = math.nan
    cost: float = 0.0
    under_way: bool = True


def _weights(name: str, weights: Sequence[float] | None, n_items: int) -> FloatArray:
    if weights is None:
        return np.ones(n_items)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n_items,) or not np.isfinite(w).all() or (w < 0).any() or not (w > 0).any():
        raise InvalidInputError(
            f"{name} got weights of shape {w.shape} for {n_items} items; give one finite number >= 0 "
            "per item, not all zero"
        )
    return w
