"""Do judges favour themselves?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates import self_preference
from evalbudget.report._numbers import CLAIM, claimed, decimals, name_cell, new_table, number, span
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable


@dataclass(frozen=True, slots=True)
class SelfPreferenceRow:
    """One judge that is also a judged model.

    Attributes:
        judge: name in the panel.
        model: name among the models.
        value: how much more it gives itself than the others give it, beyond what it gives others.
        standard_error: of it.
        low: of the interval that holds for all rows at once.
        high: of it.
        items: behind it.
    """

    judge: str
    model: str
    value: float
    standard_error: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class SelfPreferences(Section):
    """Judges that are also judged models.

    Attributes:
        rows: one each.
        level: of the intervals.
    """

    name: ClassVar[str] = "self_preference"
    title: ClassVar[str] = "Self-preference"

    rows: tuple[SelfPreferenceRow, ...]
    level: float

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None if no judge is among the models."""
        if not study.is_panel or len(study.models) < 2:
            return None
        try:
            found = self_preference(study.fixed_table, study.models, study.raters)
        except InvalidInferenceError:
            return None
        bounds = claimed(found.confidence_intervals(study.level), found.standard_error)
        rows = zip(
            found.judges,
            found.models,
            found.value.tolist(),
            found.standard_error.tolist(),
            bounds.low.tolist(),
            bounds.high.tolist(),
            found.n.tolist(),
            strict=True,
        )
        return cls(tuple(SelfPreferenceRow(*row) for row in rows), study.level)

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        return (
            "How much more a judge gives itself than the others give it, beyond what it gives the other "
            f"models more than they do. {CLAIM} {self.level:.0%} at once: all rows together (Bonferroni)."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """One table."""
        table = new_table(
            "self-preference",
            self.label,
            ["judge", "model", "preference", "s.e.", f"{self.level:.0%} at once", "items"],
        )
        places = decimals(row.standard_error for row in self.rows)
        for row in self.rows:
            table.add_row(
                name_cell(row.judge),
                name_cell(row.model),
                number(row.value, places, sign=True),
                number(row.standard_error, places),
                span(row.low, row.high, places, sign=True),
                f"{row.items:,}",
            )
        return (table,)

    def to_dict(self) -> dict[str, Any]:
        """Label and rows."""
        return {"label": self.label, "rows": [asdict(row) for row in self.rows]}
