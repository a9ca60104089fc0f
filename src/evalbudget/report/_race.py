"""The verdict of a race or a gate, as it recorded it: readings followed scores, so nothing else may judge."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from evalbudget._fields import decimals, number, span
from evalbudget.recorded._race_record import RaceRecord
from evalbudget.report._numbers import new_table
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable


@dataclass(frozen=True)
class Race(Section):
    """What a race or a gate said when it ended.

    Attributes:
        record: its sentence, its rows, its claim.
    """

    name: ClassVar[str] = "race"
    title: ClassVar[str] = "The verdict of the run itself"

    record: RaceRecord

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None where the scores are not those of a finished race or gate."""
        record = study.recorded.race
        return None if record is None else cls(record)

    def tables(self) -> tuple[NotedTable, ...]:
        """One row per model, under the sentence."""
        record = self.record
        sentences = [record.proof, ": ".join(filter(None, (record.target, record.claim))), *record.notes]
        parts = [f"{part[0].upper()}{part[1:].rstrip('.')}." for part in sentences if part]
        table = new_table(record.sentence, " ".join(parts), ["model", "status"])
        for column in ("estimate", "possible", "items"):
            table.add_column(column, justify="right", no_wrap=True)
        places = decimals((row.upper - row.lower) / 4.0 for row in record.rows)
        for row in record.rows:
            table.add_row(
                row.model,
                row.status,
                number(float("nan") if row.estimate is None else row.estimate, places),
                span(row.lower, row.upper, places),
                f"{row.read:,} of {record.items:,}",
            )
        return (table,)

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return asdict(self.record)
