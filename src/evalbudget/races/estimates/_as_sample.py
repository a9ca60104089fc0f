r"""One model's score in a race as an ordinary evaluation reports it: the items stand for others like them.

The error of the mean over the benchmark is what is left unread; as a sample of all items like them, the N
items of the benchmark add their own:

.. math:: se^2 = se_{\text{benchmark}}^2 + s^2 / N

Without predictions that is s^2 / t after t items, and on the full grid the host's own standard error. Items
drawn with unequal probabilities count by their inverses in s^2.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates._draws_for_sequences import of_model, of_uneven
from evalbudget.races.estimates._means import benchmark_mean, drawn_items_interval
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._uneven_draws import weighted_mean

FEWEST_ITEMS = 3
"""Below, there is no interval: two scores say next to nothing about the spread of the others."""

_UNKNOWN = ConfidenceInterval(math.nan, math.nan)


def as_sample(draws: ModelDraws, *, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Mean score, items and repeats random, for the rows ``estimate``, ``stderr``, ``lower`` and ``upper``.

    Where all scores are equal they do not show their own spread: there is no standard error then, and the
    interval is the guaranteed one, by betting, over the items drawn at random; of items drawn with unequal
    probabilities, one with the spread of such scores and half a pass and half a failure besides.

    Args:
        draws: of one model.
        bounds: the declared range of the scores; the interval does not leave it.

    Returns:
        Estimate with the value of :func:`benchmark_mean`, moved to what the unread scores can still make of
        it where predictions carried it beyond; fixed-n and asymptotic: how many items a model was
        asked in a race followed from the scores, which this interval does not know. nan for both ends below
        three scores.

    Raises:
        InvalidInputError: the bounds are no range.
    """
    given = benchmark_mean(draws, bounds=bounds)
    low, high = float(bounds[0]), float(bounds[1])
    width = high - low
    least, most = of_model(draws).limits()
    value = float(np.clip(given.value, low + width * least, low + width * most))
    read = np.concatenate([draws.known, draws.value[~np.isnan(draws.value)]])
    n = int(read.size)
    equal = n > 1 and float(np.ptp(read)) <= 1e-12
    spread = _spread(draws, read, equal=equal) * width if n > 1 else math.nan
    size = max(draws.n_items - draws.n_failed, 1)
    error = math.nan if equal else math.sqrt(given.standard_error**2 + spread**2 / size)

    def interval(level: float) -> ConfidenceInterval:
        if n < FEWEST_ITEMS or math.isnan(value):
            return _UNKNOWN
        if draws.chances is not None:
            of_draws = weighted_mean(of_uneven(draws, draws.chances)).margins(level)
            of_items = NormalDist().inv_cdf(0.5 + level / 2.0) * spread / math.sqrt(size)
            below, above = (math.hypot(width * margin, of_items) for margin in of_draws)
            return ConfidenceInterval(max(low, value - below), min(high, value + above))
        if math.isnan(error):
            return drawn_items_interval(draws, level, bounds=bounds)
        from scipy.special import stdtrit  # takes its time: not before it is needed

        margin = float(stdtrit(n - 1, 0.5 + level / 2.0)) * error
        return ConfidenceInterval(max(low, value - margin), min(high, value + margin))

    return Estimate(
        value=value,
        standard_error=error,
        target=f"mean over all items like the {draws.n_items} of the benchmark",
        method=f"{given.method.partition(',')[0]}, t",
        random=frozenset({Random.ITEMS, Random.REPEATS}),
        validity=Validity.FIXED_N,
        coverage=Coverage.EACH,
        asymptotic=True,
        n=n,
        cost=draws.cost,
        interval=interval,
    )


def _spread(draws: ModelDraws, read: FloatArray, *, equal: bool) -> float:
    """Standard deviation of the scores of items like those of the benchmark, in units of their range."""
    if draws.chances is None or (draws.exhausted and not equal):
        return float(read.std(ddof=1))
    if equal:
        mean = (float(read.sum()) + 0.5) / (read.size + 1.0)
        return math.sqrt(mean * (1.0 - mean))
    left = draws.pool - np.arange(draws.value.size)
    weight = (1.0 / (draws.chances.propensity * left))[~np.isnan(draws.value)]
    mean = float(weight @ read / weight.sum())
    variance = float(weight @ (read - mean) ** 2 / weight.sum())
    return math.sqrt(variance * read.size / (read.size - 1.0))
