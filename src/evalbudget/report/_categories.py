"""Means of every model within every category of items."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._numbers import CLAIM, NOTHING, decimals, name_cell, new_table, number, span
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable

_WIDE = 80


@dataclass(frozen=True, slots=True)
class CategoryMean:
    """One model in one category.

    Attributes:
        model: name.
        category: name.
        items: scored.
        estimate: mean over sampled items of the category; nan if nothing may count.
        standard_error: of it; nan where it is not known, or all items score the same.
        low: of the interval for this mean by itself.
        high: of it.
        all_low: of the interval that holds for all models and categories at once.
        all_high: of it.
    """

    model: str
    category: str
    items: int
    estimate: float
    standard_error: float
    low: float
    high: float
    all_low: float
    all_high: float


@dataclass(frozen=True)
class Categories(Section):
    """Models in the order of the leaderboard, categories in the order of their names.

    Attributes:
        rows: by model, then by category.
        level: of the intervals.
    """

    name: ClassVar[str] = "categories"

    rows: tuple[CategoryMean, ...]
    level: float

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None unless there are two categories or more."""
        labels = study.recorded.categories
        if labels is None or len(set(labels)) < 2:
            return None
        known = sorted(set(labels))
        parts = {c: study.only(np.array([label == c for label in labels])) for c in known}
        at_once = 1 - (1 - study.level) / (len(known) * len(study.models))
        rows = [
            _mean(parts[category], m, category, study.level, at_once)
            for m in study.order
            for category in known
        ]
        return cls(tuple(rows), study.level)

    @property
    def models(self) -> tuple[str, ...]:
        """In order."""
        return tuple(dict.fromkeys(row.model for row in self.rows))

    @property
    def categories(self) -> tuple[str, ...]:
        """In order."""
        return tuple(dict.fromkeys(row.category for row in self.rows))

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        means = f"all {len(self.rows)} means" if len(self.models) > 1 else "all categories"
        return (
            f"Mean score over all items like those of the category. {CLAIM} {self.level:.0%} "
            f"{'at once' if len(self.models) == 1 else '±'}: {means} together (Bonferroni)."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """One row per category for a single model; else models by categories, as many tables as fit."""
        places = decimals(row.standard_error for row in self.rows)
        if len(self.models) == 1:
            return self.about_model(self.models[0])
        cells = {(row.model, row.category): _cell(row, places) for row in self.rows}
        width = {
            c: max(min(len(c), 16), *(len(cells[model, c]) for model in self.models)) + 1
            for c in self.categories
        }
        longest = min(max(map(len, self.models)), 24) + 1
        fit = max(1, (_WIDE - longest) // max(width.values()))
        n = ceil(len(self.categories) / fit)
        names = np.array(self.categories, dtype=object)  # one of text would drop a zero at the end of a name
        groups = [part.tolist() for part in np.array_split(names, n)]
        return tuple(
            self._matrix(group, cells, last=group is groups[-1], first=group is groups[0]) for group in groups
        )

    def about_model(self, model: str) -> tuple[NotedTable, ...]:
        """One row per category."""
        rows = [row for row in self.rows if row.model == model]
        if not rows:
            return ()
        places = decimals(row.standard_error for row in rows)
        columns = ["category", "mean", "s.e.", f"{self.level:.0%} at once", "items"]
        table = new_table("categories", self.label, columns)
        for row in rows:
            table.add_row(
                name_cell(row.category),
                number(row.estimate, places),
                number(row.standard_error, places),
                span(row.all_low, row.all_high, places),
                f"{row.items:,}",
            )
        return (table,)

    def model_charts(self, model: str) -> tuple[Chart, ...]:
        """Its mean in each category."""
        bars = tuple(
            Bar(row.category, row.estimate, row.low, row.high, row.all_low, row.all_high)
            for row in self.rows
            if row.model == model
        )
        return (Chart("categories", "mean score", bars, of=len(self.rows)),) if bars else ()

    def _matrix(
        self, group: list[str], cells: dict[tuple[str, str], str], *, first: bool, last: bool
    ) -> NotedTable:
        title = "categories" if first else "categories, continued"
        table = new_table(title, self.label if last else "", ["model"])
        for category in group:
            table.add_column(name_cell(category), justify="right", overflow="fold")
        for model in self.models:
            table.add_row(name_cell(model), *(cells[model, c] for c in group))
        return table

    def to_dict(self) -> dict[str, Any]:
        """Label and rows."""
        return {"label": self.label, "rows": [asdict(row) for row in self.rows]}


def _cell(row: CategoryMean, places: int) -> str:
    half = number((row.all_high - row.all_low) / 2, places)
    return f"{number(row.estimate, places)} ±{half}"


def _mean(part: Study, m: int, category: str, level: float, at_once: float) -> CategoryMean:
    try:
        found = part.mean(m)
    except InvalidInferenceError:  # no score in this category
        nothing = [float("nan")] * 6
        return CategoryMean(part.models[m], category, 0, *nothing)
    own, everyone = found.confidence_interval(level), found.confidence_interval(at_once)
    items = len(part.recorded.items) - int(found.details["items_missing"])
    return CategoryMean(
        part.models[m],
        category,
        items,
        found.value,
        found.standard_error if found.standard_error > NOTHING else float("nan"),
        own.low,
        own.high,
        everyone.low,
        everyone.high,
    )
