"""What all repeats samplers share: rounds handed out reading by reading, epochs, judges, failures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Unpack

import numpy as np

from evalbudget._asked import AskedSampler, Eligible
from evalbudget.cells import Cells, Planned
from evalbudget.design import Cell, Design, Request
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.repeats._rounds import Note, Readings, Round, Stop, Wait
from evalbudget.repeats.samplers._asked import Asked, table_of
from evalbudget.repeats.samplers._goal import Goal
from evalbudget.repeats.samplers._queue import Queue
from evalbudget.sampler import Allocation, Option, SamplerOptions
from evalbudget.statistics._bounds import IntArray

JudgeOf = Callable[[int, int], int]
"""Who scores this item and epoch, both counted from 0."""

ALL_CLOSED = "every item closed after repeated failures"


class RepeatSampler(AskedSampler):
    """Asks items of one model again and again; an author writes :meth:`plan`.

    Rounds are handed out one reading at a time. A reading without a score is asked again at once, in its
    phase; what is planned of an item that is given up waits for the day it opens again.

    Args:
        design: one model, any number of items; several raters only if they take turns.
        warmup: readings of each item that the first round has, at least 1.
        common: see Sampler; the seed is of the order among equals.

    Attributes:
        order: all items in a random order, by turns of judges where these take turns, shape (n_items,).

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
        self._open = [True] * n_items
        self._n_open = n_items
        self._goal: Goal | None = None
        self._judge_of: JudgeOf | None = None
        self.order: IntArray = np.random.default_rng(self.seed).permutation(n_items)
        self._note: Note | None = None  # of the last round
        self._begun: Note | None = None  # of the last round when something was asked last
        self._queue = Queue(self._open, self.order.tolist())  # a random place of each item, like any other
        self._phase = 0  # of the next request
        self._table = Asked()
        self._wait_until = 0  # readings that must have come back before it is worth planning again

    # what an author writes

    @abstractmethod
    def plan(self, table: Readings, last: Note | None) -> Round | Wait | Stop:
        """What to ask next, as a function of what is known and of nothing else.

        The first round is made as if nothing had been asked yet: what a host or an earlier run asked before
        is taken off it. Later ones are made from the table.

        Args:
            table: every reading that was handed out, in order; at least one item is open.
            last: the note of the round before; None at the start.
        """

    def warm_up(self) -> Round:
        """The first round of most samplers: ``warmup`` readings of each item, in phase 0."""
        return Round(np.tile(self.order, self.warmup), Note(0))

    # what a book calls

    note_kinds = (Note,)
    waits_for_all = False

    def decide(self, cells: Cells, last: Note | None) -> Planned | Wait | Stop:
        """The next round; see :class:`~evalbudget.sampler.Sampler`."""
        self._check_raters()
        cells = self._with_raters(cells)
        table = table_of(cells, self.design.n_items, self.left(cells), with_costs=self.weighs_costs)
        if not table.is_open.any():
            return Wait(table.settled + 1) if table.under_way.any() else Stop(ALL_CLOSED)
        if self._goal is not None and last is not None:
            missing = 0 if last.is_head else table.missing_before(last.phase + 1)
            if missing:
                return Wait(table.settled + missing)
            goal = self._goal.of(cells, last.phase - last.is_head)  # a head is planned without its own phase
            if not last.is_head and goal.is_reached(table.is_open.tolist()):
                return Stop(goal.reason)
            table = replace(table, is_known=np.array(goal.known))
        planned = self.plan(table, last)
        if not isinstance(planned, Round):
            return planned
        return Planned(np.zeros(planned.item.size, np.int64), planned.item, planned.note.phase, planned.note)

    def rater_of(self, item: int, epoch: int) -> int:
        """Whose turn it is."""
        return 0 if self._judge_of is None else self._judge_of(item, epoch)

    def _with_raters(self, cells: Cells) -> Cells:
        """As they are known now."""
        if self._judge_of is None:
            return cells
        places = zip(cells.item.tolist(), cells.epoch.tolist(), strict=True)
        return replace(cells, rater=np.array([self._judge_of(*place) for place in places], np.int64))

    def left(self, cells: Cells) -> int | None:
        """How many more readings are paid for, if known."""
        return None

    # what drivers call

    @property
    def minimum_readings(self) -> int:
        """The smallest budget that lets this sampler decide anything."""
        return self.design.n_items * self.warmup

    def rotate(self, judge_of: JudgeOf, *, rotation: str = "given") -> None:
        """Have the raters of the design take turns.

        Scores of an item then differ because judges differ, so their deviations from the panel, gammahat, are
        estimated by two-way least squares (:mod:`evalbudget.statistics._judge_effects`) and taken out of what
        decides.

        Args:
            judge_of: rater of an item and epoch (both from 0), as far as that is known; once there is a
                score, it must always answer the same.
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
        # where a budget ends within a round, the judges must have had their turns about equally often
        by_judge: dict[int, list[int]] = {}
        for item in self.order.tolist():
            by_judge.setdefault(judge_of(item, 0), []).append(item)
        turns = zip_longest(*by_judge.values())
        self.order = np.array([item for turn in turns for item in turn if item is not None])

    def stop_when_known(self, half_width: float, bounds: tuple[float, float]) -> None:
        """Ask nothing more once every open item's mean is known to within ``half_width``.

        It goes by betting sequences (:mod:`evalbudget.statistics._anytime_betting`), which may be looked at
        at any moment.

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

    def adopt(self, cell: Cell) -> Request:
        """Count a cell that somebody else asked (a host's first epochs, an earlier run) as asked.

        Returns:
            The request to tell its reading against.

        Raises:
            InvalidInputError: the cell is not in the design; it is under way; or all epochs of its item up to
                the largest so far are asked and none failed, so that this one would be asked twice.
        """
        self._check_raters()
        if cell in self.design and (
            cell.epoch < self._epochs[cell.item] <= self._active[cell.item] or self._table.is_under_way(cell)
        ):
            raise InvalidInputError(
                f"{cell} was asked before, so it cannot be adopted; adopt each cell once, and a new "
                "reading of the item with an epoch of its own"
            )
        self._forget_plans()
        self._phase = self._phase_of_adopted(cell)
        return super().adopt(cell)

    # Sampler

    def _next(self, eligible: Eligible | None) -> Cell | None:
        self._check_raters()
        self._forget_plans()
        while (entry := self._queue.first(None)) is None:
            if self._n_open == 0:
                if not self._pending:
                    self.stop_reason = ALL_CLOSED
                return None
            if len(self._table) - len(self._pending) < self._wait_until or not self._go_on():
                return None
        if eligible is not None:
            entry = self._queue.first(lambda item: eligible(self._cell(item)))
        if entry is None:
            return None
        self._phase, item = entry
        return self._cell(item)

    def _forget_plans(self) -> None:
        """Drop what was planned since something was asked: a journal does not say when that was."""
        self._note = self._begun
        self._queue.forget()

    def _go_on(self) -> bool:
        """Take the next round; False to wait, or after setting ``stop_reason``."""
        if self._goal is not None and self._note is not None and not self._note.is_head:
            # a run that ends by its scores looks at them between phases only
            table = self._readings()
            missing = table.missing_before(self._note.phase + 1)
            if missing:
                self._wait_until = table.settled + missing
                return False
            for item, epoch, value in self._table.learned_until(self._note.phase):
                self._goal.learn(item, epoch, value)
            self._goal.newly_known()
            if self._goal.is_reached(self._open):
                self.stop_reason = self._goal.reason
                return False
        planned = self.plan(self._readings(), self._note)
        if isinstance(planned, Stop):
            self.stop_reason = planned.reason
            return False
        if isinstance(planned, Wait):
            self._wait_until = planned.until
            return False
        if not planned.item.size and planned.note == self._note:
            raise SamplerError(f"sampler {self.name!r} planned an empty round twice; it must wait or stop")
        self._note = planned.note
        self._queue.take(planned.note.phase, planned.item.tolist())
        return True

    def _readings(self) -> Readings:
        known = None if self._goal is None else self._goal.known
        return self._table.readings(self._open, known, self._left, with_costs=self.weighs_costs)

    @property
    def _left(self) -> int | None:
        """How many more readings are paid for, if known."""
        return None

    def _phase_of_adopted(self, cell: Cell) -> int:
        return 0 if self._note is None or cell.epoch < self.warmup else self._note.phase

    # bookkeeping

    def _cell(self, item: int) -> Cell:
        epoch = self._epochs[item]
        return Cell(0, item, epoch, 0 if self._judge_of is None else self._judge_of(item, epoch))

    def _check_raters(self) -> None:
        if self._judge_of is None and self.design.n_raters > 1:
            raise InvalidInputError(
                f"{self.name} has {self.design.n_raters} raters and does not know who scores what; call "
                "rotate() with a schedule, or use one sampler per rater"
            )

    def _phase_of(self, cell: Cell) -> int | None:
        return self._phase if self.allocation is Allocation.PHASED else None

    def _asked(self, cell: Cell) -> None:
        item = cell.item
        self._epochs[item] = max(self._epochs[item], cell.epoch + 1)
        self._active[item] += 1
        self._begun = self._note
        self._queue.asked((self._phase, item))
        self._table.add(cell, self._phase)

    def _paid(self, cell: Cell, cost: float) -> None:
        self._table.paid(cell, cost)

    def _learn(self, cell: Cell, value: float) -> None:
        self._n[cell.item] += 1
        self._table.came(cell, value)

    def _failed(self, cell: Cell) -> None:
        self._active[cell.item] -= 1
        self._queue.failed((self._table.came(cell, None), cell.item))

    def _reads(self, key: Cell) -> int:
        return self._n[key.item]

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        self._open[cell.item] = is_open
        self._n_open += 1 if is_open else -1
        if self._goal is not None:
            self._goal.reopen()
        if is_open:
            self._queue.opened()
