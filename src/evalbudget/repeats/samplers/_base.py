"""What all repeats samplers share: epochs, who scores them, failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Unpack

from evalbudget.design import Cell, Design, Request
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.repeats.samplers._goal import Goal
from evalbudget.sampler import Option, Sampler, SamplerOptions

JudgeOf = Callable[[int, int], int]
"""Who scores this item and epoch, both counted from 0."""

ALL_CLOSED = "every item closed after repeated failures"


class RepeatSampler(Sampler):
    """Asks items of one model again and again.

    Authors write an :class:`~evalbudget.repeats.samplers._urgency.UrgencySampler`, which says how an item is
    chosen.

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

    def n_asked(self, item: int) -> int:
        """Readings of the item, those in flight included, failed ones not."""
        return self._active[item]

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

    def _asked(self, cell: Cell) -> None:
        item = cell.item
        self._epochs[item] = max(self._epochs[item], cell.epoch + 1)
        self._active[item] += 1

    def _learn(self, cell: Cell, value: float) -> None:
        self._n[cell.item] += 1

    def _failed(self, cell: Cell) -> None:
        self._active[cell.item] -= 1

    def _reads(self, key: Cell) -> int:
        return self._n[key.item]

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        self._open[cell.item] = is_open
        self._n_open += 1 if is_open else -1
        if self._goal is not None:
            self._goal.reopen()
