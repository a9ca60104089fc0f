"""Further estimates of the benchmark mean, by whoever writes one: what it needs, and its rows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import ClassVar

from evalbudget._third_party import third_party
from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Estimate
from evalbudget.repeats.estimates._readings import ItemReadings
from evalbudget.sampler import Allocation
from evalbudget.shown import shown_logger

log = shown_logger(__name__)

_OURS = (
    "estimate",
    "stderr",
    "lower",
    "upper",
    "full",
    "repeats",
    "items",
    "readings",
    "plain",
    "all",
    "anytime",
    "bias",
)
"""First words of rows that are ours."""


class Need(StrEnum):
    """What an estimator rests on, and not every run has."""

    PHASES = "phases"
    """Of each reading the phase it was bought in, which no score of that phase decided on."""
    EVEN = "even repeats"
    """How often an item is asked does not depend on scores: equally often, as far as the budget goes."""
    RANGE = "score range"
    """The smallest and the largest possible score are declared."""


class Estimator(ABC):
    """One more number about a benchmark, from the readings of its items; it has no state.

    Attributes:
        name: in ``--estimators``; its rows have it too, with ``_`` for ``-``: ``NAME``, ``NAME_stderr``,
            ``NAME_lower`` and ``NAME_upper``.
        needs: without all of which a run refuses it before anything is asked.

    Raises:
        InvalidInputError: on definition, a name by which its rows would be those of another number.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]] = frozenset()

    def __init_subclass__(cls) -> None:
        name = vars(cls).get("name", "some")
        if not name.replace("-", "_").isidentifier() or name.replace("-", "_").split("_")[0] in _OURS:
            raise InvalidInputError(
                f"an estimator named {name!r} would have rows of another number; choose a word of letters, "
                "for example median"
            )

    @abstractmethod
    def estimate(self, readings: ItemReadings, bounds: tuple[float, float] | None) -> Estimate:
        """The estimate.

        Args:
            readings: of the items, at least one.
            bounds: the smallest and the largest possible score; None if unknown.
        """

    @classmethod
    def missing(cls, allocation: Allocation, score_range: tuple[float, float] | None) -> Need | None:
        """What it needs and a run does not have.

        Args:
            allocation: of the run's sampler.
            score_range: that is declared.
        """
        has = {Need.RANGE} if score_range is not None else set()
        has |= {Allocation.PHASED: {Need.PHASES}, Allocation.FIXED: {Need.EVEN}}.get(allocation, set())
        return min(cls.needs - has, default=None)


def estimator_rows(
    estimators: Iterable[type[Estimator]],
    readings: ItemReadings,
    bounds: tuple[float, float] | None,
    level: float,
) -> dict[str, float]:
    """What they say that is defined, by row.

    One that fails is left out with a warning: what a run has paid for is not lost for it.

    Args:
        estimators: in the order of their rows.
        readings: of the items.
        bounds: the smallest and the largest possible score; None if unknown.
        level: of the intervals.
    """
    rows: dict[str, float] = {}
    for estimator in estimators:
        word = estimator.name.replace("-", "_")
        with third_party(partial(log.warning, "estimator %r has no rows: %s", estimator.name)):
            found = estimator().estimate(readings, bounds)
            interval = found.confidence_interval(level)
            told = {
                word: found.value,
                f"{word}_stderr": found.standard_error,
                f"{word}_lower": interval.low,
                f"{word}_upper": interval.high,
            }
            rows |= {name: float(value) for name, value in told.items() if math.isfinite(value)}
    return rows
