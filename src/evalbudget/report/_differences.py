"""Paired differences of every model against one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from evalbudget.errors import UnknownNameError
from evalbudget.report._numbers import CLAIM, decimals, name_cell, new_table, number, span
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable

HIGHER, LOWER, OPEN = "higher", "lower", "not told apart"


@dataclass(frozen=True, slots=True)
class Difference:
    """One model against the reference model.

    Attributes:
        model: name.
        difference: its mean less the other's, over the items of both; nan if they share none.
        standard_error: of it.
        low: of the interval that holds for all rows at once; nan where none is claimed.
        high: of it.
        items: shared.
        verdict: higher, lower or not told apart.
    """

    model: str
    difference: float
    standard_error: float
    low: float
    high: float
    items: int
    verdict: str


@dataclass(frozen=True)
class Differences(Section):
    """All models against one, in the order of the leaderboard.

    Attributes:
        against: the model compared with.
        chosen: whether it was named beforehand rather than taken because it leads.
        rows: one per other model.
        level: of the intervals.
        comparisons: that hold at once: with a leader found by the same scores, those of all pairs.
        judges: how many; 1 without a panel.
    """

    name: ClassVar[str] = "differences"

    against: str
    chosen: bool
    rows: tuple[Difference, ...]
    level: float
    comparisons: int
    judges: int

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None for a single model.

        Raises:
            UnknownNameError: there is no model of the name to compare with.
        """
        if study.against is not None and study.against not in study.models:
            raise UnknownNameError("model in --against", study.against, study.models)
        if len(study.models) < 2:
            return None
        chosen = study.against is not None
        b = study.order[0] if study.against is None else study.models.index(study.against)
        pairs = study.pairs
        comparisons = len(study.models) - 1 if chosen else pairs.count
        bounds = pairs.confidence_intervals(study.level, comparisons)
        rows = tuple(
            Difference(
                study.models[m],
                float(pairs.value[m, b]),
                float(pairs.standard_error[m, b]),
                float(bounds.low[m, b]),
                float(bounds.high[m, b]),
                int(pairs.n_items[m, b]),
                HIGHER if bounds.low[m, b] > 0 else LOWER if bounds.high[m, b] < 0 else OPEN,
            )
            for m in study.order
            if m != b
        )
        return cls(study.models[b], chosen, rows, study.level, comparisons, len(study.raters))

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        paired = "item" if self.judges == 1 else "item, epoch and judge"
        together = (
            f"these {self.comparisons} comparisons"
            if self.chosen
            else "the only pair"
            if self.comparisons == 1
            else f"all {self.comparisons:,} pairs, since the leader was found by the same scores"
        )
        return (
            f"Model less {self.against}, paired by {paired}. {CLAIM} {self.level:.0%} at once: {together} "
            "(Bonferroni)."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """One table."""
        items = {row.items for row in self.rows}
        shared = f"{items.pop():,} shared items. " if len(items) == 1 else ""
        title = f"against {self.against}" + ("" if self.chosen else " (the leader)")
        columns = ["model", "difference", "s.e.", f"{self.level:.0%} at once"]
        columns += [] if shared else ["items"]
        table = new_table(title, shared + self.label, [*columns, "verdict"])
        places = decimals(row.standard_error for row in self.rows)
        for row in self.rows:
            table.add_row(
                name_cell(row.model),
                number(row.difference, places, sign=True),
                number(row.standard_error, places),
                span(row.low, row.high, places, sign=True),
                *([] if shared else [f"{row.items:,}"]),
                row.verdict,
            )
        return (table,)

    def to_dict(self) -> dict[str, Any]:
        """Label, what was compared with, and rows."""
        return {
            "label": self.label,
            "against": self.against,
            "comparisons": self.comparisons,
            "rows": [asdict(row) for row in self.rows],
        }
