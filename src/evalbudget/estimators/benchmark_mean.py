"""The benchmark mean (the mean over items of each item's mean score): two questions, two functions.

:func:`mean_over_fixed_items` asks what the score would be if the same items were asked again: only the
repeats are random. :func:`mean_over_sampled_items` takes the items for a sample of all that could have been
asked. The second interval is wider, and the two must never be mixed up in one table.

Both need to know how the readings were allocated. If an item's count depends on its own scores, its mean is
biased, and on skewed scales the bias of the benchmark mean reaches several standard errors:

- ``FIXED``: all readings count.
- ``CROSS_FIT``: even epochs (half A) were counted out by the scores of odd epochs (half B) and the other way
  round; each half's mean is unbiased, and so is the average of the two. Evidence may be only what is bought
  whatever the scores, as the warm-up is: if A's counts follow all of B's growing evidence while B's follow
  A's, each depends on its own scores after all (mostly-pass Bernoulli, 1000 items, 6 to 8 readings each: bias
  of about one standard error either way, coverage .65-.87; with such evidence only, less than .03 and .95, at
  no larger error).
- ``ADAPTIVE``: only the first ``fixed_repeats`` readings of each item, bought whatever the scores, count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evalbudget.confidence.betting import betting_intervals
from evalbudget.confidence.bounds import FloatArray, IntArray, Scale
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimators.readings import ItemReadings
from evalbudget.estimators.result import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.sampler import Allocation
from evalbudget.shrinkage import t_quantile

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

    and under cross-fit, with A's counts given by B's scores, each half's variance being unbiased,

    .. math:: \hat\theta = \frac1K \sum_i \frac{\bar x_{Ai} + \bar x_{Bi}}2, \quad
              \widehat{\mathrm{Var}} = \frac1{4K^2} \sum_i \Bigl(\frac{s_{Ai}^2}{n_{Ai}}
              + \frac{s_{Bi}^2}{n_{Bi}}\Bigr)

    The two halves of an item are slightly correlated, which this leaves out: with few items the cross-fit
    interval covers a little less than its level.

    Student's t interval with Satterthwaite's degrees of freedom. An item (or half) with a single reading
    takes the mean s^2 of those with several; ``details["single"]`` counts them. An item with one half missing
    rests on the other. Items without any reading are left out, the target says so and
    ``details["items_missing"]`` counts them. Measured coverage at 95%: .92-1.0 (5 to 500 items, 2 to 5
    repeats; normal scores, ratings, Bernoulli).

    Defined for any readings: nothing read gives nan; a standard error is nan while no item has two readings.
    When readings of the same item never differ the standard error is 0 and no interval is claimed (nan),
    unless ``bounds`` are given: then Hoeffding's, half-width range * sqrt(log(2/alpha)/2 * sum of squared
    weights).

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
    n, weight = used.n, used.weight
    several = n > 1
    nu = n[several] - 1
    s2 = used.squares[several] / nu
    singles = ~several
    factor = weight[several] ** 2 / n[several]
    if s2.size:
        factor = factor + float((weight[singles] ** 2).sum()) / s2.size
    variance = float((factor * s2).sum()) if s2.size else float("nan")
    error = float(np.sqrt(variance))
    hoeffding = 0.5 * float((weight**2 / n).sum()) if n.size else float("nan")

    def interval(level: float) -> ConfidenceInterval:
        if variance > 0.0:
            df = variance**2 / float(((factor * s2) ** 2 / nu).sum())
            return _around(used.value, float(t_quantile(level, df)) * error)
        if bounds is None or not n.size:
            return _around(used.value, float("nan"))
        half = (bounds[1] - bounds[0]) * float(np.sqrt(np.log(2 / (1 - level)) * hoeffding))
        return ConfidenceInterval(max(bounds[0], used.value - half), min(bounds[1], used.value + half))

    return used.estimate(
        error,
        f"mean over {used.items_named}, asked again",
        f"mean of item means{used.how}",
        frozenset({Random.REPEATS}),
        interval,
        int(singles.sum()),
    )


def mean_over_sampled_items(
    readings: ItemReadings,
    *,
    allocation: Allocation,
    fixed_repeats: int = 0,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    r"""Benchmark mean with the items taken for a sample: items and repeats are random.

    .. math:: \hat\theta = \frac1K \sum_i \bar x_i, \quad
              \widehat{\mathrm{Var}} = \frac1{K (K-1)} \sum_i (\bar x_i - \hat\theta)^2

    with a t interval on K - 1 degrees of freedom; the spread of item means contains the repeats' noise. One
    reading per item is enough. Under cross-fit xbar_i is the mean of the item's two half-means. Measured
    coverage at 95%: .925 or more, but .88-.93 with 10 to 50 items that nearly always pass; so skewed a
    population needs more items.

    Defined for any readings: the standard error is nan below two items. When all item means are equal it is
    0 and no interval is claimed (nan), unless ``bounds`` are given: then a betting interval over the item
    means.

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
    """
    used = _Used.of(readings, allocation, fixed_repeats)
    if bounds is not None:
        Scale(float(bounds[0]), float(bounds[1])).to_unit(readings.value)
    means, K = used.item_means, used.item_means.size
    spread = K > 0 and float(np.ptp(means)) > 0.0
    error = float(means.std(ddof=1) / np.sqrt(K)) if spread else (0.0 if K > 1 else float("nan"))

    def interval(level: float) -> ConfidenceInterval:
        if spread:
            return _around(used.value, float(t_quantile(level, K - 1)) * error)
        if bounds is None or K == 0:
            return _around(used.value, float("nan"))
        bet = betting_intervals(np.clip(means, *bounds), [K], level, bounds=bounds)
        return ConfidenceInterval(float(bet.low[0]), float(bet.high[0]))

    return used.estimate(
        error,
        f"mean over all items like the {used.items_named}",
        f"mean of item means{used.how}, spread between items",
        frozenset({Random.ITEMS, Random.REPEATS}),
        interval,
        int((used.n == 1).sum()),
    )


@dataclass(frozen=True, slots=True)
class _Used:
    """The readings that count, as groups (an item, or half of one) with unbiased means."""

    n: IntArray
    squares: FloatArray
    weight: FloatArray
    item_means: FloatArray
    value: float
    n_items: int
    how: str
    n_bought: int
    cost: float

    @classmethod
    def of(cls, readings: ItemReadings, allocation: Allocation, fixed_repeats: int) -> _Used:
        if allocation is Allocation.CROSS_FIT:
            groups, how = [readings.half(0), readings.half(1)], " of cross-fit halves"
        elif allocation is Allocation.ADAPTIVE:
            if fixed_repeats < 1:
                raise InvalidInferenceError(
                    "readings were allocated adaptively, so the mean of all of them is biased, and "
                    f"fixed_repeats is {fixed_repeats}; pass the sampler's fixed_repeats (its warm-up), "
                    "or sample with cross-fit"
                )
            groups = [readings.first(fixed_repeats)]
            how = f", first {fixed_repeats} readings of each (the others were bought because of the scores)"
        else:
            groups, how = [readings], ""
        moments = [group.moments for group in groups]
        read = np.array([m.n > 0 for m in moments])
        halves = read.sum(axis=0)
        seen = halves > 0
        K = int(seen.sum())
        sums = np.sum([np.where(m.n > 0, m.mean, 0.0) for m in moments], axis=0)
        item_means = np.asarray(sums[seen] / halves[seen], dtype=np.float64)
        share = 1.0 / (max(K, 1) * np.maximum(halves, 1))
        return cls(
            n=np.concatenate([m.n[m.n > 0] for m in moments]),
            squares=np.concatenate([m.squares[m.n > 0] for m in moments]),
            weight=np.concatenate([share[m.n > 0] for m in moments]),
            item_means=item_means,
            value=float(item_means.mean()) if K else float("nan"),
            n_items=readings.n_items,
            how=how,
            n_bought=int(readings.value.size),
            cost=readings.cost,
        )

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
        single: int,
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
                "items_missing": float(self.n_items - self.item_means.size),
                "single": float(single),
                "readings_unused": float(self.n_bought - n),
            },
        )


def _around(value: float, half: float) -> ConfidenceInterval:
    return ConfidenceInterval(value - half, value + half)
