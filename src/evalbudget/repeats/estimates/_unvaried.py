"""The interval of a mean whose cases all have the same score: the range says what else could have come."""

from __future__ import annotations

import numpy as np

from evalbudget.estimate import ConfidenceInterval
from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._exact_share import exact_share

ROUNDING = 1e-12
"""Means that differ by less, relative to their size, are the same score, added up in another order."""


def is_at_end(value: float, bounds: tuple[float, float]) -> bool:
    """Whether a mean can only be what it is if every score in it is the same end of the scale."""
    room = ROUNDING * (bounds[1] - bounds[0])
    return value <= bounds[0] + room or value >= bounds[1] - room


def unvaried_interval(
    value: float, cases: int, bounds: tuple[float, float], level: float
) -> ConfidenceInterval:
    """Of a mean of independent cases that all have this score.

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
        return ConfidenceInterval(float(bet.low[0]), float(bet.high[0]))
    wide = bounds[1] - bounds[0]
    if value - bounds[0] < bounds[1] - value:
        return ConfidenceInterval(bounds[0], bounds[0] + wide * exact_share(0, cases, level)[1])
    return ConfidenceInterval(bounds[0] + wide * exact_share(cases, cases, level)[0], bounds[1])
