r"""The estimator of [PULSE] as published, and its average with better weights.

Per batch t of b draws, with O the items read and U those left before it, F and Phi the sums of f and f^2 over
U,

.. math:: \theta_t = \frac1n \Bigl[\sum_O S + \lambda_t F + \frac{|U|}b \sum_{batch} (S - \lambda_t f)\Bigr],
          \quad \lambda_t = \mathrm{clip}\Bigl(1 - \frac{F \bar Z}{|U| \Phi}, 0, 1\Bigr),

Zbar being the mean of the earlier batches' :math:`\frac{|U|}b \sum_{batch} (f - S)`, the estimates of
sum_U (f - S). (With S - f in its place the sign would be wrong: lambda would move away from the minimum of
sum_U (S - lambda f)^2, which is at 1 - sum_U f (f - S) / Phi.) Every theta_t is unbiased.

The published estimate weighs the K batches equally. As theta_t has the variance
:math:`\frac{|U| (|U| - b)}{b n^2} s^2`, weights b / (|U| (|U| - b)) are the precisions.

References:
    [PULSE] arXiv 2605.10405.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.races._draws import ModelDraws
from evalbudget.races.prediction._corrections import corrected
from evalbudget.statistics._bounds import FloatArray, Scale


@dataclass(frozen=True)
class Corrections:
    """The published quantities, one per batch.

    Attributes:
        theta: unbiased estimates of the benchmark mean, shape (n_batches,).
        coefficient: lambda, fixed before the batch, shape (n_batches,).
        variance: plug-in variance of theta, from the spread of S - lambda f in all batches, same shape.
        left: |U| before the batch, shape (n_batches,).
        size: b, shape (n_batches,).
    """

    theta: FloatArray
    coefficient: FloatArray
    variance: FloatArray
    left: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, draws: ModelDraws) -> Corrections:
        """Batch by batch; a draw that failed leaves its batch, and an empty batch is left out."""
        theta, lam, left, size = corrected(draws)
        read = ~np.isnan(draws.value)
        s, f = draws.value[read], draws.prediction[read]
        n = draws.n_items - draws.n_failed
        residual = s - np.repeat(lam, size.astype(np.int64)) * f
        spread = float(residual.var(ddof=1)) if residual.size > 1 else float("nan")
        variance = left * (left - size) / size * spread / n**2
        return cls(theta, lam, np.asarray(variance, dtype=np.float64), left, size)


def pulse_mean(draws: ModelDraws, *, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    r"""The published estimate: theta_t averaged with equal weights, Freedman's interval.

    .. math:: P(|\bar\theta - \theta| \ge \varepsilon) \le 2 \exp\Bigl(-\frac{\varepsilon^2}
              {2 (v / (K n^2) + 2 \varepsilon / (3K))}\Bigr)

    The 2 bounds |theta_t - theta| <= (1 + lambda) |U| / n, in batches too: their mean has no larger range
    (and a much smaller one in truth, so the term 2/3K is far too wide for large batches). But v must bound
    the variances, and the plug-in is an estimate, so the level is asymptotic; and the bound holds at a K
    fixed beforehand, not where an adaptive race happens to stop. For an interval to rely on take
    :func:`~evalbudget.races.estimates.benchmark_mean`.

    Args:
        draws: of one model.
        bounds: the declared range of the scores.

    Returns:
        Estimate, fixed-n, asymptotic; exact when the model is exhausted, nan before the first batch.
    """
    steps = Corrections.of(draws)
    K = steps.theta.size
    return _estimate(
        draws,
        float(steps.theta.mean()) if K else float("nan"),
        float(np.sqrt(steps.variance.sum()) / K) if K else float("nan"),
        "PULSE, literal: equal weights, Freedman's interval with plug-in variance",
        float(steps.variance.mean()) if K else float("nan"),
        K,
        bounds,
    )


def pulse_weighted(draws: ModelDraws) -> tuple[float, float]:
    """theta_t with weights b / (|U| (|U| - b)): value and standard error on the unit scale.

    Args:
        draws: of one model; the coefficients are the published lambda.

    Returns:
        Value and standard error, nan before the first batch; exact when the model is exhausted.
    """
    steps = Corrections.of(draws)
    if draws.exhausted or not steps.theta.size:
        return _exact(draws), 0.0 if draws.exhausted and _n_read(draws) else float("nan")
    # only an exhausted model has a batch that is all that was left
    weight = steps.size / (steps.left * (steps.left - steps.size))
    error = np.sqrt(float(weight**2 @ steps.variance)) / weight.sum()
    return float(weight @ steps.theta / weight.sum()), float(error)


def _n_read(draws: ModelDraws) -> int:
    """Number of scores, anchors included."""
    return int(draws.known.size + draws.value.size) - draws.n_failed


def _exact(draws: ModelDraws) -> float:
    if not draws.exhausted or not _n_read(draws):
        return float("nan")
    return float((draws.known.sum() + np.nansum(draws.value)) / _n_read(draws))


def _estimate(
    draws: ModelDraws,
    value: float,
    error: float,
    method: str,
    variance: float,
    K: int,
    bounds: tuple[float, float],
) -> Estimate:
    scale = Scale(float(bounds[0]), float(bounds[1]))
    width = scale.high - scale.low
    if draws.exhausted and _n_read(draws):
        value, error = _exact(draws), 0.0

    def interval(level: float) -> ConfidenceInterval:
        if error == 0.0 and draws.exhausted:
            half = 0.0
        elif not K:
            return ConfidenceInterval(scale.low, scale.high)
        else:
            half = freedman_half_width(0.0 if np.isnan(variance) else variance, K, level)
        low, high = max(0.0, value - half), min(1.0, value + half)
        return ConfidenceInterval(scale.low + width * min(low, 1.0), scale.low + width * max(high, 0.0))

    failed = draws.n_failed
    n = draws.n_items - failed
    return Estimate(
        value=scale.low + width * value,
        standard_error=width * error,
        target=f"mean over the {n} items"
        + (f" without a failure so far (of {draws.n_items})" if failed else " of the benchmark"),
        method=method,
        random=frozenset({Random.DRAWS}),
        validity=Validity.FIXED_N,
        coverage=Coverage.EACH,
        asymptotic=True,
        n=_n_read(draws),
        cost=draws.cost,
        interval=interval,
        details={"batches": float(K), "failed": float(failed)},
    )


def freedman_half_width(variance: float, K: int, level: float) -> float:
    r"""The eps at which 2 exp(-eps^2 / (2 (variance / K + 2 eps / (3K)))) equals 1 - level.

    Args:
        variance: v / n^2, mean variance of one theta_t.
        K: number of batches, at least 1.
        level: of the interval.

    Raises:
        InvalidInputError: K is below 1.
    """
    if K < 1:
        raise InvalidInputError(f"{K} batches; an interval needs at least 1")
    log = float(np.log(2.0 / (1.0 - level)))
    linear = 2.0 * log / (3.0 * K)
    return float(linear + np.sqrt(linear**2 + 2.0 * log * variance / K))
