r"""One model's score in a race as an ordinary evaluation reports it: the items stand for others like them.

The error of the mean over the benchmark is what is left unread; as a sample of all items like them, the N
items of the benchmark add their own:

.. math:: se^2 = se_{\text{benchmark}}^2 + s^2 / N

Without predictions that is s^2 / t after t items, and on the full grid the host's own standard error. Items
drawn with unequal probabilities count by their inverses in s^2.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.races._draws import Chances, ModelDraws
from evalbudget.races.estimates._draws_for_sequences import of_model, of_uneven
from evalbudget.races.estimates._means import benchmark_mean
from evalbudget.statistics._bounds import FloatArray, Scale
from evalbudget.statistics._known_range import ROUNDING, ends_of, share_or_t_interval, unvaried_interval
from evalbudget.statistics._uneven_draws import weighted_mean

FEWEST_ITEMS = 3
"""Below, there is no interval: two scores say next to nothing about the spread of the others."""

_UNKNOWN = ConfidenceInterval(math.nan, math.nan)


def as_sample(draws: ModelDraws, *, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Mean score, items and repeats random, for the rows ``estimate``, ``stderr``, ``lower`` and ``upper``.

    The interval is the one that a run of repeats has of the same scores. Of passes and failures it is
    Wilson's, with Student's quantile (:mod:`~evalbudget.statistics._quasi_binomial`); where predictions moved
    the estimate, with the error that they left, at most that of the scores alone. Of other scores it is
    Student's. Where all scores are equal they do not show their own spread: there is no standard error then,
    and the interval is the exact one of the items drawn at random if the scores are at an end of the range,
    and a betting interval elsewhere.

    Of items that were drawn with chances of their own the number of passes is not binomial. As long as some
    are unread the interval is that of the weighted mean, with the skewness that predictions imply; where all
    scores are equal it holds the exact one of as many items besides. Once all are read it does not matter how
    they were drawn. Measured coverage at 95%, of 20 or 50 of 100 items of which .03 to .8 pass: .92 or more
    of draws with unequal probabilities, and .935 or more where predictions moved the mean, by a history that
    helps and by one turned round.

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
    if draws.exhausted or draws.drawn_alike:
        draws = replace(draws, chances=None)
    scale = Scale(float(bounds[0]), float(bounds[1]))
    width = scale.high - scale.low
    least, most = of_model(draws).limits()
    value = float(np.clip(given.value, scale.low + width * least, scale.low + width * most))
    read = np.concatenate([draws.known, draws.value[~np.isnan(draws.value)]])
    n = int(read.size)
    equal = n > 1 and float(np.ptp(read)) <= ROUNDING
    spread = _spread(draws, read, equal=equal) if n > 1 else math.nan
    of_items = spread / math.sqrt(max(draws.n_items - draws.n_failed, 1))
    error = math.nan if equal else math.hypot(given.standard_error / width, of_items)

    def interval(level: float) -> ConfidenceInterval:
        if n < FEWEST_ITEMS or math.isnan(value):
            return _UNKNOWN
        unit = (value - scale.low) / width
        if draws.chances is not None:
            found = _of_weighted(draws, draws.chances, unit, of_items, level)
            found = _around(found, _of_equal(draws, read, level)) if equal else found
        elif math.isnan(error):
            found = _around((unit, unit), _of_equal(draws, read, level))
        else:
            found = _of_varied(read, unit, error, level)
        low, high = scale.from_unit(np.asarray(found)).clip(scale.low, scale.high).tolist()
        return ConfidenceInterval(low, high)

    return Estimate(
        value=value,
        standard_error=error * width,
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


def _of_varied(read: FloatArray, value: float, error: float, level: float) -> tuple[float, float]:
    """In units of the range, of items drawn at random whose scores differ."""
    ends = ends_of(read, (0.0, 1.0))
    if ends is not None:  # predictions that carried the mean towards an end leave its error behind
        error = min(error, math.sqrt(value * (1.0 - value) / (read.size - 1)))
    return share_or_t_interval(value, error, read.size - 1, level, ends)


def _of_equal(draws: ModelDraws, read: FloatArray, level: float) -> tuple[float, float]:
    """In units of the range, of equal scores; anchors are no cases, unless nothing else is left to read."""
    cases = read if draws.exhausted else draws.value[~np.isnan(draws.value)]
    if not cases.size:
        return math.nan, math.nan
    return unvaried_interval(float(cases[0]), cases.size, (0.0, 1.0), level)


def _of_weighted(
    draws: ModelDraws, chances: Chances, value: float, of_items: float, level: float
) -> tuple[float, float]:
    """In units of the range, of items drawn with unequal probabilities."""
    quantile = NormalDist().inv_cdf(0.5 + level / 2.0)
    of_draws = weighted_mean(of_uneven(draws, chances)).margins(level)
    below, above = (math.hypot(margin, quantile * of_items) for margin in of_draws)
    return value - below, value + above


def _around(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The smallest interval that holds both; nan where either is not known."""
    return float(np.minimum(one[0], other[0])), float(np.maximum(one[1], other[1]))


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
