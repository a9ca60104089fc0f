r"""Are differences between models real? Paired differences on the same items, all at once.

Each comparison is the mean over shared items of the difference of two models' item means, with an error that
takes clusters of items for what was sampled (:mod:`evalbudget.statistics._clustered_mean`), is a little
larger where few items differ, and of panels counts the error of the judges' biases. Intervals of all
comparisons and metrics hold at once with the stated level (Bonferroni), and the verdicts follow from them:
at most 1 - level is the probability that any verdict is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from rich.text import Text

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.recorded._side_by_side import side_by_side
from evalbudget.replay._rows import defined
from evalbudget.report._axes import plot
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._numbers import NOTHING, decimals, name_cell, new_table, number, span
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray, IntArray, check_level
from evalbudget.statistics._clustered_mean import ClusteredMean, clustered_mean, summed_errors, widened
from evalbudget.statistics._shrinkage import t_quantile
from evalbudget.tables import NotedTable

POWER = 0.8
"""Of the further items that an undecided comparison is said to need."""
_FEWEST = 2


class Outcome(StrEnum):
    """What a comparison proves."""

    FIRST = "first is better"
    SECOND = "second is better"
    EQUIVALENT = "equivalent"
    """The difference is smaller than the margin."""
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on one metric.

    Attributes:
        first: name.
        second: name.
        metric: that was compared.
        difference: first less second, mean over the items of both.
        standard_error: of it, items (in their clusters) and repeats random; nan with fewer than two clusters.
        low: of the interval that holds for all comparisons at once; nan where none is claimed.
        high: of it.
        items: that both were scored on.
        clusters: among them.
        outcome: what is proved.
        items_needed: about so many items, of which those there are are a part, would decide it with a
            probability of 80%, if difference and spread are what they seem; None where it is decided, or
            where nothing can be said.
    """

    first: str
    second: str
    metric: str
    difference: float
    standard_error: float
    low: float
    high: float
    items: int
    clusters: int
    outcome: Outcome
    items_needed: int | None

    @property
    def verdict(self) -> str:
        """The outcome with names."""
        if self.outcome is Outcome.FIRST:
            return f"{self.first} is better"
        if self.outcome is Outcome.SECOND:
            return f"{self.second} is better"
        return self.outcome.value


