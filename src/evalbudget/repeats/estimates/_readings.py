"""ItemReadings: the scores of one model's items, in an order that does not depend on when they arrived."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.design import Reading
from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._reading_weights import are_of_one_sampler, item_shares


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
        weight: ``Request.weight`` of each reading, same shape; nan for held-out ones. None: no weights were
            fixed, and the readings of an item weigh the same.
    """

    n_items: int
    item: IntArray
    epoch: IntArray
    value: FloatArray
    cost: float
    weight: FloatArray | None = None

    @classmethod
    def of(
        cls,
        item: ArrayLike,
        epoch: ArrayLike,
        value: ArrayLike,
        *,
        n_items: int | None = None,
        cost: float | None = None,
        weight: ArrayLike | None = None,
    ) -> ItemReadings:
        """Sort readings that came in any order.

        Args:
            item: index of the item of each reading, shape (n_readings,).
            epoch: ordinal of the repeat, from 0, same shape.
            value: the score, same shape; leave failed readings out.
            n_items: size of the benchmark; None: the largest index seen, plus one.
            cost: of everything bought, failures included; None: one unit per reading.
            weight: ``Request.weight`` of each reading, same shape; nan for held-out ones.

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
        w = None if weight is None else np.asarray(weight, dtype=np.float64)
        if w is not None and w.shape != v.shape:
            raise InvalidInputError(f"weight has shape {w.shape} and value {v.shape}; give one per reading")
        key = i * (int(e.max(initial=0)) + 1) + e
        if (np.diff(key) <= 0).any():
            order = np.argsort(key, kind="stable")
            i, e, v, key = i[order], e[order], v[order], key[order]
            w = None if w is None else w[order]
            twice = np.flatnonzero(np.diff(key) == 0)
            if twice.size:
                raise InvalidInputError(
                    f"item {i[twice[0]]} has epoch {e[twice[0]]} twice; "
                    "number the repeats of an item 0, 1, 2 ..."
                )
        return cls(size, i, e, v, float(v.size) if cost is None else float(cost), w)

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
        weight = None if self.weight is None else self.weight[keep]
        return ItemReadings(
            self.n_items, self.item[keep], self.epoch[keep], self.value[keep], self.cost, weight
        )

    @classmethod
    def of_bought(cls, bought: Iterable[Reading], n_items: int) -> ItemReadings:
        """What was bought of one model, with the weights that were fixed for it; failures are left out.

        Args:
            bought: as in :attr:`~evalbudget.journal.Journal.readings`.
            n_items: of the benchmark.
        """
        scored = [(r.request, r.value) for r in bought if r.value is not None]
        return cls.of(
            [request.cell.item for request, _ in scored],
            [request.cell.epoch for request, _ in scored],
            [value for _, value in scored],
            n_items=n_items,
            weight=[np.nan if request.weight is None else request.weight for request, _ in scored],
        )

    @property
    def lost_weights(self) -> bool:
        """Whether the weights are not those that one sampler gave.

        What they leave of an item's share falls to what is held out. A log that was scored again says nothing
        of weights; and those of a second scorer that scored what the first one did not may add up to more
        than the share, since a reading without a score gives its weight back.
        """
        if self.weight is None:
            return False
        return not are_of_one_sampler(self.item, self.weight, self.n_items)

    def unweighted(self) -> ItemReadings:
        """The same readings without the weights that were fixed for them."""
        return ItemReadings(self.n_items, self.item, self.epoch, self.value, self.cost)

    def first(self, repeats: int) -> ItemReadings:
        """Readings with an epoch below ``repeats``: those that were bought whatever the scores."""
        return self.where(self.epoch < repeats)

    @cached_property
    def shares(self) -> FloatArray:
        r"""Share of each reading in its item's mean, shape (n_readings,); those of an item sum to 1.

        Readings with a weight have it; what they leave of 1 falls to the held-out reading. An item whose
        held-out reading failed shares its 1 out in proportion to the weights.
        """
        return item_shares(self.item, self.weight, self.n_items)

    @cached_property
    def weighted_means(self) -> FloatArray:
        """Sum of shares times scores, shape (n_items,); nan where nothing was read."""
        total = np.bincount(self.item, self.shares * self.value, self.n_items)
        return np.asarray(np.where(self.counts > 0, total, np.nan))
