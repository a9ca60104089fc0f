"""A panel of judges, as hosts ask for it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.judges.schedules import JudgeSchedule
from evalbudget.judges.schedules._schedule import ScheduleOptions

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

    def schedule(self, items: Sequence[str], **options: Unpack[ScheduleOptions]) -> JudgeSchedule:
        """Who scores what, for these items."""
        return build_schedule(
            plugins().schedule(self.rotation), items, self.judges, prices=self.prices, **options
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
    **options: Unpack[ScheduleOptions],
) -> JudgeSchedule:
    """A schedule, told the prices of the judges if it goes by them."""
    more: dict[str, Any] = {"prices": prices} if "prices" in inspect.signature(cls).parameters else {}
    return cls(items, judges, **options, **more)


def split_entries(text: str) -> list[str]:
    """The entries of a list as a user types it: of ``a,'b,c',{d: 1, e: 2}``: three of them here."""
    pieces, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "{}[]":
            depth += 1 if letter in "{[" else -1
        elif letter == "," and depth == 0:
            pieces.append("")
            continue
        pieces[-1] += letter
    return pieces
