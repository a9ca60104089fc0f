"""Intervals of means that go by the range of scores: it says what else could have come."""

from __future__ import annotations

import numpy as np

from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._exact_share import exact_share
from evalbudget.statistics._quasi_binomial import share_interval
from evalbudget.statistics._shrinkage import t_quantile

ROUNDING = 1e-12
"""Means that differ by less, relative to their size, are the same score, added up in another order."""


def is_at_end(value: float, bounds: tuple[float, float]) -> bool:
    """Whether a mean can only be what it is if every score in it is the same end of the scale."""
    room = ROUNDING * (bounds[1] - bounds[0])
    return value <= bounds[0] + room or value >= bounds[1] - room


def unvaried_interval(
    value: float, cases: int, bounds: tuple[float, float], level: float
) -> tuple[float, float]:
    """Lower and upper end, of a mean of independent cases that all have this score.

    At an end of the scale it is exact (:func:`~evalbudget.statistics._exact_share.exact_share`), whatever
    other scores could have come; elsewhere it is the betting interval of as many equal scores.

    Args:
        value: of every case.
        cases: that are independent of each other, at least 1: items, or clusters of them.
        bounds: the smallest and the largest possible score.
        level: of the interval.
    """
    if not is_at_end(value, bounds):
        equal = np.full(cases, min(max(value, bounds[0]), bounds[1]))
        bet = betting_intervals(equal, [cases], level, bounds=bounds)
        return float(bet.low[0]), float(bet.high[0])
    wide = bounds[1] - bounds[0]
    if value - bounds[0] < bounds[1] - value:
        return bounds[0], bounds[0] + wide * exact_share(0, cases, level)[1]
    return bounds[0] + wide * exact_share(cases, cases, level)[0], bounds[1]


def share_or_t_interval(
    value: float, error: float, degrees: float, level: float, ends: tuple[float, float] | None
) -> tuple[float, float]:
    """Lower and upper end, of a mean: a share's where all scores have one of two values, Student's elsewhere.

    Args:
        value: the mean.
        error: its standard error, > 0.
        degrees: of freedom.
        level: of the interval.
        ends: the two values; None where there are others.
    """
    quantile = float(t_quantile(level, degrees))
    if ends is not None and not is_at_end(value, ends):
        return share_interval(value, error, quantile, ends)
    return value - quantile * error, value + quantile * error


def ends_of(scores: FloatArray, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """The smallest and the largest possible score if there is none between them; None otherwise."""
    if bounds is None or not ((scores == bounds[0]) | (scores == bounds[1])).all():
        return None
    return bounds
