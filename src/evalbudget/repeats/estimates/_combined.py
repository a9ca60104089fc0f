"""One number for several independent estimates: a group of tasks, weighted as its owner says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.statistics._shrinkage import t_quantile

_LEVEL = 0.95  # at which an estimate is asked for its degrees of freedom
_MOST_DEGREES = 1e6  # more are as good as infinitely many


def weighted_mean(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    r"""Weighted mean of estimates that are independent of each other.

    .. math:: \hat\theta = \sum_g a_g \hat\theta_g, \quad a_g = w_g / \sum w, \quad
              \widehat{\mathrm{Var}} = \sum_g a_g^2 \hat\sigma_g^2

    Student's t interval with Satterthwaite's degrees of freedom

    .. math:: \nu = \widehat{\mathrm{Var}}^2 \Big/ \sum_g \frac{(a_g^2 \hat\sigma_g^2)^2}{\nu_g}

    where :math:`\nu_g` are those of estimate g's own t interval, read off its width. An estimate whose
    standard error is 0 (all its scores are equal) adds nothing: that is its unbiased share. Where all are 0,
    there is an interval only if every estimate has one, as with a known range of scores: then their
    half-widths h add as :math:`\sqrt{\sum a_g^2 h_g^2}`, each side for itself (the method of variance
    estimates recovery).

    What is random is what is random in any of them; the weights, and which estimates there are, are given.

    Args:
        estimates: of disjoint items; at least one.
        weights: as many, positive. Only their ratios matter.

    Returns:
        Estimate, fixed-n, asymptotic. Its standard error, and so its interval, is nan where that of any
        estimate is.

    Raises:
        InvalidInputError: no estimates, or weights that are not as many positive numbers.

    References:
        Satterthwaite (1946); Zou & Donner (2008), Statistics in Medicine 27, for the half-widths.
    """
    w = np.asarray(weights, dtype=np.float64)
    if not estimates or w.shape != (len(estimates),) or not (np.isfinite(w) & (w > 0)).all():
        raise InvalidInputError(
            f"{len(estimates)} estimates with the weights {list(weights)} have no weighted mean; give one "
            "positive weight for each, and at least one"
        )
    share = w / w.sum()
    value = math.fsum(a * one.value for a, one in zip(share, estimates, strict=True))
    part = share**2 * np.array([one.standard_error for one in estimates]) ** 2
    variance = float(part.sum())
    degrees = np.array([degrees_of_freedom(one) for one in estimates])

    def interval(level: float) -> ConfidenceInterval:
        if math.isnan(variance):
            return ConfidenceInterval(math.nan, math.nan)
        if variance > 0.0:
            varied = part > 0
            lost = float((part[varied] ** 2 / degrees[varied]).sum())
            freedom = variance**2 / lost if lost > 0.0 else math.inf
            half = float(t_quantile(level, freedom)) * math.sqrt(variance)
            return ConfidenceInterval(value - half, value + half)
        own = [one.confidence_interval(level) for one in estimates]
        below = [a * (one.value - it.low) for a, one, it in zip(share, estimates, own, strict=True)]
        above = [a * (it.high - one.value) for a, one, it in zip(share, estimates, own, strict=True)]
        return ConfidenceInterval(value - math.hypot(*below), value + math.hypot(*above))

    random: frozenset[Random] = frozenset().union(*(one.random for one in estimates))
    return Estimate(
        value=value,
        standard_error=math.sqrt(variance),
        target=f"weighted mean of {len(estimates)} estimates, each as it says",
        method="weighted mean of independent estimates",
        random=random,
        validity=Validity.FIXED_N,
        coverage=Coverage.EACH,
        asymptotic=True,
        n=sum(one.n for one in estimates),
        cost=math.fsum(one.cost for one in estimates),
        interval=interval,
        details={"estimates": float(len(estimates))},
    )


def degrees_of_freedom(estimate: Estimate) -> float:
    """Degrees of freedom of the t distribution that an estimate's symmetric interval is from.

    Returns:
        At least 1; infinity where the interval is as narrow as the normal one, and nan where there is none.
    """
    error, half = estimate.standard_error, estimate.confidence_interval(_LEVEL).half_width
    if not (error > 0.0 and math.isfinite(half)):
        return math.nan
    low, high = 1.0, _MOST_DEGREES
    if half <= float(t_quantile(_LEVEL, high)) * error:
        return math.inf
    while high / low > 1 + 1e-9:  # the quantile falls as degrees rise
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(t_quantile(_LEVEL, middle)) * error > half else (low, middle)
    return low
