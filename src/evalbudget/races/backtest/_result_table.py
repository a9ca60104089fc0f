"""What a backtest of races found: rows, a table, JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.table import Table

from evalbudget.budget import Unit, shown_amount
from evalbudget.replay._rows import Replayed
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

    sampler: str
    budget: float
    p_best: float
    p_top: float
    simple_regret: float
    evaluations: float
    coverage: float
    half_width: float
    seconds: float
    seeds: int
    top: float
    level: float
    budget_asked: str
    usd: float | None = None


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

    def table(self) -> Table:
        """A rich table that fits 80 columns; it also prints itself as text."""
        first = self.rows[0]
        covers = any(not math.isnan(row.coverage) for row in self.rows)
        table = PrintableTable(
            caption=self._caption(covers), caption_justify="left", box=None, padding=(0, 1, 0, 0)
        )
        table.add_column("sampler", overflow="fold")
        columns = ["budget", "p(best)", "p(top)", "simple\nregret", "evalua-\ntions"]
        paid = any(row.usd is not None for row in self.rows)
        last = "paid" if paid else "seconds"
        for column in [*columns, *(["coverage", "half-\nwidth"] if covers else []), last]:
            table.add_column(column, justify="right")
        previous = first
        for row in self.rows:
            if row.budget_asked != previous.budget_asked:
                table.add_section()
            cells = [f"{row.coverage:.3f}", f"{row.half_width:.3f}"] if covers else []
            table.add_row(
                row.sampler,
                f"{int(row.budget_asked):,}" if row.budget_asked.isdecimal() else row.budget_asked,
                f"{row.p_best:.2f}",
                f"{row.p_top:.2f}",
                f"{row.simple_regret:.4f}",
                f"{row.evaluations:,.0f}",
                *cells,
                f"{row.seconds:#.2g}".removesuffix(".")
                if not paid
                else "-"
                if row.usd is None
                else shown_amount(row.usd, Unit.USD),
            )
            previous = row
        return table

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
            parts.append(f"Intervals: anytime, simultaneous over models at {first.level:.0%}.")
        return " ".join(parts)
