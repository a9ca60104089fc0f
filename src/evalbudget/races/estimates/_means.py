r"""One model's score from a race: the mean over the benchmark, or over all items like it.

The draws of a model are a uniformly random order of its items without replacement. After draw t the score

.. math:: \theta_t = \frac1n \Bigl[\sum_{\text{read}} S + |U_t| \bigl(S_t - \beta_t (f_t - \bar f_{U_t})\bigr)
          \Bigr]

is unbiased for the benchmark mean, whatever the predictions f and the coefficients beta_t chosen before the
draw. Its variance is proportional to |U_t| (|U_t| - 1), so the precision-weighted average has weights
1/(|U_t| (|U_t| - 1)), known beforehand. With beta = 0 the average is exactly the plain finite-population
mean, and with beta = 1 and frozen predictions exactly the difference estimator: the full factor 1 - t/N is
restored, which the equal weights of [PULSE] lose.

Draws with unequal probabilities are weighed by them instead: :mod:`evalbudget.statistics._uneven_draws`.
Where nothing told items apart, as without history, the estimate is the plain mean.

Every interval holds at all times at once (anytime), so also after adaptive allocation and stopping: how many
draws a model gets may depend on every model's scores, since its interval covers after each of them.
Predictions cannot make it invalid, only longer; see :mod:`evalbudget.statistics._pool_mean_sequence`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates._draws_for_sequences import of_model, of_pair, of_uneven
from evalbudget.statistics._bounds import FloatArray, Scale
from evalbudget.statistics._pool_mean_sequence import ControlledDraws, controlled_betting
from evalbudget.statistics._uneven_draws import UnevenDraws
from evalbudget.statistics._uneven_draws import weighted_mean as uneven_mean
from evalbudget.statistics._uneven_sequence import uneven_betting


def benchmark_mean(
    draws: ModelDraws, *, bounds: tuple[float, float] = (0.0, 1.0), simultaneous: int = 1
) -> Estimate:
    """Mean score over the benchmark, from anchors and random draws.

    Predictions are used as far as they proved right, which never hurts.

    Args:
        draws: of one model; scores and predictions on [0, 1].
        bounds: the declared range of the scores, to which the result is mapped back.
        simultaneous: number of intervals that shall hold together: each gets (1 - level) / simultaneous.

    Returns:
        Estimate, anytime, not asymptotic. Value and standard error are nan before the first draw, while the
        interval already knows the anchors. An exhausted model has its exact mean, error 0 and no width.

    Raises:
        InvalidInputError: bounds or simultaneous cannot be used.
    """
    failed = draws.n_failed
    n = draws.n_items - failed
    target = f"mean over the {n} items of the benchmark"
    if failed:
        target = f"mean over the {n} items without a failure so far (of {draws.n_items})"
    scale = Scale(float(bounds[0]), float(bounds[1]))
    if draws.chances is not None:
        found = _of_uneven(of_uneven(draws, draws.chances), scale, simultaneous, target, draws.cost)
        return _by_plain_mean(found, draws, scale) if draws.drawn_alike else found
    return _finite(of_model(draws), scale, simultaneous, target, draws.cost)


def paired_difference(
    a: ModelDraws,
    b: ModelDraws,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    simultaneous: int = 1,
) -> Estimate:
    """Mean score of model a less that of model b over the benchmark, from the items both drew.

    Models that share one random order are compared item by item on its longest common part; draws of one
    model beyond it are not used. As many pairs as were looked at before choosing this one must be given as
    ``simultaneous``: all pairs of M models are M (M - 1) / 2. The prediction is f_a - f_b.

    Args:
        a: draws of the first model.
        b: draws of the second, from the same pool in the same order.
        bounds: the declared range of the scores.
        simultaneous: number of differences that shall hold together.

    Returns:
        Estimate, anytime, not asymptotic; exact, without width, when both drew everything.

    Raises:
        InvalidInferenceError: the models do not share pool and order.
        InvalidInputError: see :func:`benchmark_mean`.
    """
    pair = of_pair(a, b)
    width = float(bounds[1]) - float(bounds[0])
    failed = int(pair.failed.sum())
    n = pair.known_count + pair.pool - failed
    target = f"mean difference over {n} items" + (" that failed for neither so far" if failed else "")
    return _finite(pair, Scale(-width, width), simultaneous, target, a.cost + b.cost, " (paired)")


def _finite(
    pool: ControlledDraws, scale: Scale, simultaneous: int, target: str, cost: float, how: str = ""
) -> Estimate:
    _check_simultaneous(simultaneous)
    slopes = pool.slopes()
    value, error = weighted_mean(pool, slopes)

    def interval(level: float) -> ConfidenceInterval:
        return _mapped(scale, *controlled_betting(pool, (1.0 - level) / simultaneous, slopes))

    return Estimate(
        value=_map(scale, value),
        standard_error=(scale.high - scale.low) * error,
        target=target,
        method=f"precision-weighted, predictions by regression{how}, betting without replacement",
        random=frozenset({Random.DRAWS}),
        validity=Validity.ANYTIME,
        coverage=Coverage.SIMULTANEOUS if simultaneous > 1 else Coverage.EACH,
        asymptotic=False,
        n=pool.count,
        cost=cost,
        interval=interval,
        details={
            "drawn": float(pool.value.size),
            "anchors": float(pool.known_count),
            "failed": float(pool.failed.sum()),
            "items": float(pool.known_count + pool.pool),
            "coefficient": float(slopes[-1]) if slopes.size else float("nan"),
        },
    )


def _by_plain_mean(found: Estimate, draws: ModelDraws, scale: Scale) -> Estimate:
    """The same where nothing told items apart: the mean of the draws needs no weights."""
    plain = of_model(draws)
    value, error = weighted_mean(plain, plain.slopes())
    return replace(found, value=_map(scale, value), standard_error=(scale.high - scale.low) * error)


def _of_uneven(draws: UnevenDraws, scale: Scale, simultaneous: int, target: str, cost: float) -> Estimate:
    _check_simultaneous(simultaneous)
    mean = uneven_mean(draws)

    def interval(level: float) -> ConfidenceInterval:
        return _mapped(scale, *uneven_betting(draws, (1.0 - level) / simultaneous))

    return Estimate(
        value=_map(scale, float(np.clip(mean.value, *draws.limits()))),
        standard_error=(scale.high - scale.low) * mean.error,
        target=target,
        method="inverse propensities with predictions, precision-weighted, betting without replacement",
        random=frozenset({Random.DRAWS}),
        validity=Validity.ANYTIME,
        coverage=Coverage.SIMULTANEOUS if simultaneous > 1 else Coverage.EACH,
        asymptotic=False,
        n=draws.count,
        cost=cost,
        interval=interval,
        details={
            "drawn": float(draws.value.size),
            "failed": float(draws.failed.sum()),
            "items": float(draws.pool),
        },
    )


def _check_simultaneous(simultaneous: int) -> None:
    if simultaneous < 1:
        raise InvalidInputError(f"simultaneous is {simultaneous}; give the number of intervals, at least 1")


def weighted_mean(pool: ControlledDraws, slopes: FloatArray) -> tuple[float, float]:
    """Precision-weighted average of theta_t, and its standard error, on the unit scale.

    Args:
        pool: draws, in order.
        slopes: beta_t chosen before each draw, shape (t,).

    Returns:
        Value and standard error; nan where undefined. Unbiased at a fixed number of draws without failures;
        with them, U_t counts the items that did not fail so far.
    """
    if pool.exhausted:
        return (pool.total / pool.count, 0.0) if pool.count else (float("nan"), float("nan"))
    failed, score = pool.failed, pool.score
    read = failed == 0.0
    t = int(read.sum())
    if not t:
        return float("nan"), float("nan")
    left = (pool.unseen - (failed.sum() - pool.before(failed)))[read]
    residual = (score - slopes * (pool.prediction - pool.unseen_mean))[read]
    n = pool.known_count + pool.pool - failed.sum()
    theta = (pool.known_sum + pool.before(score)[read] + left * residual) / n
    weight = 1.0 / (left * (left - 1.0))
    value = float(weight @ theta / weight.sum())
    drawable = n - pool.known_count
    if t < 2:
        return value, float("nan")
    error = np.sqrt(residual.var(ddof=1) / t * (1.0 - t / drawable)) * drawable / n
    return value, float(error)


def _map(scale: Scale, unit: float) -> float:
    return float(scale.from_unit(np.asarray(unit)))


def _mapped(scale: Scale, low: float, high: float) -> ConfidenceInterval:
    return ConfidenceInterval(_map(scale, low), _map(scale, high))
