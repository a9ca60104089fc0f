"""One number for several independent estimates: a group of tasks, weighted as its owner says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.repeats.estimates._unvaried import share_or_t_interval
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._most_off import most_off
from evalbudget.statistics._shrinkage import t_quantile

_LEVEL = 0.95  # at which an estimate is asked for its degrees of freedom
_ROUNDING = 1e-12
_MOST_DEGREES = 1e6  # more are as good as infinitely many


def weighted_mean(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    r"""Weighted mean of estimates that are independent of each other.

    .. math:: \hat\theta = \sum_g a_g \hat\theta_g, \quad a_g = w_g / \sum w, \quad
              \widehat{\mathrm{Var}} = \sum_g a_g^2 \hat\sigma_g^2

    Student's t interval with Satterthwaite's degrees of freedom

    .. math:: \nu = \widehat{\mathrm{Var}}^2 \Big/ \sum_g \frac{(a_g^2 \hat\sigma_g^2)^2}{\nu_g}

    where :math:`\nu_g` are those of estimate g's own interval. Where all scores of all estimates are one of
    the same two values, the mean is a share: :mod:`~evalbudget.statistics._quasi_binomial`.

    An estimate whose standard error is 0 (all its scores are equal) does not prove that others are
    impossible, nor does a single item, which has none, but has an interval if the range of its scores is
    known. What its own interval leaves is added on each side in quadrature (the method of variance
    estimates recovery). Several that lie at an end of their scale, of n_g cases each, are taken together, or
    many small tasks would be held against the worst of each: the most that they can be off
    (:mod:`~evalbudget.statistics._most_off`) is

    .. math:: \max \sum_g a_g R_g q_g \quad \text{where} \quad \prod_g (1 - q_g)^{n_g} \ge \alpha/2

    with the width R_g of the scale; of one estimate that is its exact interval. The standard error has half
    of what they leave, over the normal quantile. Without an interval of its own (the range of its scores is
    not known), there is none of the mean.

    What is random is what is random in any of them; the weights, and which estimates there are, are given.

    Args:
        estimates: of disjoint items; at least one.
        weights: as many, positive. Only their ratios matter.

    Returns:
        Estimate, fixed-n, asymptotic. Its standard error, and so its interval, is nan where any estimate
        has neither; it is 0 where that of all is.

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
    part = share**2 * np.array([_error_seen(one) for one in estimates]) ** 2
    variance = float(part.sum())
    degrees = np.array([degrees_of_freedom(one) for one in estimates])

    unvaried = part == 0.0
    ends = _common_ends(estimates)
    still = [one for one, equal in zip(estimates, unvaried, strict=True) if equal]

    def interval(level: float) -> ConfidenceInterval:
        if math.isnan(variance):
            return ConfidenceInterval(math.nan, math.nan)
        own = ConfidenceInterval(value, value)
        if variance > 0.0:
            varied = part > 0
            lost = float((part[varied] ** 2 / degrees[varied]).sum())
            freedom = variance**2 / lost if lost > 0.0 else math.inf
            own = share_or_t_interval(value, math.sqrt(variance), freedom, level, ends)
        below, above = _left_open(still, share[unvaried], level)
        low, high = math.hypot(value - own.low, below), math.hypot(own.high - value, above)
        return ConfidenceInterval(value - low, value + high)

    error = math.sqrt(variance)
    if variance > 0.0 and still:
        left = sum(_left_open(still, share[unvaried], _LEVEL)) / 2
        error = math.hypot(error, left / float(t_quantile(_LEVEL, math.inf)))
    random: frozenset[Random] = frozenset().union(*(one.random for one in estimates))
    return Estimate(
        value=value,
        standard_error=error,
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


def _error_seen(estimate: Estimate) -> float:
    """Its standard error; 0 for a single item, where the range of the scores gives it an interval."""
    alone = math.isnan(estimate.standard_error)
    bounded = alone and math.isfinite(estimate.confidence_interval(_LEVEL).half_width)
    return 0.0 if bounded else estimate.standard_error


def _common_ends(estimates: Sequence[Estimate]) -> tuple[float, float] | None:
    """The two values that all scores of all estimates have; None if there are others."""
    found = {(one.details.get("lowest"), one.details.get("highest")) for one in estimates}
    low, high = found.pop()
    return None if found or low is None or high is None else (low, high)


def _left_open(still: Sequence[Estimate], share: FloatArray, level: float) -> tuple[float, float]:
    """How far below and above their weighted mean estimates that never varied may lie, together."""
    ends: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    squares = [0.0, 0.0]
    for one, a in zip(still, share, strict=True):
        own, cases = one.confidence_interval(level), one.details.get("cases", 0.0)
        room = (a * (one.value - own.low), a * (own.high - one.value))
        for side in (0, 1):
            if cases >= 1.0 and room[1 - side] <= _ROUNDING * room[side]:  # at the other end
                exact = 1.0 - ((1.0 - level) / 2.0) ** (1.0 / cases)
                ends[side].append((room[side] / exact, cases))
            else:
                squares[side] += room[side] ** 2
    below, above = (
        math.hypot(
            math.sqrt(squared), most_off(*zip(*end, strict=True), alpha=(1.0 - level) / 2.0) if end else 0.0
        )
        for squared, end in zip(squares, ends, strict=True)
    )
    return below, above


def degrees_of_freedom(estimate: Estimate) -> float:
    """Degrees of freedom of the t distribution that an estimate's interval is from: said, or by its width.

    Returns:
        At least 1; infinity where the interval is as narrow as the normal one, and nan where there is none.
    """
    if "degrees" in estimate.details:
        return estimate.details["degrees"]
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
