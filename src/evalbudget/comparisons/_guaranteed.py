"""Intervals of paired differences that hold however scores are spread within a known range."""

from __future__ import annotations

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import ConfidenceInterval
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._paired_test import UnorderedPairs

_FEWEST = 2
_LEAST, _MOST = 0.005, 0.4


def guaranteed_interval(
    difference: FloatArray, codes: IntArray, alpha: float, bounds: tuple[float, float]
) -> ConfidenceInterval:
    """Of the mean difference of items whose clusters were sampled, by the evidence of the gate.

    Each end is wrong with a probability of at most alpha / 2, for any number of items and any distribution
    within the range; no more than that is assumed. Stakes go by the number of clusters alone.

    Args:
        difference: of each item's scores, nan where missing, shape (items,).
        codes: number of each item's cluster, shape (items,).
        alpha: probability of an error.
        bounds: smallest and largest possible score.

    Returns:
        The interval; nan with fewer than two clusters.
    """
    size = bounds[1] - bounds[0]
    known = ~np.isnan(difference)
    code = np.unique(codes[known], return_inverse=True)[1]
    count = np.bincount(code)
    if count.size < _FEWEST:
        return ConfidenceInterval(float("nan"), float("nan"))
    total = np.asarray(np.bincount(code, weights=np.clip(difference[known] / size, -1.0, 1.0)), np.float64)
    gap = float(np.clip(np.sqrt(np.log(2.0 / alpha) / (6.0 * count.size)), _LEAST, _MOST))
    draws = UnorderedPairs(total, count.astype(np.int64), gap, int(count.max()))
    low, high = draws.interval(alpha / 2.0)
    return ConfidenceInterval(low * size, high * size)


def require_range(metric: str, study: Study) -> None:
    """Refuse scores that nobody knows the range of.

    Raises:
        InvalidInputError: they are such scores.
    """
    if study.bounds is None:
        raise InvalidInputError(
            f"--guaranteed holds for scores of a known range, and that of {metric} is not declared; give the "
            "smallest and the largest possible score, for example --score-range 1..10"
        )
