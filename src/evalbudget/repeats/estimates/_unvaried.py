"""Intervals of means that go by the range of scores, as estimates have them."""

from __future__ import annotations

import math

from evalbudget.estimate import ConfidenceInterval
from evalbudget.statistics import _known_range
from evalbudget.statistics._known_range import ROUNDING as ROUNDING
from evalbudget.statistics._known_range import ends_of as ends_of
from evalbudget.statistics._known_range import is_at_end as is_at_end


def unvaried_interval(
    value: float, cases: int, bounds: tuple[float, float], level: float
) -> ConfidenceInterval:
    """Of a mean of independent cases that all have this score.

    At an end of the scale it is exact (Clopper and Pearson's), whatever other scores could have come;
    elsewhere it is the betting interval of as many equal scores.

    Args:
        value: of every case.
        cases: that are independent of each other, at least 1: items, or clusters of them.
        bounds: the smallest and the largest possible score.
        level: of the interval.
    """
    return ConfidenceInterval(*_known_range.unvaried_interval(value, cases, bounds, level))


def share_or_t_interval(
    value: float, error: float, degrees: float, level: float, ends: tuple[float, float] | None
) -> ConfidenceInterval:
    """Of a mean: that of a share where all scores have one of the two ``ends``, Student's elsewhere."""
    return ConfidenceInterval(*_known_range.share_or_t_interval(value, error, degrees, level, ends))


def ends_as_details(ends: tuple[float, float] | None, degrees: float) -> dict[str, float]:
    """What of an estimate is needed to combine its interval with those of others."""
    found = {} if ends is None else {"lowest": ends[0], "highest": ends[1]}
    return found if math.isnan(degrees) else {**found, "degrees": degrees}
