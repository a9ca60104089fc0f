"""What a section is asked for, and what it hands back: tables and targets, made of printed figures only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalbudget.backtest import Average

Progress = Callable[[str, int, int], None]
"""Called with (what is running, how much is done, how much there is)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How much to run.

    Attributes:
        seeds: replications; None for the section's own number.
        quick: tiny sizes, to see that everything runs; the figures mean nothing.
        workers: processes for replays; 1 for this one, None for one per processor.
        without: recommended samplers to leave out.
        replays: folder that keeps finished replays for the next time; None for no folder.
        progress: told about every step.
    """

    seeds: int | None = None
    quick: bool = False
    workers: int | None = 1
    without: tuple[str, ...] = ()
    replays: Path | None = None
    progress: Progress = lambda what, done, total: None

    def replications(self, full: int, quick: int = 2) -> int:
        """How many to run where the section itself would run ``full``."""
        if self.seeds is not None:
            return self.seeds
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of finished text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that had to be reached, what was measured, and whether it was."""

    text: str
    measured: str
    reached: bool
    within_noise: bool = False
    """Not reached, but by less than two standard errors."""

    @classmethod
    def at_most(cls, text: str, average: Average, most: float) -> Target:
        """The printed figure must not be above ``most``."""
        missed = round(average.mean - most, 3)
        near = missed > 0 and missed <= 2 * average.stderr
        return cls(f"{text} <= {most:g}", shown(average), missed <= 0, near)

    @property
    def verdict(self) -> str:
        """In words."""
        return "reached" if self.reached else "within noise" if self.within_noise else "not reached"

    def __str__(self) -> str:
        return f"target: {self.text}: {self.verdict} ({self.measured})"


@dataclass(frozen=True, slots=True)
class Section:
    """One section's findings.

    Attributes:
        name: as on the command line.
        title: its heading.
        lead: what was done, in a sentence or two.
        tables: in order.
        targets: in order.
        curves: by sampler, lists of (budget, value, standard error), for the plot.
    """

    name: str
    title: str
    lead: str
    tables: tuple[Table, ...] = ()
    targets: tuple[Target, ...] = ()
    curves: Mapping[str, list[tuple[float, float, float]]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Section:
        """Read what ``dataclasses.asdict`` wrote."""
        tables = tuple(
            Table(t["title"], tuple(t["columns"]), tuple(tuple(row) for row in t["rows"]), t["note"])
            for t in entry["tables"]
        )
        targets = tuple(Target(**target) for target in entry["targets"])
        plain = {name: entry[name] for name in ("name", "title", "lead", "curves")}
        return cls(**plain, tables=tables, targets=targets)


def shown(average: Average, decimals: int = 3) -> str:
    """``.643 ±.008``, or only the mean where there is no standard error."""
    if math.isnan(average.mean):
        return "-"
    text = f"{average.mean:.{decimals}f}"
    if math.isnan(average.stderr):
        return text
    return f"{text} ±{average.stderr:.{decimals}f}".replace("±0.", "±.")
