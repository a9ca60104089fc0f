"""The Estimate: a value, its error, and what exactly is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from evalbudget.statistics._bounds import check_level as check_level


class Random(StrEnum):
    """What would differ if the evaluation were done again: the sources of error an interval covers."""

    REPEATS = "repeats"
    DRAWS = "draws"
    """Which items of the benchmark were asked; the benchmark itself is given."""
    ITEMS = "items"
    LABELS = "labels"


class Validity(StrEnum):
    """When the interval may be read."""

    FIXED_N = "fixed-n"
    """Once, at a sample size that does not depend on the scores."""
    ANYTIME = "anytime"
    """At every moment, as often as wanted, stopping whenever one likes."""


class Coverage(StrEnum):
    """Of what the stated level is the probability."""

    EACH = "each"
    """Each interval covers its own target."""
    AVERAGE = "average"
    """On average over the items; single items may fall below."""
    SIMULTANEOUS = "simultaneous"
    """All of them at once."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """Bounds of an interval, low <= high."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of high - low."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the readings say about one number.

    Attributes:
        value: the estimate; nan when nothing was read.
        standard_error: of the value; nan where it is not defined (one reading).
        target: the question answered, in words.
        method: how, in words; names the paper where there is one.
        random: the sources of error covered.
        validity: fixed-n or anytime.
        coverage: each, average or simultaneous.
        asymptotic: the level holds only in the limit of many readings or items.
        n: how many readings the value rests on.
        cost: what they cost, in units of the budget.
        interval: level -> bounds; call :meth:`confidence_interval`.
    """

    value: float
    standard_error: float
    target: str
    method: str
    random: frozenset[Random]
    validity: Validity
    coverage: Coverage
    asymptotic: bool
    n: int
    cost: float
    interval: Callable[[float], ConfidenceInterval] = field(repr=False, compare=False)
    details: Mapping[str, float] = field(default_factory=dict, repr=False)

    def confidence_interval(self, level: float = 0.95) -> ConfidenceInterval:
        """Bounds that hold the target with probability ``level``.

        Raises:
            InvalidInputError: the level is not strictly between 0 and 1.
        """
        return self.interval(check_level(level))

    def within(self, low: float, high: float) -> Estimate:
        """The same estimate with intervals that end where the target must end; nan stays nan.

        Args:
            low: smallest possible value of the target.
            high: the largest.
        """

        def interval(level: float) -> ConfidenceInterval:
            found = self.interval(level)
            ends = (end if math.isnan(end) else min(max(end, low), high) for end in (found.low, found.high))
            return ConfidenceInterval(*ends)

        return replace(self, interval=interval)
