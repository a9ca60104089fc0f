"""Means of every model within every category of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import ceil, isnan, nan
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from evalbudget._fields import Shown, decimals, number, percent
from evalbudget.errors import InvalidInferenceError
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._numbers import CLAIM, new_table, table_of
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable

_WIDE = 80
_NAMED = 3


@dataclass(frozen=True, slots=True)
class CategoryMean:
    """One model in one category.

    Attributes:
        model: name.
        category: name.
        items: scored.
        estimate: mean over sampled items of the category; nan if nothing may count.
        standard_error: of it; nan where it is not known, or all items score the same.
        low: of the interval for this mean by itself; nan where none is claimed. It holds whatever missing
            answers would have been, as the model's own does.
        high: of it.
        all_low: of the interval that holds for all models and categories at once.
        all_high: of it.
        missing: answers.
    """

    model: str
    category: Annotated[str, Shown("category")]
    items: Annotated[int, Shown("items", ",")]
    estimate: Annotated[float, Shown("mean", "p")]
    standard_error: Annotated[float, Shown("s.e.", "p")]
    low: float
    high: float
    all_low: Annotated[float, Shown("{level} at once", "p", to="all_high")]
    all_high: float
    missing: Annotated[int, Shown("missing", ",")]


@dataclass(frozen=True)
class Categories(Section):
    """Models in the order of the leaderboard, categories in the order of their names.

    Attributes:
        rows: by model, then by category.
        level: of the intervals.
        claim: what is random, and when it may be read.
        counted_as: what missing answers count as, as the end of a sentence; empty where none is missing.
    """

    name: ClassVar[str] = "categories"

    rows: tuple[CategoryMean, ...]
    level: float
    claim: str = CLAIM
    counted_as: str = ""

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None unless there are two categories or more."""
        labels = study.recorded.categories
        if labels is None or len(set(labels)) < 2:
            return None
        known = sorted(set(labels))
        at_once = 1 - (1 - study.level) / (len(known) * len(study.models))
        found = {c: _rows(study, c, np.array([label == c for label in labels]), at_once) for c in known}
        rows = tuple(found[category][m] for m in study.order for category in known)
        lacking = any(row.missing for row in rows)
        return cls(rows, study.level, study.claim, study.counted_as if lacking else "")

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
            f"Mean score over all items like those of the category. {self.claim} {percent(self.level)} "
            f"{'at once' if len(self.models) == 1 else '± (its wider side)'}: {means} together (Bonferroni)."
        )

    def _missing(self, rows: Iterable[CategoryMean]) -> str:
        """Of which rows answers are missing, and what these count as; empty where none is."""
        lacking = sorted((row for row in rows if row.missing), key=lambda row: -row.missing)
        if not lacking:
            return ""
        told = [
            f"{row.missing:,} of {row.model}'s {'answers ' if row is lacking[0] else ''}in {row.category}"
            for row in lacking[:_NAMED]
        ]
        rest = sum(row.missing for row in lacking[_NAMED:])
        *others, last = [*told, f"{rest:,} elsewhere"] if rest else told
        listed = f"{', '.join(others)} and {last}" if others else last
        are = "is" if sum(row.missing for row in lacking) == 1 else "are"
        return f" {listed} {are} missing{self.counted_as}"

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
        columns = ["category", "estimate", "standard_error", "all_low", "items"]
        columns += ["missing"] if any(row.missing for row in rows) else []
        note = self.label + self._missing(rows)
        return (table_of(rows, "categories", note, level=self.level, only=columns),)

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
        note = self.label + self._missing(self.rows)
        table = new_table(title, note if last else "", ["model"])
        for category in group:
            table.add_column(Text(category), justify="right", overflow="fold")
        for model in self.models:
            table.add_row(model, *(cells[model, c] for c in group))
        return table

    def to_dict(self) -> dict[str, Any]:
        """Label, notes and rows."""
        note = self._missing(self.rows).strip()
        rows = [asdict(row) for row in self.rows]
        return {"label": self.label, "notes": [note] if note else [], "rows": rows}


def _cell(row: CategoryMean, places: int) -> str:
    """Its interval reaches as far on the wider side; both are not the same near an end of the scale."""
    if isnan(row.estimate):
        return number(row.estimate, places)
    half = number(max(row.all_high - row.estimate, row.estimate - row.all_low), places)
    return f"{number(row.estimate, places)} ±{half}"


def _rows(study: Study, category: str, here: NDArray[np.bool_], at_once: float) -> list[CategoryMean]:
    """One per model; a category of a group is a task as the group's mean has it."""
    lost = [study.lost_of(m, here) for m in range(len(study.models))]
    if not study.recorded.counts[:, here].any():  # by anybody
        names = zip(study.models, lost, strict=True)
        return [CategoryMean(model, category, 0, *(nan,) * 6, missing) for model, missing in names]
    part = study.tasks[category].study if study.tasks else replace(study.only(here), seen=study.scale)
    return [_mean(part, m, category, at_once, n) for m, n in enumerate(lost)]


def _mean(part: Study, m: int, category: str, at_once: float, missing: int) -> CategoryMean:
    """As the model's own row would be if there were no other category."""
    own: Mapping[str, float] = {}
    everyone = own
    with suppress(InvalidInferenceError):  # no score in this category
        own, everyone = part.rows(m, part.level), part.rows(m, at_once)
    low, high = own.get("lower", nan), own.get("upper", nan)
    all_low, all_high = everyone.get("lower", nan), everyone.get("upper", nan)
    items, estimate, error = int(own.get("items", 0)), own.get("estimate", nan), own.get("stderr", nan)
    name = part.models[m]
    return CategoryMean(name, category, items, estimate, error, low, high, all_low, all_high, missing)
