r"""Intervals of mean paired differences: Student's t, with what few differing items need, inside the scale.

With n items in G clusters, mean difference d, standard error s and m the largest deviation of any item from
the mean,

.. math:: d \pm t_{1 - \alpha/2,\, \nu} \; \max\Bigl(s,\; \frac{\sqrt{n^2 s^2 + 2 m^2}}{n + 2}\Bigr) .

The second term is the error of the mean with two more items, one off by m each way. Where few items differ,
the plain error is too small whenever fewer differ than should: with 1 to 3 of 1,000 it excludes what would
show as little in one of nine samples. Where many do, the plain error is the larger one, and nothing changes.
Of few items, most of which differ from each other, m is cut
(:func:`~evalbudget.statistics._clustered_mean.farthest`).

Where all n items differ by the same c, at most a share :math:`p = 1 - \alpha^{1/G}` of clusters differs by
anything else, with S the range of the scores from -S to S:

.. math:: (1 - p) c \pm p S .

No mean difference lies beyond the range of the scores, so no end of an interval does.

References:
    Agresti & Min (2005), Simple improved confidence intervals for comparing matched proportions,
    Statistics in Medicine 24.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import Bounds, FloatArray
from evalbudget.statistics._clustered_mean import ClusteredMean
from evalbudget.statistics._shrinkage import t_quantile

NOTHING = 1e-12
"""A standard error up to this is rounding: all items differ by the same."""
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class ScoreSpan:
    """How far two scores can be apart.

    Attributes:
        size: largest possible score less the smallest; as seen, where nobody knows.
        known: it is not only what was seen.
    """

    size: float
    known: bool

    @classmethod
    def of(cls, scores: ArrayLike, bounds: tuple[float, float] | None = None) -> ScoreSpan:
        """Of some scores; from 0 to 1 where all are inside.

        Args:
            scores: nan where missing; one of them is not.
            bounds: smallest and largest possible score, where they are known.
        """
        if bounds is not None:
            return cls(bounds[1] - bounds[0], known=True)
        low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
        inside = low >= 0.0 and high <= 1.0
        return cls(1.0 if inside else high - low, known=inside)


def widened(standard_error: ArrayLike, most: ArrayLike, items: ArrayLike) -> FloatArray:
    """The standard error of a mean difference, no smaller than with two more items that are far off.

    Args:
        standard_error: of the mean.
        most: the largest deviation of an item's difference from the mean.
        items: that were compared, 1 or more.
    """
    error, n = np.asarray(standard_error), np.asarray(items)
    with_two = np.hypot(n * error, np.sqrt(2.0) * np.asarray(most)) / (n + 2.0)
    return np.asarray(np.maximum(error, with_two))


def paired_intervals(
    value: ArrayLike,
    standard_error: ArrayLike,
    degrees: ArrayLike,
    *,
    most: ArrayLike,
    items: ArrayLike,
    clusters: ArrayLike,
    alpha: float,
    span: ScoreSpan,
) -> Bounds:
    """Two-sided intervals, each wrong with a probability of about alpha; shapes go together.

    Args:
        value: mean differences.
        standard_error: of them; nan, or 0 where all items differ by the same.
        degrees: of freedom.
        most: see :func:`widened`.
        items: that were compared.
        clusters: that these came in; as many as items where each was sampled by itself.
        alpha: probability of an error of each.
        span: of the scores.

    Returns:
        Bounds; nan where there are fewer than two clusters, or nothing varies and no score is apart from
        another.
    """
    mean, n, count = np.asarray(value), np.maximum(items, 1), np.asarray(clusters)
    varies, same = np.asarray(standard_error) > NOTHING, np.asarray(standard_error) <= NOTHING
    error = np.where(varies, standard_error, np.nan)
    quantile = t_quantile(1.0 - alpha, np.where(varies, degrees, 1.0))
    half = quantile * widened(error, most, n)
    low, high = mean - half, mean + half
    alike = same & (count >= _FEWEST) & (span.size > 0.0)
    share = 1.0 - alpha ** (1.0 / np.maximum(count, 1))
    low = np.where(alike, (1.0 - share) * mean - share * span.size, low)
    high = np.where(alike, (1.0 - share) * mean + share * span.size, high)
    if span.known:
        low, high = np.maximum(low, -span.size), np.minimum(high, span.size)
    return Bounds(low, high)


def items_needed(
    found: ClusteredMean, *, alpha: float, span: ScoreSpan, margin: float | None, power: float
) -> int | None:
    """About so many items would make :func:`paired_intervals` leave out 0, or both ends of the margin.

    Args:
        found: mean difference on the items there are; with its spread, taken for the truth.
        alpha: probability of a wrong verdict.
        span: of the scores.
        margin: differences smaller than this do not matter; None: none is given.
        power: probability of a verdict.

    Returns:
        Items in all, those there are included; None where nothing can be said, or no more are needed.
    """
    size = abs(found.value)
    apart = max(size, 0.0 if margin is None else margin - size)
    if not (apart > NOTHING and found.clusters >= _FEWEST):
        return None
    if found.standard_error <= NOTHING:
        share = _share_left(size, span.size, margin)
        per_cluster = found.n / found.clusters
        return math.ceil(per_cluster * math.log(alpha) / math.log1p(-share)) if 0.0 < share < 1.0 else None
    normal = float(t_quantile(2.0 * power - 1.0, np.inf))

    def reaches(n: int) -> bool:
        error = found.standard_error * math.sqrt(found.n / n)
        quantile = float(t_quantile(1.0 - alpha, found.degrees * n / found.n))
        return quantile * float(widened(error, found.most, n)) + normal * error <= apart

    low = high = found.n
    while not reaches(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high if high > found.n else None


def _share_left(size: float, span: float, margin: float | None) -> float:
    """Of items that may differ otherwise, where all those seen differ by ``size``, for a verdict."""
    share = size / (size + span) if span > 0.0 else 0.0
    if margin is not None and size < margin < span:
        share = max(share, (margin - size) / (span - size))
    return share
