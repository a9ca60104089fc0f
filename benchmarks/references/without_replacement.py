r"""Betting confidence sequences for the mean of a finite pool read without replacement.

Of N scores in [0, 1] with mean m, those still unread after t readings with sum S_t have the mean

.. math:: m_t = \frac{N m - S_t}{N - t}

which is the conditional mean of the next reading when the next item is drawn uniformly from the rest. Betting
on m_t in place of m (see :mod:`evalbudget.statistics._anytime_betting`) therefore tests m, and since m_t
grows with m the capital still does not increase in m, so the grid stays conservative. Candidates with m_t
outside [0, 1] are impossible whatever the level; they are cut off without a grid, at S_t/N and
(S_t + N - t)/N. Once all N are read the mean is known and the interval has no width.

Stakes: :func:`~evalbudget.statistics._pool_mean_sequence.late_bets`.

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86,
    Section 5, arXiv 2010.09686.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._anytime_betting import BettingSequences, _feed
from evalbudget.statistics._bounds import (
    Bounds,
    FloatArray,
    IntArray,
    Scale,
    check_lengths,
    error_per_sequence,
)
from evalbudget.statistics._pool_mean_sequence import late_bets
from references.sequences import WatchedSequences


class WithoutReplacementSequences(WatchedSequences):
    """Betting confidence sequences for the means of finite pools, each read uniformly without replacement.

    Args:
        pool_sizes: N of each pool, shape (n_sequences,), >= 1.
        bounds: the smallest and the largest possible score.
        grid: number of candidate means, see :class:`BettingSequences`.
        dtype: of the capital, see :class:`BettingSequences`.

    Raises:
        InvalidInputError: as :class:`BettingSequences`, or a pool is empty.
    """

    def __init__(
        self,
        pool_sizes: ArrayLike,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        grid: int = 513,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.pool_sizes: IntArray = check_pools(pool_sizes)
        super().__init__(self.pool_sizes.size, bounds=bounds, grid=grid, dtype=dtype)

    def _conditional_means(self, n: IntArray, total: FloatArray, rows: slice | IntArray) -> FloatArray:
        pool = self.pool_sizes[rows]
        sums = np.stack([total, n - total], axis=1)[:, :, None]
        scaled = pool[:, None, None] * self._candidates - sums
        return np.clip(scaled / (pool - n)[:, None, None], 0.0, 1.0)

    def _bets(self, n: IntArray, variance: FloatArray, rows: slice | IntArray) -> FloatArray:
        pool = self.pool_sizes[rows]
        return late_bets(variance, pool / (pool - n))

    def _check_room(self, index: IntArray) -> None:
        check_room(self.n[index] + 1, self.pool_sizes[index])

    def _tighten(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        return tighten(low, high, self._total, self.n, self.pool_sizes)


def without_replacement_intervals(
    values: ArrayLike,
    lengths: ArrayLike,
    pool_sizes: ArrayLike,
    level: float = 0.95,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    simultaneous: bool = False,
    grid: int = 513,
    dtype: DTypeLike = np.float32,
) -> Bounds:
    """Betting intervals for the means of many finite pools, in bounded memory.

    Args:
        values: scores of pool 0 in order of reading, then of pool 1 ..., shape (sum of lengths,).
        lengths: readings per pool, shape (n_sequences,); at most the pool's size.
        pool_sizes: N of each pool, shape (n_sequences,), >= 1.
        level: of each interval, or of all together if ``simultaneous``.
        bounds: the smallest and the largest possible score.
        simultaneous: spend (1 - level) / n_sequences on each.
        grid: number of candidate means, see :class:`BettingSequences`.
        dtype: of the capital.

    Returns:
        Bounds of shape (n_sequences,), in the units of the scores.

    Raises:
        InvalidInputError: shapes do not match, a pool is read more often than it has items, or a score is nan
            or out of bounds.
    """
    scores = np.asarray(values, dtype=np.float64)
    counts = check_lengths(scores.size, lengths)
    pools = check_pools(pool_sizes)
    check_room(counts, pools)
    alpha = error_per_sequence(level, counts.size, simultaneous=simultaneous)
    unit = Scale(float(bounds[0]), float(bounds[1])).to_unit(scores)

    def new(chosen: IntArray) -> BettingSequences:
        return WithoutReplacementSequences(pools[chosen], bounds=bounds, grid=grid, dtype=dtype)

    return _feed(unit, counts, alpha, new)


def tighten(
    low: FloatArray, high: FloatArray, total: FloatArray, n: IntArray, pools: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Cut off what no unread score in [0, 1] could bring about; an exhausted pool has its exact mean."""
    known = total / pools
    # the true mean may lie exactly on these ends: allow for the rounding of the sums
    slack = (n + 4) * np.finfo(np.float64).eps
    low = np.maximum(low, known - slack)
    high = np.minimum(high, known + (pools - n) / pools + slack)
    exact = n == pools
    return np.where(exact, known, low), np.where(exact, known, high)


def check_pools(pool_sizes: ArrayLike) -> IntArray:
    """Pool sizes as an integer array.

    Raises:
        InvalidInputError: not one-dimensional, or a pool is empty.
    """
    pools = np.asarray(pool_sizes, dtype=np.int64)
    if pools.ndim != 1 or (pools < 1).any():
        raise InvalidInputError("pool_sizes must be a one-dimensional array of sizes of 1 or more")
    return pools


def check_room(counts: IntArray, pools: IntArray) -> None:
    """Raise unless every pool has as many items as readings.

    Raises:
        InvalidInputError: shapes differ, or a pool is read more often than it has items.
    """
    if counts.shape != pools.shape:
        raise InvalidInputError(
            f"{counts.size} sequences but {pools.size} pool sizes; give one size per sequence"
        )
    over = counts > pools
    if over.any():
        raise InvalidInputError(
            f"a pool of {pools[over][0]} items is read {counts[over][0]} times; "
            "each item can be read once without replacement"
        )