@dataclass(frozen=True, repr=False)
class Comparisons:
    """All comparisons that were asked for; they hold at once.

    Attributes:
        rows: one per pair and metric.
        level: of all intervals together.
        margin: differences smaller than this do not matter; None: none was given.
        cluster: by what items are clustered; None for items by themselves.
        notes: what the sources say, for people: what was left out, and of whom.
    """

    rows: tuple[Comparison, ...]
    level: float
    margin: float | None
    cluster: str | None
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The answer, where two models were compared on one metric; else how many are decided."""
        if len(self.rows) > 1:
            open_ones = sum(row.outcome is Outcome.UNDECIDED for row in self.rows)
            decided = len(self.rows) - open_ones
            sure = f"with {_percent(self.level)} confidence in all"
            return f"{decided} of {len(self.rows)} comparisons are decided, {sure}."
        (row,) = self.rows
        places = decimals([row.standard_error])
        told = f"{row.first} less {row.second} is {number(row.difference, places, sign=True)}"
        if math.isfinite(row.low):
            told += f", {_percent(self.level)} interval {span(row.low, row.high, places, sign=True)}"
        verdict = {
            Outcome.EQUIVALENT: f"Equivalent within {self.margin:g}" if self.margin else "",
            Outcome.UNDECIDED: "Undecided",
        }.get(row.outcome, row.verdict)
        needs = f" About {row.items_needed:,} items would decide it." if row.items_needed else ""
        return f"{verdict}: {told}.{needs}"

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        sampled = "items" if self.cluster is None else f"clusters of items ({self.cluster})"
        together = f" {len(self.rows)} comparisons at once (Bonferroni)." if len(self.rows) > 1 else ""
        margin = "" if self.margin is None else f" Equivalent: the interval lies within ± {self.margin:g}."
        return (
            f"First less second, paired by item. Random: {sampled} (sampled, independent) and repeats; "
            "fixed-n, "
            f"asymptotic.{together}{margin}"
        )

    def table(self) -> NotedTable:
        """One row per comparison."""
        metrics = {row.metric for row in self.rows}
        columns = ["difference", "s.e.", f"{_percent(self.level)} interval", "items"]
        if self.cluster is not None:
            columns.append("clusters")
        needed = any(row.items_needed for row in self.rows)
        columns += ["would decide"] * needed
        several = ["metric"] if len(metrics) > 1 else []
        table = new_table("", " ".join((self.label, *self.notes)), [])
        for name in ("first", "second", *several):
            table.add_column(name, overflow="fold", min_width=8)
        for name in columns:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("verdict", overflow="fold", min_width=12)
        places = decimals(row.standard_error for row in self.rows)
        for row in self.rows:
            table.add_row(
                name_cell(row.first),
                name_cell(row.second),
                *[name_cell(row.metric)] * len(several),
                number(row.difference, places, sign=True),
                number(row.standard_error, places),
                span(row.low, row.high, places, sign=True),
                f"{row.items:,}",
                *([f"{row.clusters:,}"] if self.cluster is not None else []),
                *([f"{row.items_needed:,} items" if row.items_needed else ""] if needed else []),
                Text(row.verdict),
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are None."""
        rows = [asdict(row) | {"outcome": row.outcome.value, "verdict": row.verdict} for row in self.rows]
        found: dict[str, Any] = defined(
            {
                "sentence": self.sentence,
                "label": self.label,
                "level": self.level,
                "margin": self.margin,
                "cluster": self.cluster,
                "notes": list(self.notes),
                "rows": rows,
            }
        )
        return found

    def to_json(self, *, indent: int | None = 2) -> str:
        """:meth:`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def plot(self, ax: Any = None) -> Any:
        """The differences with their intervals on axes of matplotlib.

        Args:
            ax: where to draw; None for axes of their own.

        Returns:
            The axes.

        Raises:
            InvalidInputError: matplotlib is not installed.
        """
        several = len({row.metric for row in self.rows}) > 1
        bars = tuple(
            Bar(
                f"{row.first} - {row.second}" + (f" ({row.metric})" if several else ""),
                row.difference,
                *(row.low, row.high, row.low, row.high),
            )
            for row in self.rows
        )
        chart = Chart("differences", "first less second", bars, zero=True, together=True)
        return plot((chart,), ax, level=self.level)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return f"<p>{escape(self.sentence)}</p>\n{self.table()._repr_html_()}"

    def __repr__(self) -> str:
        return f"<Comparisons: {self.sentence}>"


def _percent(level: float) -> str:
    return f"{100.0 * level:.10g}%"


def compare(
    recorded: RecordedScores | Mapping[str, RecordedScores],
    *,
    margin: float | None = None,
    against: str | None = None,
    models: Sequence[str] = (),
    scores: Sequence[str] = (),
    cluster: str | None = None,
    level: float = 0.95,
    across_tasks: bool = False,
) -> Comparisons:
    """Which differences between models are real?

    Args:
        recorded: the scores; several recordings, by path, are put side by side.
        margin: differences smaller than this do not matter, in the units of the scores, above 0.
        against: compare all with this model only; None for all pairs.
        models: only these; empty for all.
        scores: only these metrics, or judges; empty for all. Different metrics are compared one by one,
            judges of the same thing as a panel.
        cluster: by what ``categories`` cluster items, for what is said; None if items are sampled one by one.
        level: of all intervals together.
        across_tasks: take recordings of tasks of different names or versions for one task.

    Raises:
        InvalidInputError: a margin of 0 or less, fewer than two models, no item in common, no clusters.
        UnknownNameError: no such model or score.
        InvalidInferenceError: a model without a score, or one whose scores were all bought because of others.
    """
    check_level(level)
    if margin is not None and not (math.isfinite(margin) and margin > 0.0):
        raise InvalidInputError(
            f"--margin {margin:g} is no difference that could be too small to matter; give one above 0, for "
            "example 0.01"
        )
    if isinstance(recorded, Mapping):
        recorded = side_by_side(recorded, across_tasks=across_tasks)
    chosen = _chosen("model", models, recorded.models)
    if against is not None and against not in recorded.models:
        raise UnknownNameError("model in --against", against, recorded.models)
    if against is not None and recorded.models.index(against) not in chosen:
        chosen = [recorded.models.index(against), *chosen]
    if len(chosen) < 2:
        raise InvalidInputError(
            f"a comparison needs two models, and there is only {recorded.models[chosen[0]]}; give a "
            "second log, "
            "or a recording of several models"
        )
    raters = _chosen("score", scores, recorded.raters)
    recorded = recorded.part(models=np.array(chosen), raters=np.array(raters))
    codes = _clusters(recorded, cluster)
    studies = [
        (name, Study(part, level=level))
        for name, part in (
            [(recorded.raters[0] if len(recorded.raters) == 1 else "panel", recorded)]
            if recorded.one_measure
            else [(name, recorded.part(raters=np.array([r]))) for r, name in enumerate(recorded.raters)]
        )
    ]
    pairs = [
        (a, b) if against is None or recorded.models[a] != against else (b, a)
        for a, b in combinations(range(len(recorded.models)), 2)
        if against is None or against in (recorded.models[a], recorded.models[b])
    ]
    alpha = (1.0 - level) / (len(pairs) * len(studies))
    rows = tuple(
        compared_pair(metric, study, pair, codes, alpha, margin)
        for metric, study in studies
        for pair in pairs
    )
    if not any(row.items for row in rows):
        raise InvalidInputError(
            "no two of the models were scored on the same item, so nothing can be compared"
        )
    notes = recorded.declared.notes if recorded.declared is not None else ()
    return Comparisons(rows, level, margin, cluster, notes)


def _chosen(kind: str, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    for name in wanted:
        if name not in names:
            raise UnknownNameError(kind, name, names)
    return [i for i, name in enumerate(names) if not wanted or name in wanted]


def _clusters(recorded: RecordedScores, cluster: str | None) -> IntArray:
    """Number of each item's cluster, shape (items,)."""
    if cluster is None:
        return np.arange(len(recorded.items))
    if recorded.categories is None:
        raise InvalidInputError(
            f"--cluster {cluster}: the scores say nothing of {cluster!r} for some items, or for none; "
            "leave it "
            "out, or give scores that have it"
        )
    codes = np.unique(np.asarray(recorded.categories), return_inverse=True)[1].astype(np.int64)
    if not codes.any():
        raise InvalidInputError(
            f"--cluster {cluster}: all items belong to one, {recorded.categories[0]!r}, so nothing was "
            "sampled "
            "twice; leave it out, or give a field that tells items apart"
        )
    return codes


