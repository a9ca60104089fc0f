"""The items that are known least well, of each model, with their texts where the logs have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from evalbudget._fields import Shown, decimals, percent
from evalbudget.judges.estimates import judge_corrected_generations
from evalbudget.repeats.estimates import eb_wilson
from evalbudget.report._scored import readings_of
from evalbudget.report._section import TableSection
from evalbudget.report._study import Study
from evalbudget.sampler import Allocation
from evalbudget.tables import NotedTable

MOST = 10
"""Items of each model."""
MOST_MODELS = 200
"""Models whose items are looked at, in the order of the leaderboard."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as one model answers it.

    Attributes:
        model: name.
        item: name.
        score: mean of its readings; each may be the mean of several judges, less their biases.
        low: of the interval, which covers the item's mean on average over the items.
        high: of it.
        readings: behind it.
        text: the beginning of what was asked; empty where nothing tells it.
    """

    model: Annotated[str, Shown("model")]
    item: Annotated[str, Shown("item")]
    score: Annotated[float, Shown("score", "p")]
    low: Annotated[float, Shown("{level} interval", "p", to="high")]
    high: float
    readings: Annotated[int, Shown("readings", ",")]
    text: Annotated[str, Shown("text", optional=True, more={"justify": "left", "overflow": "fold"})]

    @property
    def half_width(self) -> float:
        """Half of high - low."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class LeastKnown(TableSection):
    """Items with the widest intervals.

    Attributes:
        rows: by model in the order of the leaderboard, the widest first; ten of each at most.
        level: of the intervals.
        method: of them.
    """

    name: ClassVar[str] = "least_known"
    title: ClassVar[str] = "Items known least well"
    caption: ClassVar[str] = "items known least well"

    rows: tuple[ItemRow, ...]
    level: float
    method: str

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None where no item was read twice, or all are known as well."""
        rows: list[ItemRow] = []
        methods: dict[str, None] = {}
        for m in study.order[:MOST_MODELS]:
            found, method = _items(study, m)
            rows += found
            methods |= dict.fromkeys([method] if found else [])
        return cls(tuple(rows), study.level, " or ".join(methods)) if rows else None

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        return (
            f"The mean score of an item, asked again and again. {percent(self.level)} interval: "
            f"{self.method}; random: repeats; covers so many of all items on average, fixed-n."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """The five widest of all."""
        return (self._of_items(self._widest(_SHOWN), *self._one_model, "text"),)

    def page_tables(self) -> tuple[NotedTable, ...]:
        """The ten widest of all, with their texts."""
        return (self._of_items(self._widest(MOST), *self._one_model),)

    def about_model(self, model: str) -> tuple[NotedTable, ...]:
        """Its ten widest, with their texts."""
        rows = [row for row in self.rows if row.model == model]
        return (self._of_items(rows, "model"),) if rows else ()

    @property
    def _one_model(self) -> tuple[str, ...]:
        """Not a column where all rows are of one."""
        return ("model",) if len({row.model for row in self.rows}) == 1 else ()

    def _widest(self, most: int) -> list[ItemRow]:
        return sorted(self.rows, key=lambda row: -row.half_width)[:most]

    def _of_items(self, rows: Sequence[ItemRow], *without: str) -> NotedTable:
        return self._table(rows, places=decimals(row.half_width / 2 for row in rows), without=without)


def _items(study: Study, m: int) -> tuple[list[ItemRow], str]:
    scores, purchase = study.scores(m), study.purchase(m)
    readings = judge_corrected_generations(scores) if study.is_panel else readings_of(scores)
    n = readings.counts
    if int(n.max(initial=0)) < 2:
        return [], ""
    pool = None if purchase.allocation is Allocation.FIXED else purchase.fixed_repeats
    found = eb_wilson(readings, bounds=None if study.is_panel else study.bounds, fixed_repeats=pool)
    bounds = found.confidence_intervals(study.level)
    width = np.where(n > 0, bounds.high - bounds.low, np.nan)
    known = np.flatnonzero(np.isfinite(width))
    if not known.size or np.ptp(width[known]) == 0.0:
        return [], ""
    widest = known[np.lexsort((n[known], -width[known]))][:MOST].tolist()
    recorded = study.recorded
    return [
        ItemRow(
            study.models[m],
            recorded.items[i],
            float(found.value[i]),
            float(bounds.low[i]),
            float(bounds.high[i]),
            int(n[i]),
            "" if recorded.texts is None else recorded.texts[i],
        )
        for i in widest
    ], found.method
