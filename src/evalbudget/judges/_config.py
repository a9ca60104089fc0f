"""A panel of judges, as hosts ask for it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.judges.schedules import JudgeSchedule

DEFAULT_ROTATION = "cyclic"


@dataclass(frozen=True, eq=False)
class PanelConfig:
    """Judges, and who of them scores what. Hosts add how a judge is asked.

    Attributes:
        judges: names.
        rotation: registered schedule.
        prices: of one call of each judge, in the same order; None if not given.

    Raises:
        UnknownNameError: no such rotation.
        InvalidInputError: too few judges for the rotation, or one listed twice.
    """

    judges: tuple[str, ...]
    rotation: str = DEFAULT_ROTATION
    prices: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self.schedule(["any"])  # refuse what is no good now, not in the middle of a run

    def schedule(
        self, items: Sequence[str], *, categories: Sequence[str] | None = None, epochs: int = 1, seed: int = 0
    ) -> JudgeSchedule:
        """Who scores what, for these items."""
        how: dict[str, Any] = {"categories": categories, "epochs": epochs, "seed": seed}
        return build_schedule(
            plugins().schedule(self.rotation), items, self.judges, prices=self.prices, **how
        )

    @property
    def weighs_judges(self) -> bool:
        """Whether every judge weighs the same in the estimate, whatever its number of calls."""
        return plugins().schedule(self.rotation).weighs_judges

    @property
    def calls_per_generation(self) -> int:
        """How many judges the rotation wants to score the same generation."""
        return self.schedule(["any"]).calls_per_generation


def check_seed(seed: object) -> int:
    """Return the seed of a schedule; InvalidInputError unless it is a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidInputError(f"seed is {seed!r}; give a whole number, 0 or more")
    return seed


def build_schedule(
    cls: type[JudgeSchedule],
    items: Sequence[str],
    judges: Sequence[str],
    *,
    prices: Sequence[float] | None = None,
    **options: Any,
) -> JudgeSchedule:
    """A schedule, told the prices of the judges if it goes by them; ``options`` as in its constructor."""
    if "prices" in inspect.signature(cls).parameters:
        options["prices"] = prices
    return cls(items, judges, **options)
