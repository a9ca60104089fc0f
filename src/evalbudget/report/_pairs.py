"""Paired differences of all pairs of models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray
from evalbudget.statistics._clustered_mean import clustered_mean, farthest, summed_errors
from evalbudget.statistics._paired_interval import PairedMeans
from evalbudget.statistics._strata import Strata


def open_ranks(bounds: Bounds, *, lower_is_better: bool = False) -> tuple[tuple[int, int], ...]:
    """Best and worst rank of every model that the differences leave open, for all models at once.

    Model a ranks behind every model that is certainly better: with the intervals of all
    pairs holding at once, so do all ranks.

    Args:
        bounds: of the differences of a (row) less b (column), each shape (models, models).
        lower_is_better: whether the lowest score is the best.

    References:
        Al Mohamad, van Zwet, Solari, Goeman (2022), Simultaneous confidence intervals for ranks.
    """
    n = len(bounds.low)
    better, worse = (bounds.high < 0.0).sum(axis=1), (bounds.low > 0.0).sum(axis=1)
    if lower_is_better:
        better, worse = worse, better
    return tuple((1 + int(b), n - int(w)) for b, w in zip(better, worse, strict=True))


def pairs_by_item(
    means: FloatArray,
    judges: tuple[FloatArray, FloatArray] | None = None,
    *,
    less: FloatArray | None = None,
    absent: NDArray[np.bool_] | None = None,
    cluster: IntArray | None = None,
    strata: Strata | None = None,
) -> PairedMeans:
    """Differences of model a (row) and model b (column): the mean of the items', items sampled.

    Args:
        means: item means, shape (models, items); NaN where missing.
        less: those of the second of each pair; None: the same.
        absent: items of which nothing is there, and a pair may both lack, same shape; None: none.
        cluster: number of each item's cluster, shape (items,); None: items were sampled by themselves.
        strata: that clusters lie across, by whose sizes items weigh; None: all weigh the same.
        judges: what fitting judges' biases adds to the variance of each model's mean, and its degrees of
            freedom, each shape (models,); None: nothing.

    Returns:
        One part, of shape (1, models, models).
    """
    m = len(means)
    added, freedom = (np.zeros(m), np.ones(m)) if judges is None else judges
    value, error, degrees, most = (np.full((m, m), np.nan) for _ in range(4))
    count, groups = np.zeros((m, m), dtype=np.int64), np.zeros((m, m), dtype=np.int64)
    for a in range(m):
        difference = means[a] - (means if less is None else less)
        if absent is not None:
            difference[absent & absent[a]] = np.nan
        shared = ~np.isnan(difference)
        n = np.count_nonzero(shared, axis=1)
        difference = np.where(shared, difference, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            value[a] = difference.sum(axis=1) / n
            squares = (np.where(shared, difference - value[a][:, None], 0.0) ** 2).sum(axis=1)
            plain = squares / (n - 1) / n
        error[a], degrees[a] = summed_errors(
            (plain, np.maximum(n - 1.0, 1.0)), (added[a], freedom[a]), (added, freedom)
        )
        same = _ptp(difference, shared) == 0.0
        error[a, same & (n > 1)] = 0.0
        most[a], count[a] = farthest(difference - value[a][:, None], shared), n
        if cluster is not None:
            found = [
                clustered_mean(
                    np.where(s, d, np.nan), cluster, weights=None if strata is None else strata.weights(s)
                )
                for s, d in zip(shared, difference, strict=True)
            ]
            groups[a] = [each.clusters for each in found]
            value[a], most[a] = [each.value for each in found], [each.most for each in found]
            plain = np.array([each.standard_error**2 for each in found])
            own = np.array([each.degrees for each in found])
            error[a], degrees[a] = summed_errors((plain, own), (added[a], freedom[a]), (added, freedom))
            error[a, same & (groups[a] > 1)] = 0.0
        else:
            groups[a] = n
    weights = count.astype(np.float64)
    return PairedMeans(
        *(value[None], error[None], degrees[None], most[None]), *(count[None], groups[None]), weights[None]
    )


def _ptp(values: FloatArray, shared: NDArray[np.bool_]) -> FloatArray:
    """Largest less smallest of each row's shared values; 0 where there are none."""
    high = np.where(shared, values, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(shared, values, np.inf).min(axis=1, initial=np.inf)
    return np.asarray(np.where(shared.any(axis=1), np.maximum(high - low, 0.0), 0.0))
