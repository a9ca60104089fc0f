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

The difference on a group of tasks, or on a sample drawn by strata, is the weighted mean of those of its
parts, which are given: variances add up, with Satterthwaite's degrees of freedom, and two more items are in
the part where they count most. Strata that clusters lie across are one part. What parts in which nothing
varies leave open, taken together (:mod:`~evalbudget.statistics._most_off`), is added in quadrature; where the
range of the scores is known, a part of one cluster is such a part.

No mean difference lies beyond the range of the scores, so no end of an interval does.

References:
    Agresti & Min (2005), Simple improved confidence intervals for comparing matched proportions,
    Statistics in Medicine 24.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray
from evalbudget.statistics._clustered_mean import ClusteredMean, summed_errors
from evalbudget.statistics._most_off import most_off
from evalbudget.statistics._shrinkage import t_quantile

NOTHING = 1e-12
"""A standard error up to this is rounding: all items differ by the same."""


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
            scores: nan where missing.
            bounds: smallest and largest possible score, where they are known.
        """
        if bounds is not None:
            return cls(bounds[1] - bounds[0], known=True)
        values = np.asarray(scores)[~np.isnan(scores)]
        low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
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


@dataclass(frozen=True, eq=False, slots=True)
class PairedMeans:
    """Mean differences over the tasks of a group, or the strata of a sample, which are given: items vary.

    Attributes:
        value: of each part on the first axis, whatever the others are; shapes of all go together.
        standard_error: of them; nan, or 0 where all items differ by the same.
        degrees: of freedom.
        most: see :func:`widened`.
        n: items that were compared.
        clusters: that these came in; as many as items where each was sampled by itself.
        weights: of the parts; only their ratios matter, and those of parts without an item count as 0.
    """

    value: FloatArray
    standard_error: FloatArray
    degrees: FloatArray
    most: FloatArray
    n: IntArray
    clusters: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, means: Sequence[ClusteredMean], weights: Sequence[float]) -> Self:
        """Of parts one by one."""
        columns = {
            name: np.array([getattr(mean, name) for mean in means]) for name in ClusteredMean.__slots__
        }
        return cls(**columns, weights=np.asarray(weights))

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """All parts of several."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.concatenate([getattr(one, name) for one in several]) for name in names})

    @property
    def values(self) -> FloatArray:
        """The weighted means; nan where there is nothing."""
        return self._sums()[0]

    @property
    def whole(self) -> ClusteredMean:
        """The weighted mean, where each part is one number."""
        value, error, guarded, degrees = map(float, self._sums())
        n, clusters = int(self.n.sum()), int(self.clusters.sum())
        most = math.sqrt(max(0.0, ((n + 2) * guarded) ** 2 - (n * error) ** 2) / 2.0)  # as widened has it
        return ClusteredMean(value, error, degrees, n, clusters, most)

    def intervals(self, *, alpha: float, span: ScoreSpan) -> Bounds:
        """Two-sided ones of the weighted means, each wrong with a probability of about alpha.

        Args:
            alpha: probability of an error of each.
            span: of the scores.

        Returns:
            Bounds; nan where the only part has one cluster, or one of several has and the range is not known,
            or nothing varies and no score is apart from another.
        """
        there = self.n > 0
        lone = there & (self.clusters < 2) & (there.sum(axis=0) > 1) & span.known
        still = np.where(lone, 0.0, self.standard_error)
        value, error, guarded, degrees = replace(self, standard_error=still)._sums()
        varies = error > NOTHING
        half = np.where(varies, t_quantile(1.0 - alpha, np.where(varies, degrees, 1.0)) * guarded, 0.0)
        half = np.where(np.isnan(error) | (~varies & (span.size == 0.0)), np.nan, half)
        share = self._shares * (still <= NOTHING)
        known = np.where(share > 0.0, self.value, 0.0)
        below, above = (
            most_off(share * np.maximum(span.size + way * known, 0.0), self.clusters, alpha=alpha)
            for way in (1.0, -1.0)
        )
        low, high = value - np.hypot(half, below), value + np.hypot(half, above)
        if span.known:
            low, high = np.maximum(low, -span.size), np.minimum(high, span.size)
        return Bounds(low, high)

    @property
    def _shares(self) -> FloatArray:
        weights = np.where(self.n > 0, self.weights, 0.0)
        with np.errstate(invalid="ignore"):
            return np.asarray(weights / weights.sum(axis=0))

    def _sums(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Value, standard error, the same with two more items in the part where they count most, degrees."""
        share, there = self._shares, self.n > 0
        value = np.where(there, share * self.value, 0.0).sum(axis=0)
        error = np.where(there, share * self.standard_error, 0.0)
        wide = np.where(there, share * widened(self.standard_error, self.most, np.maximum(self.n, 1)), 0.0)
        total, degrees = summed_errors(*zip(error**2, np.where(error > 0.0, self.degrees, 1.0), strict=True))
        guarded = np.sqrt(total**2 + (wide**2 - error**2).max(axis=0))
        nothing = ~there.any(axis=0)
        return np.where(nothing, np.nan, value), np.where(nothing, np.nan, total), guarded, degrees


def items_needed(
    found: ClusteredMean, *, alpha: float, span: ScoreSpan, margin: float | None, power: float
) -> int | None:
    """About so many items would make :meth:`PairedMeans.intervals` leave out 0, or both ends of the margin.

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
    if not apart > NOTHING or math.isnan(found.standard_error):
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
