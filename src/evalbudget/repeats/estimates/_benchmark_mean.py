"""The benchmark mean (the mean over items of each item's mean score): two questions, two functions.

:func:`mean_over_fixed_items` asks what the score would be if the same items were asked again: only the
repeats are random. :func:`mean_over_sampled_items` takes the items for a sample of all that could have been
asked. The second interval is wider, and the two must never be mixed up in one table.

Both need to know how the readings were allocated. If an item's count depends on its own scores, its mean is
biased, and on skewed scales the bias of the benchmark mean reaches several standard errors:

- ``FIXED``: all readings count.
- ``WEIGHTED``: every reading counts with the weight that was fixed before it was seen, and what is left of an
  item's share falls to its held-out reading, which steered nothing; see
  ``evalbudget.repeats.samplers._unbiased_weights``. The mean is unbiased.
- ``ADAPTIVE``: only the first ``fixed_repeats`` readings of each item, bought whatever the scores, count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.repeats.estimates._readings import ItemMoments, ItemReadings
from evalbudget.repeats.estimates._unvaried import ROUNDING, is_at_end, unvaried_interval
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

    Under ``WEIGHTED``, with the shares w_ik of an item's readings,

    .. math:: \hat\theta = \frac1K \sum_i \sum_k w_{ik} x_{ik}, \quad
              \widehat{\mathrm{Var}} = \frac1{K^2} \sum_i \frac{n_i}{n_i - 1}
              \sum_k w_{ik}^2 (x_{ik} - \bar x_i)^2 ,

    which with equal shares is the above. Items whose first scores happen to agree are asked seldom, so s_i^2
    is too small where readings weigh most; but there the held-out reading, which no decision saw, weighs more
    than the others, and every deviation counts with its reading's own weight.

    Student's t interval with Satterthwaite's degrees of freedom, of which item i has (n_i - 1)/n_i (sum
    w^2)^2 / sum w^4 (n_i - 1 with equal shares); under ``WEIGHTED`` no more than the mean m of the K items'
    s^2 shows by their spread, 2 m^2 K / Var(s^2): on skewed scores a few items hold most of what is known
    of the variance. An item with a single reading takes the mean variance of those with several;
    ``details["single"]`` counts them. Items without any reading are left out, the target says so and
    ``details["items_missing"]`` counts them. Measured coverage at 95%: .92-1.0 (5 to 500 items, 2 to 5
    repeats; normal scores, ratings, Bernoulli), but .76 and .91 with 3 and 5 items that nearly always pass.

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
    parts, degrees = used.parts()
    variance = float(parts.sum()) if parts.size else float("nan")
    error = float(np.sqrt(variance))

    def interval(level: float) -> ConfidenceInterval:
        if variance > 0.0:
            df = min(variance**2 / float((parts**2 / degrees).sum()), used.most_degrees)
            return _around(used.value, float(t_quantile(level, df)) * error)
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

    with a t interval on K - 1 degrees of freedom; the spread of item means contains the repeats' noise. One
    reading per item is enough. Under ``WEIGHTED`` xbar_i is the item's weighted mean. Measured coverage at
    95%: .925 or more, but .88-.93 with 10 to 50 items that nearly always pass; so skewed a population needs
    more items.

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

    def interval(level: float) -> ConfidenceInterval:
        if spread:
            return _around(used.value, float(t_quantile(level, found.degrees)) * error)
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
    )


@dataclass(frozen=True, slots=True)
class _Used:
    """The readings that count, item by item; items without any are left out."""

    n: IntArray
    w2: FloatArray
    """Sum of the item's squared shares."""
    w4: FloatArray
    """Sum of their squares."""
    deviations: FloatArray
    """Sum of squared shares times squared deviations from the plain mean of the item's readings."""
    items: IntArray
    item_means: FloatArray
    value: float
    n_items: int
    how: str
    n_bought: int
    cost: float
    most_degrees: float
    """No interval may rest on more degrees of freedom than this."""

    @classmethod
    def of(cls, readings: ItemReadings, allocation: Allocation, fixed_repeats: int) -> _Used:
        used, how, most_degrees = readings, "", np.inf
        if allocation is Allocation.WEIGHTED and readings.lost_weights:
            allocation = Allocation.ADAPTIVE  # a log that was scored again has the scores alone
        if allocation is Allocation.WEIGHTED:
            how = ", weighted as fixed before each reading"
            most_degrees = _degrees_of_mean(readings.first(max(fixed_repeats, 2)).moments)
            if not most_degrees:
                most_degrees = _degrees_of_mean(readings.moments)
        else:
            used = readings.unweighted()
        if allocation is Allocation.ADAPTIVE:
            if fixed_repeats < 1:
                raise InvalidInferenceError(
                    "readings were allocated adaptively, so the mean of all of them is biased, and "
                    f"fixed_repeats is {fixed_repeats}; pass the sampler's fixed_repeats (its warm-up), "
                    "or use a sampler that holds readings out (hold_out)"
                )
            used = used.first(fixed_repeats)
            how = f", first {fixed_repeats} readings of each (the others were bought because of the scores)"
        moments = used.moments
        read = moments.n > 0
        K = int(read.sum())
        item_means = used.weighted_means[read]
        squared = used.shares**2
        deviation = used.value - moments.mean[used.item]

        def summed(terms: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(used.item, terms, used.n_items)[read], dtype=np.float64)

        return cls(
            n=moments.n[read],
            w2=summed(squared),
            w4=summed(squared**2),
            deviations=summed(squared * deviation**2),
            items=np.flatnonzero(read),
            item_means=item_means,
            value=float(item_means.mean()) if K else float("nan"),
            n_items=readings.n_items,
            how=how,
            n_bought=int(readings.value.size),
            cost=readings.cost,
            most_degrees=most_degrees,
        )

    def parts(self) -> tuple[FloatArray, FloatArray]:
        """What each item with several readings adds to the variance of the mean; its degrees of freedom."""
        several = self.n > 1
        n, w2 = self.n[several], self.w2[several]
        own = self.deviations[several] * n / (n - 1)
        if own.size:  # an item with a single reading takes the mean variance of the others
            own = own + float(self.w2[~several].sum()) / own.size * own / w2
        # 2 (E Q)^2 / Var Q of Q = sum of w^2 (x - mean)^2, x normal; n - 1 where all weigh the same
        squared = self.w4[several] * n * (n - 2) + w2**2
        return own / self.n.size**2, np.asarray(w2**2 * (n - 1) ** 2 / squared)

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
            },
        )


def _degrees_of_mean(moments: ItemMoments) -> float:
    """Degrees of freedom of the mean of the items' s^2, by how they spread; 0 where none varies."""
    several = moments.n > 1
    s2 = moments.variance[several]
    if not s2.size or not s2.max() > 0.0:
        return 0.0
    total = float((moments.n[several] - 1).sum())
    spread = float(s2.var(ddof=1)) / s2.size if s2.size > 1 else 0.0
    shown = 2.0 * float(s2.mean()) ** 2 / spread if spread > 0.0 else np.inf
    return max(1.0, min(shown, total))


def _around(value: float, half: float) -> ConfidenceInterval:
    return ConfidenceInterval(value - half, value + half)
