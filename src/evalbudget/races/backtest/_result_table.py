"""What a backtest of races found: rows, a table, JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from evalbudget._fields import Shown, percent
from evalbudget.replay._rows import Replayed, asked, table_of
from evalbudget.tables import PrintableTable


@dataclass(frozen=True, slots=True)
class RaceRow:
    """One sampler at one budget; means over seeds.

    Attributes:
        sampler: its name.
        budget: evaluations, or dollars.
        p_best: share of replays that name a best model (exact ties count).
        p_top: share that name a model within ``top`` of the best.
        simple_regret: how far the model named is below the best, in units of the scores.
        evaluations: bought; fewer than the budget where the sampler stopped.
        coverage: share of replays and models whose interval holds the mean; the intervals are anytime and
            hold for all models of a replay together at ``level``, so that a single one holds more often.
            NaN without intervals.
        half_width: of these intervals, mean.
        seconds: per replay, of decisions and bookkeeping.
        seeds: replays.
        top: in units of the scores.
        level: of the intervals.
        budget_asked: as written, for example ``5%``.
        usd: dollars paid, mean over replays; None where evaluations are counted.
    """

    sampler: Annotated[str, Shown("sampler")]
    budget: float
    p_best: Annotated[float, Shown("p(best)", ".2f")]
    p_top: Annotated[float, Shown("p(top)", ".2f")]
    simple_regret: Annotated[float, Shown("simple\nregret", ".4f")]
    evaluations: Annotated[float, Shown("evalua-\ntions", ",.0f")]
    coverage: Annotated[float, Shown("coverage", ".3f")]
    half_width: Annotated[float, Shown("half-\nwidth", ".3f")]
    seconds: Annotated[float, Shown("seconds", "#2")]
    seeds: int
    top: float
    level: float
    budget_asked: Annotated[str, Shown("budget", by=asked)]
    usd: Annotated[float | None, Shown("paid", "$")] = None


@dataclass(frozen=True, slots=True, repr=False)
class RaceResult(Replayed):
    """Everything a backtest of races found.

    Attributes:
        rows: by budget, then by sampler, both as given.
        models: how many raced.
        items: how many there are.
        missing: cells without a recorded score; they fail.
        history: what was said of the history; empty without one.
    """

    rows: tuple[RaceRow, ...]
    models: int
    items: int
    missing: int
    history: str = ""

    def table(self) -> PrintableTable:
        """A rich table that fits 80 columns; it also prints itself as text."""
        covers = any(not math.isnan(row.coverage) for row in self.rows)
        paid = any(row.usd is not None for row in self.rows)
        columns = ["sampler", "budget_asked", "p_best", "p_top", "simple_regret", "evaluations"]
        columns += [*(["coverage", "half_width"] if covers else []), "usd" if paid else "seconds"]
        return table_of(self.rows, self._caption(covers), only=columns, parted="budget_asked")

    def _caption(self, covers: bool) -> str:
        first = self.rows[0]
        parts = [
            f"{self.models} models x {self.items:,} items, {first.seeds} seeds. "
            f"p(top): the model named is within {first.top:g} of the best."
        ]
        if self.missing:
            parts.append(f"{self.missing:,} cells have no recorded score: they fail and cost.")
        if self.history:
            parts.append(self.history[0].upper() + self.history[1:] + ".")
        if covers:
            parts.append(f"Intervals: anytime, simultaneous over models at {percent(first.level)}.")
        return " ".join(parts)
