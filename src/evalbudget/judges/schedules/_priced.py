r"""``priced``: cheap judges more often, at the cost of nothing in bias.

The mean of judge means weighs every judge 1/K whatever its number of calls, so the counts may follow prices.
Its variance :math:`K^{-2}\sum_l v_l/n_l` for :math:`\sum_l c_l n_l` dollars is least at

.. math:: n_l \propto \sqrt{v_l / c_l}

The raw mean of such readings is biased towards the cheap judges; use the mean of judge means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Unpack

import numpy as np

from evalbudget.judges.schedules._cyclic import positions_within
from evalbudget.judges.schedules._panel import per_judge
from evalbudget.judges.schedules._schedule import JudgeSchedule, ScheduleOptions
from evalbudget.statistics._bounds import FloatArray, IntArray

_FEWEST = 2  # readings of a judge without which its variance is unknown


def priced_shares(
    prices: FloatArray, variances: FloatArray | None = None, generation_price: float = 0.0
) -> FloatArray:
    """Share of the calls each judge gets, proportional to sqrt(v_l / c_l).

    Args:
        prices: of one call, shape (K,).
        variances: v, within-judge variance of a score, same shape; None if they are equal.
        generation_price: of the answer that every call needs a new one of; c_l includes it.
    """
    root = np.sqrt((np.ones_like(prices) if variances is None else variances) / (prices + generation_price))
    return np.asarray(root / root.sum(), dtype=np.float64)


def counts_of(shares: FloatArray, n: int) -> IntArray:
    """``n`` calls by largest remainder, and at least two (or an equal part, if that is less) per judge."""
    K = shares.size
    least = min(_FEWEST, n // K)
    quota = shares * n
    low = quota < least
    while low.any():  # raising some lowers the rest
        rest = n - least * int(low.sum())
        quota = np.where(low, least, shares * rest / shares[~low].sum())
        more = low | (quota < least)
        if (more == low).all():
            break
        low = more
    counts = np.floor(quota + 1e-9).astype(np.int64)
    counts[np.argsort(-(quota - counts), kind="stable")[: n - int(counts.sum())]] += 1
    return counts


class Priced(JudgeSchedule):
    """Counts proportional to 1/sqrt(c_l), every judge at least twice if the calls suffice.

    Exact to within one call overall at the planned epochs; within a category a judge's count is within two
    calls of its share, per generation.

    Args:
        items: as in :class:`JudgeSchedule`.
        judges: as in :class:`JudgeSchedule`.
        prices: of one call of each judge, by name or in the order of the panel; None if equal.
        options: as in :class:`JudgeSchedule`; the seed shuffles items and judges.

    Raises:
        UnknownNameError: a price of a judge that is not in the panel.
        InvalidInputError: one that is missing, zero or negative.
    """

    name: ClassVar[str] = "priced"

    def __init__(
        self,
        items: Sequence[str],
        judges: Sequence[str],
        *,
        prices: Mapping[str, float] | Sequence[float] | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        super().__init__(items, judges, **options)
        self.prices = per_judge("prices", prices, self.judges)
        self.shares = priced_shares(self.prices)
        draws = np.random.default_rng([self.seed, 0])
        counts = counts_of(self.shares, self.n_items * self.epochs)
        judge = np.repeat(np.arange(self.n_judges), counts)
        ordinal = np.arange(judge.size) - np.repeat(np.cumsum(counts) - counts, counts)
        # call j of a judge with count n is due at (j + 1/2)/n of the way: every stretch has its share of all
        due = (ordinal + 0.5) / counts[judge]
        tie = draws.permutation(self.n_judges)[judge]
        self._line = judge[np.lexsort((tie, due))]
        rank = draws.permutation(len(self.categories))[self.category]
        order = np.lexsort((positions_within(self.category, draws), rank))
        self._position = np.empty(self.n_items, dtype=np.int64)
        self._position[order] = np.arange(self.n_items)

    @property
    def _shares(self) -> FloatArray:
        return self.shares

    def _row(self, epoch: int) -> IntArray:
        round_, within = divmod(epoch, self.epochs)
        # the line starts elsewhere in another round, or an item would meet the same judges again
        at = within * self.n_items + self._position + round_ * (self._line.size // self.n_judges + 1)
        return self._line[at % self._line.size][:, None]
