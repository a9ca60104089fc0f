"""Several metrics, whose mean means nothing: every model by each of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from evalbudget._fields import decimals, number, percent, span
from evalbudget.report._leaderboard import Leaderboard, Standing
from evalbudget.report._numbers import new_table
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable


@dataclass(frozen=True)
class Metrics(Section):
    """A leaderboard of each metric, in short.

    Attributes:
        boards: the standings by metric, the best model first.
        level: of each interval by itself.
        claim: exactly what the intervals take for random; of which metrics, where that differs.
        notes: what to beware of, of each metric.
    """

    name: ClassVar[str] = "metrics"

    boards: tuple[tuple[str, tuple[Standing, ...]], ...]
    level: float
    claim: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None where there is one metric, or a panel of judges."""
        recorded = study.recorded
        if recorded.one_measure or len(recorded.raters) < 2:
            return None
        boards, notes = [], []
        claims: dict[str, list[str]] = {}
        for number_, metric in enumerate(recorded.raters):
            part = recorded.part(raters=np.array([number_]), may_be_empty=True)
            if not part.counts.any():
                continue
            own = Study.of(part, level=study.level, missing=study.missing).of_the_scored()
            board = Leaderboard.of(own)
            if board is None:
                continue
            claims.setdefault(own.claim, []).append(metric)
            boards.append((metric, board.rows))
            lower = ("lower is better.",) * board.lower_is_better
            notes += [f"{metric}: {note}" for note in (*lower, *board.notes)]
        claim = " ".join(
            told if len(claims) == 1 else f"{', '.join(metrics)}: {told}" for told, metrics in claims.items()
        )
        return cls(tuple(boards), study.level, claim, tuple(notes))

    def tables(self) -> tuple[NotedTable, ...]:
        """One row per metric and model."""
        parts = (self.claim, "Each interval by itself. Everything on one of them: --rater NAME.", *self.notes)
        columns = ["metric", "model", "estimate", "s.e.", f"{percent(self.level)} interval", "items"]
        table = new_table("metrics", " ".join(parts), columns)
        for metric, rows in self.boards:
            places = decimals(row.standard_error for row in rows)
            for row in rows:
                table.add_row(
                    metric,
                    row.model,
                    number(row.estimate, places),
                    number(row.standard_error, places),
                    span(row.low, row.high, places),
                    f"{row.items:,}",
                )
        return (table,)

    def to_dict(self) -> dict[str, Any]:
        """The rows by metric, and the notes."""
        boards = {metric: [asdict(row) for row in rows] for metric, rows in self.boards}
        return {"boards": boards, "notes": list(self.notes)}
