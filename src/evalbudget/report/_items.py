"""How much items vary and where their means lie: whether adaptive repeats can pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, ClassVar, Self

import numpy as np

from evalbudget.report._charts import Histogram
from evalbudget.report._numbers import new_table
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray
from evalbudget.tables import NotedTable

_BINS = 8
_BAR = 14
_MOST_VARIABLE = 0.1


@dataclass(frozen=True)
class Items(Section):
    """Variance and mean of every item's repeats, as histograms.

    Attributes:
        variance_edges: bounds of the bins of variances, ascending, one more than there are bins.
        variance_counts: items in each.
        mean_edges: bounds of the bins of means.
        mean_counts: items in each.
        items: with two scores or more, once for every model and rater that has them.
        sets: pairs of a model and a rater.
        repeats: median number of scores behind an item's variance.
        never_vary: share of these whose scores are all equal.
        held_by_most_variable: share of the sum of variances that the tenth with the largest ones holds.
    """

    name: ClassVar[str] = "items"

    variance_edges: tuple[float, ...]
    variance_counts: tuple[int, ...]
    mean_edges: tuple[float, ...]
    mean_counts: tuple[int, ...]
    items: int
    sets: int
    repeats: float
    never_vary: float
    held_by_most_variable: float

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None where no item was scored twice by the same rater."""
        scores = study.recorded.scores
        n = np.count_nonzero(~np.isnan(scores), axis=-1)
        several = n > 1
        if not several.any():
            return None
        kept, n = scores[several], n[several]
        mean = np.nansum(kept, axis=-1) / n
        variance = np.nansum((kept - mean[:, None]) ** 2, axis=-1) / (n - 1)
        variance[np.nanmax(kept, axis=-1) == np.nanmin(kept, axis=-1)] = (
            0.0  # whatever the mean is rounded to
        )
        variance_counts, variance_edges = np.histogram(variance, _BINS, (0.0, float(variance.max()) or 1.0))
        still = bool(np.ptp(mean) <= 1e-12 * np.abs(mean).max())  # whatever they are rounded to
        mean_counts, mean_edges = np.histogram(mean, 1 if still else _BINS)
        return cls(
            variance_edges=tuple(variance_edges.tolist()),
            variance_counts=tuple(variance_counts.tolist()),
            mean_edges=tuple(mean_edges.tolist()),
            mean_counts=tuple(mean_counts.tolist()),
            items=int(n.size),
            sets=scores.shape[0] * scores.shape[2],
            repeats=float(np.median(n)),
            never_vary=float((variance == 0.0).mean()),
            held_by_most_variable=_held(variance),
        )

    @property
    def _what(self) -> str:
        return "items" if self.sets == 1 else "cells (item, model, judge)"

    @property
    def label(self) -> str:
        """What it says of adaptive repeats."""
        words = (
            f"{self.items:,} {self._what} with {self.repeats:g} scores each (median); "
            f"{self.never_vary:.0%} of them never varied."
        )
        if self.never_vary == 1.0:
            return f"{words} Repeats teach nothing here."
        return (
            f"{words} The tenth that varies most holds {self.held_by_most_variable:.0%} of all variance (of "
            f"{self.repeats:g} scores, some of it by chance): the more, the more adaptive repeats save."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """The two histograms side by side."""
        table = new_table("items", self.label, ["variance", "", "items", "mean", " ", "items "])
        for bar in (table.columns[1], table.columns[4]):  # they give way to numbers where there is no room
            bar.justify, bar.no_wrap, bar.overflow = "left", False, "crop"
        for variance, mean in self._bins():
            table.add_row(*variance, *mean)
        return (table,)

    def page_tables(self) -> tuple[NotedTable, ...]:
        """Without the bars, which pages have as pictures."""
        table = new_table("items", self.label, ["variance", "items", "mean", "items "])
        for variance, mean in self._bins():
            table.add_row(*variance[::2], *mean[::2])
        return (table,)

    def _bins(self) -> Iterator[tuple[tuple[str, str, str], ...]]:
        """Of both histograms side by side: bounds, a bar, how many."""
        variance, mean = (self.variance_edges, self.variance_counts), (self.mean_edges, self.mean_counts)
        return zip_longest(_rows(*variance), _rows(*mean), fillvalue=("", "", ""))

    def charts(self) -> tuple[Histogram, ...]:
        """The same as pictures."""
        return (
            Histogram("items", "variance of an item's scores", self.variance_edges, self.variance_counts),
            Histogram("", "mean of an item's scores", self.mean_edges, self.mean_counts),
        )

    def to_dict(self) -> dict[str, Any]:
        """Label and numbers."""
        return {"label": self.label, **asdict(self)}


def _held(variance: FloatArray) -> float:
    most = max(1, round(_MOST_VARIABLE * variance.size))
    total = float(variance.sum())
    return float(np.sort(variance)[-most:].sum()) / total if total > 0.0 else float("nan")


def _rows(edges: tuple[float, ...], counts: tuple[int, ...]) -> list[tuple[str, str, str]]:
    most = max(counts)
    return [
        (f"{low:.3g} to {high:.3g}", "█" * round(_BAR * count / most) or "▏" * (count > 0), f"{count:,}")
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
