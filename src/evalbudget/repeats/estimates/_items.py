"""Per-item estimates: what the repeats of each item prove about its mean score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from evalbudget.estimate import Coverage, Validity
from evalbudget.repeats.estimates._readings import ItemMoments, ItemReadings
from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray, Scale, check_level
from evalbudget.statistics._shrinkage import VariancePrior, t_quantile

_SHAPE_STRENGTH = 50.0


@dataclass(frozen=True, slots=True, eq=False)
class ItemEstimates:
    """One estimate of the mean score per item.

    Attributes:
        value: item means, shape (n_items,); nan where nothing was read.
        standard_error: of the values, same shape; nan where not defined.
        n: readings, same shape.
        method: how, in words.
        validity: fixed-n or anytime.
        coverage: each, average or simultaneous.
        intervals: level -> Bounds; call :meth:`confidence_intervals`.
    """

    value: FloatArray
    standard_error: FloatArray
    n: IntArray
    method: str
    validity: Validity
    coverage: Coverage
    intervals: Callable[[float], Bounds] = field(repr=False)

    def confidence_intervals(self, level: float = 0.95) -> Bounds:
        """Bounds of shape (n_items,); what ``level`` means is said by ``coverage`` and ``validity``.

        Raises:
            InvalidInputError: the level is not strictly between 0 and 1.
        """
        return self.intervals(check_level(level))


def eb_wilson(
    readings: ItemReadings, *, bounds: tuple[float, float] | None = None, fixed_repeats: int | None = None
) -> ItemEstimates:
    r"""Item means with intervals that stay honest next to the ends of the scale: average coverage, fixed-n.

    If every score is one of the two ends: Wilson's score interval, item by item. Otherwise the hull of
    :math:`\bar x_i \pm t_{\kappa + n_i - 1} \sqrt{V_i/n_i}`, variances shrunk towards the pool's (m and
    kappa: see :class:`~evalbudget.statistics._shrinkage.VariancePrior`), and of all mu with

    .. math:: V_i = \frac{\kappa m + SS_i}{\kappa + n_i - 1}

    .. math:: n_i (\bar x_i - \mu)^2 \le t^2 \, \frac{k \, d \, \mu (1 - \mu) + SS_i}{k + n_i - 1},
              \quad k = 50, \quad
              d = \sum_i s_i^2 \Big/ \sum_i \bigl[\bar x_i (1 - \bar x_i) + s_i^2/n_i\bigr]

    on the scale mapped to [0, 1]: the variance grows as mu leaves the end where a unanimous item sits. In
    simulation the share of items covered at 95% is .95-.99 (Bernoulli), .96-.97 (ratings) and .98-1
    (mostly-top ratings), uniform or adaptive allocation. An average over items, not a guarantee for each: for
    that use :func:`betting`.

    Args:
        readings: of at least one item.
        bounds: the smallest and the largest possible score; None: the smallest and the largest one seen.
        fixed_repeats: fit m and kappa to epochs below this only, so that readings bought because of the
            scores do not tilt them; pass the sampler's warm-up after adaptive allocation. None: all readings.

    Returns:
        Estimates; the intervals are nan if no bounds are given and all scores are equal. If all are
        equal within the declared bounds, d = 1, the largest possible.

    Raises:
        InvalidInputError: a score is outside the bounds.
    """
    moments = readings.moments
    pool = _pool(readings, fixed_repeats)
    error = _shrunk_errors(pool, moments)
    spread = readings.value.size > 0 and float(np.ptp(readings.value)) > 0.0
    if bounds is None and not spread:
        return _estimates(readings, error, "empirical-Bayes Wilson (no variation seen)", _undefined(moments))
    seen = (float(readings.value.min()), float(readings.value.max())) if bounds is None else bounds
    scale = Scale(float(seen[0]), float(seen[1]))
    unit = scale.to_unit(readings.value)
    mean = (moments.mean - scale.low) / (scale.high - scale.low)
    two_valued = bool(((unit == 0.0) | (unit == 1.0)).all())
    basis = readings.moments if fixed_repeats is None else readings.first(fixed_repeats).moments
    share = 1.0 if two_valued else _dispersion(basis, scale)
    squares = moments.squares / (scale.high - scale.low) ** 2

    def intervals(level: float) -> Bounds:
        n = np.maximum(moments.n, 1)
        if two_valued:
            strength = 1e9
            wide, scatter = t_quantile(level, strength) ** 2 / n, np.zeros_like(mean)
        else:
            strength = _SHAPE_STRENGTH
            df = strength + n - 1
            t_squared = pool.quantile(level, df) ** 2
            wide = t_squared / n * strength * share / df
            scatter = t_squared / n * squares / df
        # (1 + a) mu^2 - (2 x + a) mu + x^2 - b <= 0
        middle = mean + wide / 2
        root = np.sqrt(np.maximum(middle**2 - (1 + wide) * (mean**2 - scatter), 0.0))
        low = scale.from_unit((middle - root) / (1 + wide))
        high = scale.from_unit((middle + root) / (1 + wide))
        if not two_valued:
            other = _eb_t_bounds(moments, pool, error, level)
            low, high = np.fmin(low, other.low), np.fmax(high, other.high)
        if bounds is not None:
            low, high = np.maximum(low, scale.low), np.minimum(high, scale.high)
        return Bounds(low, high)

    method = "Wilson" if two_valued else "empirical-Bayes Wilson"
    return _estimates(readings, error, method, intervals)


def betting(
    readings: ItemReadings, *, bounds: tuple[float, float] = (0.0, 1.0), simultaneous: bool = False
) -> ItemEstimates:
    """Item means with betting confidence sequences: guaranteed, whatever the sampler and the stopping rule.

    The readings of an item are taken in the order of their epochs, so how many there are may depend on
    anything.

    Args:
        readings: of at least one item.
        bounds: the smallest and the largest possible score.
        simultaneous: hold for all items at once, at 1 - level divided by the number of items.

    Returns:
        Estimates; the standard error is s/sqrt(n), nan below two readings. An item never read has the whole
        range.

    Raises:
        InvalidInputError: a score is outside the bounds.

    References:
        Waudby-Smith & Ramdas (2024), arXiv 2010.09686; see :mod:`evalbudget.statistics._anytime_betting`.
    """
    moments = readings.moments
    Scale(float(bounds[0]), float(bounds[1])).to_unit(readings.value)

    def intervals(level: float) -> Bounds:
        return betting_intervals(
            readings.value, readings.counts, level, bounds=bounds, simultaneous=simultaneous
        )

    error = np.sqrt(moments.variance / np.maximum(moments.n, 1))
    coverage = Coverage.SIMULTANEOUS if simultaneous else Coverage.EACH
    return _estimates(readings, error, "betting confidence sequence", intervals, Validity.ANYTIME, coverage)


def pool_variance(moments: ItemMoments) -> VariancePrior:
    """Fitted to the items with at least two readings."""
    several = moments.n > 1
    nu = moments.n[several] - 1
    return VariancePrior.fit(moments.squares[several] / nu, nu)


def _pool(readings: ItemReadings, fixed_repeats: int | None) -> VariancePrior:
    return pool_variance((readings if fixed_repeats is None else readings.first(fixed_repeats)).moments)


def _shrunk_errors(pool: VariancePrior, moments: ItemMoments) -> FloatArray:
    n = np.maximum(moments.n, 1)
    shrunk = np.sqrt(pool.posterior_mean(moments.squares, n - 1) / n)
    return np.asarray(np.where(moments.n > 0, shrunk, np.nan), dtype=np.float64)


def _dispersion(moments: ItemMoments, scale: Scale) -> float:
    several = moments.n > 1
    n = moments.n[several]
    mean = (moments.mean[several] - scale.low) / (scale.high - scale.low)
    s2 = moments.squares[several] / (n - 1) / (scale.high - scale.low) ** 2
    possible = float((mean * (1 - mean) + s2 / n).sum())
    share = float(s2.sum()) / possible if possible > 0.0 else 0.0
    return share if share > 0.0 else 1.0


def _eb_t_bounds(moments: ItemMoments, pool: VariancePrior, error: FloatArray, level: float) -> Bounds:
    if not pool.mean > 0.0:
        return _undefined(moments)(level)
    half = pool.quantile(level, pool.strength + np.maximum(moments.n, 1) - 1) * error
    return Bounds(moments.mean - half, moments.mean + half)


def _undefined(moments: ItemMoments) -> Callable[[float], Bounds]:
    nothing = np.full(moments.n.shape, np.nan)
    return lambda _level: Bounds(nothing, nothing)


def _estimates(
    readings: ItemReadings,
    error: FloatArray,
    method: str,
    intervals: Callable[[float], Bounds],
    validity: Validity = Validity.FIXED_N,
    coverage: Coverage = Coverage.AVERAGE,
) -> ItemEstimates:
    moments = readings.moments
    return ItemEstimates(
        value=moments.mean,
        standard_error=error,
        n=moments.n,
        method=method,
        validity=validity,
        coverage=coverage,
        intervals=intervals,
    )
