"""The JudgeSchedule: which judges score generation ``epoch`` of an item."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self, TypedDict

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.judges.schedules._panel import check_panel, judge_index
from evalbudget.judges.schedules._replacements import deal_out, spread_over_items
from evalbudget.statistics._bounds import FloatArray, IntArray

_NOBODY = -1  # a call that nobody makes any more


class ScheduleOptions(TypedDict, total=False):
    """What every rotation takes besides items and judges; see :class:`JudgeSchedule`."""

    categories: Sequence[str] | None
    epochs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Judge calls, one entry each, in the order (epoch, item, judge as scheduled).

    Attributes:
        item: index of the item.
        epoch: generation, from 0.
        judge: index into the panel.
    """

    item: IntArray
    epoch: IntArray
    judge: IntArray


class JudgeSchedule(ABC):
    """Decides which judges score generation ``epoch`` of an item.

    A pure function of (configuration, seed, item, epoch): neither the order of completion nor failures can
    change it, and a cell asked again keeps its judge. An author writes :meth:`_row`.

    Args:
        items: one name per item; only their number and order count.
        judges: the panel, unique names; indices everywhere are positions in it.
        categories: one label per item; None for a single category.
        epochs: generations per item that are planned. More can be asked for; balance over all categories
            together is promised at this number.
        seed: of everything random.

    Raises:
        InvalidInputError: too few judges, one listed twice, no items, or categories that do not fit.
    """

    name: ClassVar[str]
    fewest_judges: ClassVar[int] = 2
    weighs_judges: ClassVar[bool] = True
    """Estimates are means of judge means; False for baselines that are reported as raw means."""

    def __init__(
        self,
        items: Sequence[str],
        judges: Sequence[str],
        *,
        categories: Sequence[str] | None = None,
        epochs: int = 1,
        seed: int = 0,
    ) -> None:
        self.judges = check_panel(
            judges, fewest=self.fewest_judges, needed_by=f"the rotation {getattr(self, 'name', '?')!r}"
        )
        self.n_items = len(items)
        if self.n_items == 0:
            raise InvalidInputError("there are no items to score; give at least one")
        if epochs < 1:
            raise InvalidInputError(f"epochs is {epochs}; plan at least one generation per item")
        labels = ("",) * self.n_items if categories is None else tuple(categories)
        if len(labels) != self.n_items:
            raise InvalidInputError(
                f"there are {len(labels)} categories for {self.n_items} items; give one per item"
            )
        code = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        self.category = np.fromiter((code[label] for label in labels), np.int64, self.n_items)
        self.categories = tuple(code)
        self.epochs = epochs
        self.seed = seed
        self.dropped: tuple[int, ...] = ()
        self._rows: dict[int, IntArray] = {}
        self._whole: JudgeSchedule | None = None  # this schedule before the last judge was dropped
        self._calls: IntArray = np.zeros(0, np.int64)  # per (category, judge), once one was dropped
        self._met: IntArray | None = None  # per (item, judge); with one call each there is nothing to avoid

    # what hosts call

    @property
    def n_judges(self) -> int:
        """Size of the panel, dropped judges included."""
        return len(self.judges)

    @property
    def active(self) -> tuple[int, ...]:
        """Judges still asked."""
        return tuple(j for j in range(self.n_judges) if j not in self.dropped)

    @property
    def calls_per_generation(self) -> int:
        """How many judges score one generation."""
        return 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know: dropped judges, judges that score nothing."""
        found = [
            f"judge {self.judges[j]!r} was dropped; the panel mean is over the others" for j in self.dropped
        ]
        calls = self.n_items * self.epochs * self.calls_per_generation
        if calls < len(self.active):
            found.append(
                f"{calls} judge calls for {len(self.active)} judges: at least {len(self.active) - calls} of "
                "them score nothing, and the estimate speaks for the others only"
            )
        return tuple(found)

    def judges_for(self, item: int, epoch: int = 0) -> tuple[int, ...]:
        """Indices of the judges that score this generation.

        Raises:
            InvalidInputError: there is no such item, or the epoch is negative.
        """
        if not (0 <= item < self.n_items and epoch >= 0):
            raise InvalidInputError(
                f"item {item}, epoch {epoch} is not in the schedule; items run from 0 to {self.n_items - 1}, "
                "epochs from 0"
            )
        return tuple(int(judge) for judge in self._final(epoch)[item] if judge != _NOBODY)

    def assign(self, n_epochs: int | None = None) -> Assignment:
        """All calls of the first ``n_epochs`` generations (as planned if None), at once."""
        epochs = range(self.epochs if n_epochs is None else n_epochs)
        rows = [self._final(epoch) for epoch in epochs]
        if not rows:
            nothing = np.zeros(0, dtype=np.int64)
            return Assignment(nothing, nothing, nothing)
        judge = np.concatenate([row.ravel() for row in rows])
        item = np.concatenate([np.repeat(np.arange(self.n_items), row.shape[1]) for row in rows])
        epoch = np.repeat(np.arange(len(rows)), [row.size for row in rows])
        asked = judge != _NOBODY
        return Assignment(item[asked], epoch[asked], judge[asked])

    def without(self, judge: str | int) -> Self:
        """The same schedule with a judge dropped: only that judge's calls move to others.

        At the planned epochs every category stays as balanced as it was: equal shares differ by one call at
        most. Within that, counts over all categories are as equal as moving single calls makes them, and an
        item meets judges that it has not met before as far as the counts allow.

        Raises:
            UnknownNameError: no such judge.
            InvalidInputError: it was dropped already, or nobody would be left.
        """
        index = judge_index(judge, self.judges)
        if index in self.dropped:
            raise InvalidInputError(f"judge {self.judges[index]!r} was dropped already")
        if len(self.active) == 1:
            raise InvalidInputError(
                f"judge {self.judges[index]!r} is the only one left; without it nothing can be scored"
            )
        smaller = copy(self)
        smaller.dropped = (*self.dropped, index)
        smaller._whole, smaller._rows = self, {}
        smaller._calls = np.zeros((len(self.categories), self.n_judges), dtype=np.int64)
        smaller._met = np.zeros((self.n_items, self.n_judges), dtype=np.int32) if self.epochs > 1 else None
        return smaller

    # what an author writes

    @abstractmethod
    def _row(self, epoch: int) -> IntArray:
        """Judges of every item's generation, shape (n_items, calls), for the whole panel."""

    def _moved(self, row: IntArray, gone: int, epoch: int, calls: IntArray) -> IntArray:
        """The row with the calls of the judge ``gone`` given to others.

        In turn to who has least in the category, relative to its share, then overall, then to whom the item
        has met least.

        Args:
            row: judges, shape (n_items, calls); the planned epochs side by side, later ones each by itself.
            gone: the judge dropped.
            epoch: of the row, 0 for the planned ones.
            calls: per (category, judge), those known to stay; counted up in place.
        """
        row = row.copy()
        item, call = np.nonzero(row == gone)
        if item.size:
            draws = np.random.default_rng([self.seed, 3, len(self.dropped), epoch])
            active = np.asarray(self.active)
            own = calls[:, active]
            moved = deal_out(self.category[item], own, self._shares[active], draws)
            calls[:, active] = own
            if self._met is not None:
                moved = spread_over_items(moved, self.category[item], self._met[item][:, active], draws)
                np.add.at(self._met, (item, active[moved]), 1)
            row[item, call] = active[moved]
        return row

    @property
    def _shares(self) -> FloatArray:
        """What the judges' counts are proportional to."""
        return np.ones(self.n_judges)

    # the rest

    def _final(self, epoch: int) -> IntArray:
        if self._whole is None:
            if epoch not in self._rows:
                self._rows[epoch] = self._row(epoch)
            return self._rows[epoch]
        while (done := len(self._rows)) <= epoch:
            epochs = [done] if done else list(range(self.epochs))  # those that are planned all at once
            row = np.hstack([self._whole._final(each) for each in epochs])
            self._count(row)  # every call that stays is known before the first one moves
            moved = self._moved(row, self.dropped[-1], done, self._calls)
            self._rows |= zip(epochs, np.hsplit(moved, len(epochs)), strict=True)
        return self._rows[epoch]

    def _count(self, row: IntArray) -> None:
        staying = (row != self.dropped[-1]) & (row != _NOBODY)
        category = np.broadcast_to(self.category[:, None], row.shape)
        np.add.at(self._calls, (category[staying], row[staying]), 1)
        if self._met is not None:
            item = np.broadcast_to(np.arange(self.n_items)[:, None], row.shape)
            np.add.at(self._met, (item[staying], row[staying]), 1)