def compared_pair(
    metric: str, study: Study, pair: tuple[int, int], codes: IntArray, alpha: float, margin: float | None
) -> Comparison:
    """Compare two models.

    Args:
        metric: what their scores are called.
        study: that holds them.
        pair: their numbers; the first less the second.
        codes: number of each item's cluster, shape (items,).
        alpha: probability of a wrong verdict.
        margin: differences smaller than this do not matter; None: none is given.
    """
    a, b = pair
    means, errors = study.of_both(a, b)
    difference = means[0] - means[1]
    found = _with_judges(clustered_mean(difference, codes), errors)
    low = high = math.nan
    if found.clusters >= _FEWEST and not np.nan_to_num(difference).any():
        # as many clusters as these show no difference with 1 - alpha at most, were it on a larger share
        high = _span(means) * (1.0 - alpha ** (1.0 / found.clusters))
        low = -high if high > 0.0 else math.nan
    elif found.standard_error > NOTHING:
        most = float(np.nanmax(np.abs(difference)))
        quantile = float(t_quantile(1.0 - alpha, np.array(found.degrees)))
        half = quantile * float(widened(found.standard_error, most, found.clusters))
        low, high = found.value - half, found.value + half
    outcome = _outcome(low, high, margin)
    needed = _needed(found, alpha, margin) if outcome is Outcome.UNDECIDED else None
    return Comparison(
        *(study.models[a], study.models[b], metric, found.value, found.standard_error, low, high),
        *(found.n, found.clusters, outcome, needed),
    )


def _with_judges(found: ClusteredMean, errors: tuple[FloatArray, FloatArray]) -> ClusteredMean:
    """With the error of the judges' biases, which are fitted to each model by itself."""
    added, degrees = errors
    if not added.any() or not found.standard_error > NOTHING:
        return found
    parts = zip(added.tolist(), degrees.tolist(), strict=True)
    error, freedom = summed_errors((found.standard_error**2, found.degrees), *parts)
    return replace(found, standard_error=float(error), degrees=float(freedom))


def _span(means: FloatArray) -> float:
    """Of the scores; at least 1 where they may be pass or fail."""
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    return max(high - low, 1.0) if low >= 0.0 and high <= 1.0 else high - low


def _outcome(low: float, high: float, margin: float | None) -> Outcome:
    if margin is not None and -margin < low and high < margin:
        return Outcome.EQUIVALENT
    if low > 0.0:
        return Outcome.FIRST
    if high < 0.0:
        return Outcome.SECOND
    return Outcome.UNDECIDED


def _needed(found: ClusteredMean, alpha: float, margin: float | None) -> int | None:
    """Items with which the interval most probably leaves out 0, or both ends of the margin."""
    if not found.standard_error > NOTHING or found.clusters < _FEWEST:
        return None
    size = abs(found.value)
    apart = max(size, 0.0 if margin is None else margin - size)
    if apart <= NOTHING:
        return None
    normal = np.array(np.inf)
    reach = float(t_quantile(1.0 - alpha, normal) + t_quantile(2.0 * POWER - 1.0, normal))
    needed = math.ceil(found.n * (reach * found.standard_error / apart) ** 2)
    return needed if needed > found.n else None
