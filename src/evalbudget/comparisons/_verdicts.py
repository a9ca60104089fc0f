"""The verdicts of ``evalbudget compare`` as a part of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from evalbudget._fields import decimals, percent
from evalbudget.comparisons._compare import compared_pair
from evalbudget.comparisons._comparisons import WORDS_FOR, Comparison, Outcome
from evalbudget.errors import UnknownNameError
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._numbers import CLAIM, new_table, table_of
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable

MOST = 60
"""Models all of whose pairs are compared; of more, each with the leader, at the error rate of all pairs."""

_IN_WORDS = 12
_UNDECIDED = 30
_SIGNS = {Outcome.FIRST: "+", Outcome.SECOND: "−", Outcome.UNDECIDED: "?"}


@dataclass(frozen=True)
class Verdicts(Section):
    """All models against one, in the order of the leaderboard, and all pairs.

    Attributes:
        against: the model compared with.
        chosen: whether it was named beforehand rather than taken because it leads.
        rows: one per other model, which is the first of each.
        pairs: all of them, the one higher on the leaderboard first; none if a model was named beforehand, or
            of more than 60 models.
        level: of the intervals.
        comparisons: that hold at once: with a leader found by the same scores, those of all pairs.
        models: in the order of the leaderboard.
        notes: what to beware of.
        claim: what is random, and when it may be read.
    """

    name: ClassVar[str] = "differences"
    title: ClassVar[str] = "Which differences are real"

    against: str
    chosen: bool
    rows: tuple[Comparison, ...]
    pairs: tuple[Comparison, ...]
    level: float
    comparisons: int
    models: tuple[str, ...]
    notes: tuple[str, ...] = ()
    claim: str = CLAIM

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None for a single model.

        Raises:
            UnknownNameError: there is no model of the name to compare with.
        """
        if study.against is not None and study.against not in study.models:
            raise UnknownNameError("model in --against", study.against, study.models)
        n = len(study.models)
        if n < 2:
            return None
        chosen = study.against is not None
        other = study.order[0] if study.against is None else study.models.index(study.against)
        with_other = int(np.count_nonzero(np.delete(study.shared_items[other], other)))
        comparisons = max(with_other if chosen else study.comparable, 1)
        metric = "panel" if study.is_panel else study.raters[0]
        codes = np.arange(len(study.recorded.items)) if study.clusters is None else study.clusters
        alpha = (1.0 - study.level) / comparisons

        def compared(a: int, b: int) -> Comparison:
            return compared_pair(metric, study, (a, b), codes, alpha, None)

        pairs: tuple[Comparison, ...] = ()
        if chosen or n > MOST:
            rows = tuple(compared(m, other) for m in study.order if m != other)
        else:
            pairs = tuple(compared(a, b) for i, a in enumerate(study.order) for b in study.order[i + 1 :])
            rows = tuple(row.swapped for row in pairs[: n - 1])
        names = tuple(study.models[m] for m in study.order)
        notes = ("Lower is better.",) * study.lower_is_better
        return cls(
            study.models[other], chosen, rows, pairs, study.level, comparisons, names, notes, study.claim
        )

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        return f"Model less {self.against}, paired by item. {self._claim}"

    @property
    def _claim(self) -> str:
        together = (
            f"these {self.comparisons:,} comparisons"
            if self.chosen
            else "the only pair"
            if self.comparisons == 1
            else f"all {self.comparisons:,} pairs, since the leader was found by the same scores"
        )
        notes = "".join(f" {note}" for note in self.notes)
        return f"{self.claim} {percent(self.level)} at once: {together} (Bonferroni).{notes}"

    @property
    def sentence(self) -> str:
        """How many pairs are decided; empty where not all of them were compared."""
        if len(self.pairs) < 2:
            return ""
        decided = sum(row.outcome is not Outcome.UNDECIDED for row in self.pairs)
        return f"{decided:,} of {len(self.pairs):,} pairs are decided."

    def tables(self) -> tuple[NotedTable, ...]:
        """All models against the one."""
        title = f"against {self.against}" + ("" if self.chosen else " (the leader)")
        return (self._table(title, self.rows, "first", f"{self.label} {self.sentence}".strip()),)

    def page_tables(self) -> tuple[NotedTable, ...]:
        """The same, all pairs as a matrix, and those that are still open."""
        if len(self.pairs) < 2:
            return self.tables()
        return (*self.tables(), self._matrix(), *self._open())

    def about_model(self, model: str) -> tuple[NotedTable, ...]:
        """Its differences from the others, as far as they were compared."""
        own = [row for row in self.pairs or self.rows if model in (row.first, row.second)]
        rows = [row if row.first == model else row.swapped for row in own]
        if not rows:
            return ()
        note = f"{model} less the other, paired by item. {self._claim}"
        return (self._table("differences from the others", rows, "second", note),)

    def charts(self) -> tuple[Chart, ...]:
        """The differences from the one."""
        bars = tuple(
            Bar(row.first, row.difference, row.low, row.high, row.low, row.high) for row in self.rows
        )
        return (Chart(f"differences from {self.against}", "difference", bars, zero=True, together=True),)

    def to_dict(self) -> dict[str, Any]:
        """Label, what was compared with, rows, and all pairs."""
        return {
            "label": self.label,
            "sentence": self.sentence,
            "against": self.against,
            "comparisons": self.comparisons,
            "rows": [{"model": row.first, **_json(row)} for row in self.rows],
            "pairs": [{"first": row.first, "second": row.second, **_json(row)} for row in self.pairs],
        }

    def _table(self, title: str, rows: Sequence[Comparison], who: str, note: str) -> NotedTable:
        items = {row.items for row in rows}
        shared = f"{items.pop():,} shared items. " if len(items) == 1 else ""
        needed = any(row.items_needed for row in rows)
        note = shared + note + (_NEEDED if needed else "")
        columns = [who, "difference", "standard_error", "low", "items", "items_needed", "outcome"]
        without = [*(["items"] if shared else []), *([] if needed else ["items_needed"])]
        return table_of(rows, title, note, level=self.level, only=columns, without=without)

    def _matrix(self) -> NotedTable:
        """Row against column, by the place on the leaderboard."""
        words = len(self.models) <= _IN_WORDS
        note = f"The model of the row against that of the column. {self.sentence} {self._claim}"
        if not words:
            note = (
                f"+: the model of the row is better than that of the column; −: worse; ?: undecided. {note}"
            )
        found: dict[tuple[str, str], Outcome] = {}
        for row in self.pairs:
            found[row.first, row.second] = row.outcome
            found[row.second, row.first] = row.swapped.outcome
        columns = ["#", "model", *map(str, range(1, len(self.models) + 1))]
        table = new_table("every pair", note, columns)
        for place, model in enumerate(self.models, start=1):
            cells = [
                "" if other == model else (WORDS_FOR if words else _SIGNS)[found[model, other]]
                for other in self.models
            ]
            table.add_row(f"{place}", model, *cells)
        return table

    def _open(self) -> Iterable[NotedTable]:
        """Undecided pairs, those that the fewest items would decide first."""
        rows = [row for row in self.pairs if row.outcome is Outcome.UNDECIDED]
        rows.sort(key=lambda row: math.inf if row.items_needed is None else row.items_needed)
        if not rows:
            return ()
        cut = f"The first {_UNDECIDED} of {len(rows):,}. " if len(rows) > _UNDECIDED else ""
        columns = ["first", "second", "difference", "standard_error", "low", "items_needed"]
        note = f"{cut}{self._claim}{_NEEDED}"
        shown = rows[:_UNDECIDED]
        places = decimals(row.standard_error for row in rows)
        table = table_of(shown, "undecided pairs", note, level=self.level, places=places, only=columns)
        return (table,)


_NEEDED = (
    " Decided by: about so many items, those there are among them, would decide it with a "
    "probability of 80%, if difference and spread are what they seem."
)


def _json(row: Comparison) -> dict[str, Any]:
    told = row.to_dict()
    for name in ("first", "second", "metric", "clusters", "outcome", "if_dropped"):
        del told[name]
    return told | {"verdict": WORDS_FOR[row.outcome]}
