"""ItemReadings: the scores of one model's items, in an order that does not depend on when they arrived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.design import Reading
from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._phase_means import PhaseMeans, item_shares, phase_means


@dataclass(frozen=True, slots=True)
class ItemMoments:
    """Sums over each item's readings.

    Attributes:
        n: readings, shape (n_items,).
        mean: their mean; nan where n is 0.
        squares: SS, the sum of squared deviations from the mean; exactly 0 where all readings are equal.
    """

    n: IntArray
    mean: FloatArray
    squares: FloatArray

    @property
    def variance(self) -> FloatArray:
        """s^2 with n - 1; nan where n is below 2."""
        undefined: FloatArray = np.full(self.n.shape, np.nan)
        return np.divide(self.squares, self.n - 1, out=undefined, where=self.n > 1, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ItemReadings:
    """Scores of items asked repeatedly, sorted by (item, epoch). Build it with :meth:`of`.

    Attributes:
        n_items: how many items the benchmark has, those never read included.
        item: item of each reading, shape (n_readings,), ascending.
        epoch: ordinal of the repeat, same shape, ascending within the item.
        value: the score, same shape; failed readings are absent.
        cost: of all readings, the failed ones included, in units of the budget.
        phase: ``Request.phase`` of each reading, same shape; nan where unknown. None: there were none, and
            the readings of an item weigh the same.
        phase_sizes: readings per item in each phase of the run that these are a part of; empty: of these.
    """

    n_items: int
    item: IntArray
    epoch: IntArray
    value: FloatArray
    cost: float
    phase: FloatArray | None = None
    phase_sizes: Sequence[float] = ()

    @classmethod
    def of(
        cls,
        item: ArrayLike,
        epoch: ArrayLike,
        value: ArrayLike,
        *,
        n_items: int | None = None,
        cost: float | None = None,
        phase: ArrayLike | None = None,
        phase_sizes: Sequence[float] = (),
    ) -> ItemReadings:
        """Sort readings that came in any order.

        Args:
            item: index of the item of each reading, shape (n_readings,).
            epoch: ordinal of the repeat, from 0, same shape.
            value: the score, same shape; leave failed readings out.
            n_items: size of the benchmark; None: the largest index seen, plus one.
            cost: of everything bought, failures included; None: one unit per reading.
            phase: ``Request.phase`` of each reading, same shape; nan where unknown.
            phase_sizes: readings per item in each phase of the run that these are a part of.

        Raises:
            InvalidInputError: shapes differ, an index is out of range, a score is not finite, or an item has
                the same epoch twice.
        """
        i, e = np.asarray(item, dtype=np.int64), np.asarray(epoch, dtype=np.int64)
        v = np.asarray(value, dtype=np.float64)
        if i.ndim != 1 or i.shape != e.shape or i.shape != v.shape:
            raise InvalidInputError(
                f"item, epoch and value have shapes {i.shape}, {e.shape}, {v.shape}; "
                "give one entry each per reading"
            )
        size = int(i.max(initial=-1)) + 1 if n_items is None else n_items
        if i.size and (i.min() < 0 or i.max() >= size or e.min() < 0):
            raise InvalidInputError(
                f"items run from {i.min()} to {i.max()} and epochs from {e.min()}; "
                f"items must lie in 0..{size - 1}, epochs start at 0"
            )
        if not np.isfinite(v).all():
            at = int(np.flatnonzero(~np.isfinite(v))[0])
            raise InvalidInputError(
                f"item {i[at]}, epoch {e[at]} has score {v[at]}; leave failed readings out"
            )
        p = None if phase is None else np.asarray(phase, dtype=np.float64)
        if p is not None and p.shape != v.shape:
            raise InvalidInputError(f"phase has shape {p.shape} and value {v.shape}; give one per reading")
        key = i * (int(e.max(initial=0)) + 1) + e
        if (np.diff(key) <= 0).any():
            order = np.argsort(key, kind="stable")
            i, e, v, key = i[order], e[order], v[order], key[order]
            p = None if p is None else p[order]
            twice = np.flatnonzero(np.diff(key) == 0)
            if twice.size:
                raise InvalidInputError(
                    f"item {i[twice[0]]} has epoch {e[twice[0]]} twice; "
                    "number the repeats of an item 0, 1, 2 ..."
                )
        return cls(size, i, e, v, float(v.size) if cost is None else float(cost), p, phase_sizes)

    @cached_property
    def counts(self) -> IntArray:
        """Readings per item, shape (n_items,)."""
        return np.bincount(self.item, minlength=self.n_items)

    @cached_property
    def moments(self) -> ItemMoments:
        """Count, mean and sum of squares per item."""
        n = self.counts
        starts = np.cumsum(n) - n
        first = np.zeros(self.n_items)
        first[n > 0] = self.value[starts[n > 0]]
        # deviations from the item's first reading: equal readings give exactly zero squares
        deviation = self.value - first[self.item]
        total = np.bincount(self.item, deviation, self.n_items)
        squares = np.bincount(self.item, deviation * deviation, self.n_items)
        share = np.divide(total, n, out=np.full(self.n_items, np.nan), where=n > 0)
        return ItemMoments(n, first + share, np.maximum(squares - np.where(n > 0, total * share, 0.0), 0.0))

    def where(self, keep: NDArray[np.bool_]) -> ItemReadings:
        """The readings marked True, shape (n_readings,), of the same benchmark at the same cost."""
        return replace(
            self,
            item=self.item[keep],
            epoch=self.epoch[keep],
            value=self.value[keep],
            phase=None if self.phase is None else self.phase[keep],
        )

    @classmethod
    def of_bought(cls, bought: Iterable[Reading], n_items: int) -> ItemReadings:
        """What was bought of one model, with the phases it was bought in; failures are left out.

        Args:
            bought: of every call that came back, failed ones included.
            n_items: of the benchmark.
        """
        scored = [(r.request, r.value) for r in bought if r.value is not None]
        return cls.of(
            [request.cell.item for request, _ in scored],
            [request.cell.epoch for request, _ in scored],
            [value for _, value in scored],
            n_items=n_items,
            phase=[np.nan if request.phase is None else request.phase for request, _ in scored],
        )

    @property
    def knows_phases(self) -> bool:
        """Whether the phase of each reading is known; a log scored again does not say."""
        return self.phase is not None and not np.isnan(self.phase).any()

    @cached_property
    def may_follow_scores(self) -> bool:
        """Whether what an adaptive sampler gave each item may have gone by scores, rather than by the budget.

        Every phase begins with one reading of each item, whatever the scores were, so that a phase which gave
        none a second one only ended early. Readings of unknown phases may always have followed scores.
        """
        if not self.knows_phases:
            return bool(np.ptp(self.counts) > 0)
        assert self.phase is not None
        for phase in np.unique(self.phase[self.phase > 0]):
            given = np.bincount(self.item[self.phase == phase])
            given = given[given > 0]
            if given.max() > 1 and np.ptp(given) > 0:
                return True
        return False

    def without_phases(self) -> ItemReadings:
        """The same readings, those of an item weighing the same."""
        return ItemReadings(self.n_items, self.item, self.epoch, self.value, self.cost)

    def first(self, repeats: int) -> ItemReadings:
        """Readings with an epoch below ``repeats``: those that were bought whatever the scores."""
        return self.where(self.epoch < repeats)

    @cached_property
    def shares(self) -> FloatArray:
        """Share of each reading in its item's mean, shape (n_readings,); those of an item sum to 1."""
        return item_shares(self.item, self.phase, self.n_items, self.phase_sizes)

    @cached_property
    def folded(self) -> PhaseMeans:
        """Items' means over phases; all phases must be known."""
        assert self.phase is not None
        return phase_means(self.item, self.phase, self.value, self.n_items, self.phase_sizes)

    @cached_property
    def item_means(self) -> FloatArray:
        """Mean of each item, over phases where they are known; nan where nothing was read."""
        return self.folded.mean if self.knows_phases else self.moments.mean
