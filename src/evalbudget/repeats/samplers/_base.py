"""What all repeats samplers share: rounds of one model's items, judges that take turns, when to end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Unpack

import numpy as np

from evalbudget.cells import Cells, Planned
from evalbudget.design import Cell, Design
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._rounds import Note, Readings, Round, Stop, Wait
from evalbudget.repeats.samplers._goal import Goal
from evalbudget.repeats.samplers._table import table_of
from evalbudget.sampler import Option, Sampler, SamplerOptions
from evalbudget.statistics._bounds import IntArray

JudgeOf = Callable[[int, int], int]
"""Who scores this item and epoch, both counted from 0."""

ALL_CLOSED = "every item closed after repeated failures"


class RepeatSampler(Sampler):
    """Asks items of one model again and again; an author writes :meth:`plan`.

    A reading without a score is asked again at once, in its phase; what is planned of an item that is given
    up waits for the day it opens again.

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
        self._goal: Goal | None = None
        self._judge_of: JudgeOf | None = None
        self.order: IntArray = np.random.default_rng(self.seed).permutation(design.n_items)

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
            known = self._goal.known(cells, last.phase - last.is_head)  # a head is planned without its phase
            if not last.is_head and (known | ~table.is_open).all():
                return Stop(self._goal.reason)
            table = replace(table, is_known=known)
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
            rotation: name of the schedule, for the record.

        Raises:
            InvalidInputError: the design has a single rater.
        """
        if self.design.n_raters < 2:
            raise InvalidInputError(
                f"{self.name} was told to rotate judges, but the design has the one rater "
                f"{self.design.raters[0]!r}; give the design all of them"
            )
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
        """
        self.options["until"] = (half_width, *bounds)
        self._goal = Goal(half_width, bounds, self.design.n_items)

    def closes_as(self, cell: Cell) -> Cell:
        """The item, whoever failed on it."""
        return Cell(item=cell.item)

    def _check_raters(self) -> None:
        if self._judge_of is None and self.design.n_raters > 1:
            raise InvalidInputError(
                f"{self.name} has {self.design.n_raters} raters and does not know who scores what; call "
                "rotate() with a schedule, or use one sampler per rater"
            )
