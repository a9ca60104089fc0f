"""The benchmark mean (the mean over items of each item's mean score): two questions, two functions.

:func:`mean_over_fixed_items` asks what the score would be if the same items were asked again: only the
repeats are random. :func:`mean_over_sampled_items` takes the items for a sample of all that could have been
asked. The second interval is wider, and the two must never be mixed up in one table.

Both need to know how the readings were allocated. If an item's count depends on its own scores, its mean is
biased, and on skewed scales the bias of the benchmark mean reaches several standard errors:

- ``FIXED``: all readings count.
- ``PHASED``: counts depend on earlier phases only, and phases are folded so that the mean is unbiased; see
  ``evalbudget.statistics._phase_means``.
- ``ADAPTIVE``: only the first ``fixed_repeats`` readings of each item, bought whatever the scores, count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.repeats.estimates._readings import ItemReadings
from evalbudget.repeats.estimates._unvaried import (
    ROUNDING,
    ends_as_details,
    ends_of,
    is_at_end,
    share_or_t_interval,
    unvaried_interval,
)
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray, IntArray, Scale
from evalbudget.statistics._clustered_mean import clustered_mean
from evalbudget.statistics._shrinkage import t_quantile

Interval = Callable[[float], ConfidenceInterval]


def mean_over_fixed_items(
    readings: ItemReadings,
    *,
    allocation: Allocation,
    fixed_repeats: int = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    r"""Benchmark mean with the items given: only repeats are random.

    .. math:: \hat\theta = \frac1K \sum_i \bar x_i, \quad
              \widehat{\mathrm{Var}} = \frac1{K^2} \sum_i \frac{s_i^2}{n_i}

    Under ``PHASED`` xbar_i is the item's mean m_i folded over phases, and its part of the variance A_i; see
    :mod:`evalbudget.statistics._phase_means`.

    Student's t interval with Satterthwaite's degrees of freedom, of which item i has n_i - 1. An item with a
    single reading takes the mean variance of those with several; ``details["single"]`` counts them. Items
    without any reading are left out, the target says so and ``details["items_missing"]`` counts them.
    Measured coverage at 95%: .92-1.0 (5 to 500 items, 2 to 5 repeats; normal scores, ratings, Bernoulli), but
    .76 and .91 with 3 and 5 items that nearly always pass.

    Defined for any readings: nothing read gives nan; a standard error is nan while no item has two readings.
    When readings of the same item never differ the standard error is 0 and no interval is claimed (nan),
    unless ``bounds`` are given: then Hoeffding's, half-width range * sqrt(log(2/alpha)/2 * sum of squared
    weights). Where all readings are at the two ends of the scale, it is cut to

    .. math:: \hat\theta \pm (\text{range}) \frac{\log(2/\alpha)}{K \min_i n_i} ,

    with two readings of each item or more: with the chance p of an item's upper end
    :math:`p^n e^{-n (1 - p)} + (1 - p)^n e^{n p} \le 1`, so that a mean of chances that is off by t agrees in
    all readings with a probability of at most :math:`e^{-n K t}`. Where they are all at one end, it is cut to
    the exact interval of nothing seen in K min(n_i) cases: n readings of each of K items all are 0 with a
    probability of at most (1 - mean)^(K n).

    Args:
        readings: of one model's items.
        allocation: of the sampler that bought them (``Sampler.allocation``); a wrong one, a wrong interval.
        fixed_repeats: epochs below this were bought whatever the scores; required under ADAPTIVE.
        bounds: the smallest and the largest possible score.

    Returns:
        Estimate, fixed-n, asymptotic.

    Raises:
        InvalidInferenceError: allocation is ADAPTIVE and ``fixed_repeats`` is below 1.
        InvalidInputError: a score is outside the bounds.

    References:
        Satterthwaite (1946); Hoeffding (1963), Theorem 2.
    """
    used = _Used.of(readings, allocation, fixed_repeats)
    if bounds is not None:
        Scale(float(bounds[0]), float(bounds[1])).to_unit(readings.value)
    variance, degrees = used.variance()
    error = float(np.sqrt(variance))

    def interval(level: float) -> ConfidenceInterval:
        if variance > 0.0:
            return _around(used.value, float(t_quantile(level, degrees)) * error)
        if bounds is None or not used.n.size:
            return _around(used.value, float("nan"))
        hoeffding = 0.5 * float(used.w2.sum()) / used.n.size**2
        half = (bounds[1] - bounds[0]) * float(np.sqrt(np.log(2 / (1 - level)) * hoeffding))
        least = int(used.n.min())
        if least > 1 and all(is_at_end(score, bounds) for score in np.unique(used.item_means)):
            half = min(half, (bounds[1] - bounds[0]) * float(np.log(2 / (1 - level))) / (used.n.size * least))
        low, high = max(bounds[0], used.value - half), min(bounds[1], used.value + half)
        if is_at_end(used.value, bounds):
            exact = unvaried_interval(used.value, used.n.size * least, bounds, level)
            low, high = max(low, exact.low), min(high, exact.high)
        return ConfidenceInterval(low, high)

    return used.estimate(
        error,
        f"mean over {used.items_named}, asked again",
        f"mean of item means{used.how}",
        frozenset({Random.REPEATS}),
        interval,
        cases=used.n.size * int(used.n.min()) if used.n.size else 0,
    )


def mean_over_sampled_items(
    readings: ItemReadings,
    *,
    allocation: Allocation,
    fixed_repeats: int = 0,
    bounds: tuple[float, float] | None = None,
    clusters: ArrayLike | None = None,
) -> Estimate:
    r"""Benchmark mean with the items taken for a sample: items and repeats are random.

    .. math:: \hat\theta = \frac1K \sum_i \bar x_i, \quad
              \widehat{\mathrm{Var}} = \frac1{K (K-1)} \sum_i (\bar x_i - \hat\theta)^2

    on K - 1 degrees of freedom; the spread of item means contains the repeats' noise. One reading per item is
    enough. Under ``PHASED`` xbar_i is the item's mean over phases. Student's t interval, but where all scores
    are one of the two ``bounds`` that of :mod:`~evalbudget.statistics._quasi_binomial`. Measured coverage at
    95%: .94 or more of pass/fail items (``tests/repeats/estimates/test_share_intervals.py``), but .90 with 10
    items read often of which most always pass; so skewed a population needs more items.

    With ``clusters`` these were sampled, with all their items: the error is the one of
    :mod:`~evalbudget.statistics._clustered_mean`, between clusters, and so are its degrees of freedom.

    Defined for any readings: the standard error is nan below two items, or two clusters. When all item means
    are equal, or those of all clusters, it is 0 and no interval is claimed (nan), unless ``bounds`` are
    given: then the exact one where they are at an end of the scale, and a betting interval over the means
    elsewhere; in both, clusters count in place of items.

    Args:
        readings: of one model's items.
        allocation: of the sampler that bought them (``Sampler.allocation``); a wrong one, a wrong interval.
        fixed_repeats: epochs below this were bought whatever the scores; required under ADAPTIVE.
        bounds: the smallest and the largest possible score.
        clusters: number of each item's cluster, shape (n_items,); None where items are independent.

    Returns:
        Estimate, fixed-n, asymptotic. ``details["cases"]`` counts what is independent.

    Raises:
        InvalidInferenceError: allocation is ADAPTIVE and ``fixed_repeats`` is below 1.
        InvalidInputError: a score is outside the bounds.
    """
    used = _Used.of(readings, allocation, fixed_repeats)
    if bounds is not None:
        Scale(float(bounds[0]), float(bounds[1])).to_unit(readings.value)
    means, K = used.item_means, used.item_means.size
    own = np.arange(K) if clusters is None else np.asarray(clusters)[used.items]
    found = clustered_mean(means, own)
    rounding = ROUNDING * max(1.0, float(np.abs(means).max(initial=0.0)))
    spread = K > 0 and float(np.ptp(means)) > rounding and not found.standard_error <= rounding
    error = found.standard_error if spread or found.clusters < 2 else 0.0

    ends = ends_of(readings.value, bounds)

    def interval(level: float) -> ConfidenceInterval:
        if spread:
            return share_or_t_interval(used.value, error, found.degrees, level, ends)
        if bounds is None or K == 0:
            return _around(used.value, float("nan"))
        return unvaried_interval(used.value, found.clusters, bounds, level)

    between = "items" if clusters is None else f"{found.clusters} clusters of items"
    return used.estimate(
        error,
        f"mean over all items like the {used.items_named}",
        f"mean of item means{used.how}, spread between {between}",
        frozenset({Random.ITEMS, Random.REPEATS}),
        interval,
        cases=found.clusters,
        more=ends_as_details(ends, found.degrees if spread else math.nan),
    )


def mean_of_item_means(
    means: FloatArray, *, bounds: tuple[float, float] | None = None, clusters: ArrayLike | None = None
) -> Estimate:
    """:func:`mean_over_sampled_items` of what is known of each item, however often it was read.

    Args:
        means: of the items, shape (n_items,); nan where nothing is known.
        bounds: the smallest and the largest possible one; intervals end there.
        clusters: number of each item's cluster, same shape; None where items are independent.
    """
    item = np.flatnonzero(~np.isnan(means))
    once = ItemReadings.of(item, np.zeros(item.size, np.int64), means[item], n_items=means.size)
    found = mean_over_sampled_items(once, allocation=Allocation.FIXED, bounds=bounds, clusters=clusters)
    return found if bounds is None else found.within(*bounds)


@dataclass(frozen=True, slots=True)
class _Used:
    """The readings that count, item by item; items without any are left out."""

    n: IntArray
    w2: FloatArray
    """Sum of the item's squared shares."""
    own: FloatArray
    """Estimated variance of the item's mean; nan where nothing shows it."""
    items: IntArray
    item_means: FloatArray
    value: float
    n_items: int
    how: str
    n_bought: int
    cost: float
    phased: bool

    @classmethod
    def of(cls, readings: ItemReadings, allocation: Allocation, fixed_repeats: int) -> _Used:
        phased, how = allocation is Allocation.PHASED and readings.knows_phases, ""
        used = readings if phased else readings.without_phases()
        if phased:
            how = ", folded over phases"
        elif allocation is Allocation.PHASED:
            allocation = Allocation.ADAPTIVE  # a log that was scored again has the scores alone
        if allocation is Allocation.ADAPTIVE:
            if fixed_repeats < 1:
                raise InvalidInferenceError(
                    "readings were allocated adaptively, so the mean of all of them is biased, and "
                    f"fixed_repeats is {fixed_repeats}; pass the sampler's fixed_repeats (its warm-up), "
                    "or a sampler that buys in phases, such as auto"
                )
            used = used.first(fixed_repeats)
            how = f", first {fixed_repeats} readings of each (the others were bought because of the scores)"
        moments = used.moments
        read = moments.n > 0
        K = int(read.sum())
        item_means = used.item_means[read]
        own = used.folded.variance if phased else moments.variance / np.maximum(moments.n, 1)
        return cls(
            n=moments.n[read],
            w2=np.asarray(np.bincount(used.item, used.shares**2, used.n_items)[read]),
            own=own[read],
            items=np.flatnonzero(read),
            item_means=item_means,
            value=float(item_means.mean()) if K else float("nan"),
            n_items=readings.n_items,
            how=how,
            n_bought=int(readings.value.size),
            cost=readings.cost,
            phased=phased,
        )

    def variance(self) -> tuple[float, float]:
        """Of the mean, and its degrees of freedom; nan where nothing shows it."""
        K = self.n.size
        known = self.n > 1
        if not known.any():
            return float("nan"), 1.0
        own, n = self.own[known], self.n[known]
        # an item with a single reading takes the mean variance of the others
        parts = (own + float((~known).sum()) / own.size * own * n) / K**2
        variance = float(parts.sum())
        # shares of it: squares of tiny ones would be 0
        degrees = 1.0 / float(((parts / variance) ** 2 / (n - 1)).sum()) if variance > 0.0 else 1.0
        return float(self.own.sum()) / K**2 if self.phased else variance, degrees

    @property
    def items_named(self) -> str:
        K = self.item_means.size
        return f"the {K} items" if self.n_items == K else f"the {K} items that were read (of {self.n_items})"

    def estimate(
        self,
        error: float,
        target: str,
        method: str,
        random: frozenset[Random],
        interval: Interval,
        *,
        cases: int,
        more: Mapping[str, float] = MappingProxyType({}),
    ) -> Estimate:
        n = int(self.n.sum())
        return Estimate(
            value=self.value,
            standard_error=error,
            target=target,
            method=method,
            random=random,
            validity=Validity.FIXED_N,
            coverage=Coverage.EACH,
            asymptotic=True,
            n=n,
            cost=self.cost,
            interval=interval,
            details={
                "items": float(self.item_means.size),
                "cases": float(cases),
                "items_missing": float(self.n_items - self.item_means.size),
                "single": float((self.n == 1).sum()),
                "readings_unused": float(self.n_bought - n),
                **more,
            },
        )


def _around(value: float, half: float) -> ConfidenceInterval:
    return ConfidenceInterval(value - half, value + half)
