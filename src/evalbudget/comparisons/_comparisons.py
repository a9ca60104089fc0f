"""What comparisons found: rows, what they claim, and how it is said."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from evalbudget._fields import NOTHING, Shown, decimals, formatted, number, percent, span
from evalbudget.replay._rows import AsJson
from evalbudget.report._axes import plot
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._missing import missing_words
from evalbudget.report._numbers import new_table
from evalbudget.shown import shown, shown_html
from evalbudget.tables import NOTED, WORDS, NotedTable

ASYMPTOTIC = (
    "Fixed-n and asymptotic: about right, unless few items differ far more than the rest; --guaranteed gives "
    "wider ones, as evalbudget gate prints, that hold however scores are spread."
)

GUARANTEED = (
    "Fixed-n and guaranteed: any of them is wrong with a probability of at most {error}, however scores are "
    "spread in their range, as of evalbudget gate; wider than the asymptotic ones without --guaranteed."
)


class Outcome(StrEnum):
    """What a comparison proves."""

    FIRST = "first is better"
    SECOND = "second is better"
    EQUIVALENT = "equivalent"
    """The difference is smaller than the margin."""
    UNDECIDED = "undecided"


_SWAPPED = {Outcome.FIRST: Outcome.SECOND, Outcome.SECOND: Outcome.FIRST}


def _needed(row: Comparison) -> str:
    return "" if row.items_needed is None else f"{row.items_needed:,} items"


def _of_the_first(row: Comparison) -> str:
    return f"undecided: {row.missing_words}" if row.is_open_by_missing else WORDS_FOR[row.outcome]


WORDS_FOR = {Outcome.FIRST: "better", Outcome.SECOND: "worse", Outcome.UNDECIDED: "undecided"}
"""Of the first model, where no margin makes the two equivalent."""


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
        missing: answers of the first and of the second; the interval and the verdict hold whatever they
            would have been.
        if_dropped: the outcome on the items that both have, as if those missing had been picked by chance.
    """

    first: Annotated[str, Shown("model")]
    second: Annotated[str, Shown("against")]
    metric: str
    difference: Annotated[float, Shown("difference", "+p")]
    standard_error: Annotated[float, Shown("s.e.", "e")]
    low: Annotated[float, Shown("{level} at once", "+p", to="high")]
    high: float
    items: Annotated[int, Shown("items", ",")]
    clusters: int
    outcome: Annotated[Outcome, Shown("verdict", by=_of_the_first, more=WORDS)]
    items_needed: Annotated[int | None, Shown("decided by", by=_needed)]
    missing: tuple[int, int] = (0, 0)
    if_dropped: Outcome = Outcome.UNDECIDED

    @property
    def swapped(self) -> Comparison:
        """The second less the first."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=0.0 - self.difference,
            low=-self.high,
            high=-self.low,
            outcome=_SWAPPED.get(self.outcome, self.outcome),
            missing=self.missing[::-1],
            if_dropped=_SWAPPED.get(self.if_dropped, self.if_dropped),
        )

    @property
    def verdict(self) -> str:
        """The outcome with names."""
        if self.outcome is Outcome.FIRST:
            return f"{self.first} is better"
        if self.outcome is Outcome.SECOND:
            return f"{self.second} is better"
        if self.is_open_by_missing:
            return f"{self.outcome.value}: {self.missing_words}"
        return self.outcome.value

    def to_dict(self) -> dict[str, Any]:
        """JSON values; nan where there is no number."""
        told = {"outcome": self.outcome.value, "if_dropped": self.if_dropped.value, "verdict": self.verdict}
        missing = dict(zip(("first", "second"), self.missing, strict=True))
        error = self.standard_error if self.standard_error > NOTHING else math.nan
        return asdict(self) | told | {"missing": missing, "standard_error": error}

    @property
    def is_open_by_missing(self) -> bool:
        """Whether it is undecided only because of answers that are missing."""
        lost = self.outcome is not self.if_dropped or (not self.items and any(self.missing))
        return self.outcome is Outcome.UNDECIDED and lost

    @property
    def missing_words(self) -> str:
        """How many answers are missing of whom, as a clause; empty where none is."""
        return missing_words(zip((self.first, self.second), self.missing, strict=True))


@dataclass(frozen=True, repr=False)
class Comparisons(AsJson):
    """All comparisons that were asked for; they hold at once.

    Attributes:
        rows: one per pair and metric.
        level: of all intervals together.
        margin: differences smaller than this do not matter; None: none was given.
        cluster: by what items are clustered; None for items by themselves.
        unclustered: metrics of which they are by themselves nevertheless.
        comparable: rows of models that have an item in common, which share the error.
        guaranteed: the intervals hold however scores are spread; else they are asymptotic.
        lower_is_better: metrics of which it is.
        notes: what to beware of.
    """

    rows: tuple[Comparison, ...]
    level: float
    margin: float | None
    cluster: str | None
    comparable: int
    guaranteed: bool = False
    lower_is_better: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unclustered: tuple[str, ...] = ()

    @property
    def is_open_by_missing(self) -> bool:
        """Whether a comparison is undecided only because of answers that are missing."""
        return any(row.is_open_by_missing for row in self.rows)

    @property
    def sentence(self) -> str:
        """The answer, where two models were compared on one metric; else how many are decided."""
        if len(self.rows) > 1:
            open_ones = sum(row.outcome is Outcome.UNDECIDED for row in self.rows)
            decided = len(self.rows) - open_ones
            sure = f"with {percent(self.level)} confidence in all" + ("" if self.guaranteed else ", about")
            missing = sum(row.is_open_by_missing for row in self.rows)
            of_them = (
                f" {missing} {'is' if missing == 1 else 'are'} open since answers are missing."
                if missing
                else ""
            )
            return f"{decided} of {len(self.rows)} comparisons are decided, {sure}.{of_them}"
        (row,) = self.rows
        places = decimals([row.standard_error])
        told = f"{row.first} less {row.second} is {number(row.difference, places, sign=True)}"
        told = told if row.items else "no item has a score of both"
        if math.isfinite(row.low):
            told += f", {percent(self.level)} interval {span(row.low, row.high, places, sign=True)}"
            told += " whatever they would have been" if any(row.missing) else ""
        verdict = {
            Outcome.EQUIVALENT: f"Equivalent within {self.margin:g}" if self.margin else "",
            Outcome.UNDECIDED: "Undecided",
        }.get(row.outcome, row.verdict)
        if row.missing_words:
            verdict += f" ({row.missing_words})" if not row.is_open_by_missing else f": {row.missing_words}"
        needs = f" About {row.items_needed:,} items would decide it." if row.items_needed else ""
        return f"{verdict}: {told}.{needs}"

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        sampled = "items" if self.cluster is None else f"clusters of items ({self.cluster})"
        if self.unclustered:
            sampled += f", of {', '.join(self.unclustered)} items,"
        parts = [f"First less second, paired by item. Random: {sampled} (sampled, independent) and repeats."]
        if self.guaranteed:
            parts.append(GUARANTEED.format(error=percent(1.0 - self.level)))
        else:
            parts.append(ASYMPTOTIC)
        if self.comparable > 1:
            parts.append(f"{self.comparable} comparisons at once (Bonferroni).")
        if self.margin is not None:
            parts.append(f"Equivalent: the interval lies within ± {self.margin:g}.")
        if self.lower_is_better:
            several = len({row.metric for row in self.rows}) > len(self.lower_is_better)
            parts.append(f"Lower is better{' of ' + ', '.join(self.lower_is_better) if several else ''}.")
        return " ".join(parts)

    def table(self) -> NotedTable:
        """One row per comparison."""
        same = len({(row.items, row.clusters) for row in self.rows}) == 1
        several = ["metric"] if len({row.metric for row in self.rows}) > 1 else []
        table = new_table("", " ".join([*self._counts(same=same), self.label, *self.notes]))
        for name in ("first", "second", *several):
            table.add_column(name, overflow="fold", min_width=6 if several else 8)
        for name in ("difference", "s.e.", f"{percent(self.level)} interval", *([] if same else ["items"])):
            table.add_column(name, **NOTED.numbers)
        table.add_column("verdict", overflow="fold", min_width=9)
        of_metric = {
            metric: decimals(row.standard_error for row in self.rows if row.metric == metric)
            for metric in dict.fromkeys(row.metric for row in self.rows)
        }
        for row in self.rows:
            places = of_metric[row.metric]
            needs = f", {row.items_needed:,} items would decide" if row.items_needed else ""
            table.add_row(
                row.first,
                row.second,
                *[row.metric] * len(several),
                number(row.difference, places, sign=True),
                formatted(row.standard_error, "e", places),
                span(row.low, row.high, places, sign=True),
                *([] if same else [f"{row.items:,}"]),
                row.verdict + needs,
            )
        return table

    def _counts(self, *, same: bool) -> tuple[str, ...]:
        """Items that are compared, where they are the same in all rows, and their clusters."""
        clustered = [row.clusters for row in self.rows if row.metric not in self.unclustered]
        few, many = min(clustered, default=0), max(clustered, default=0)
        clusters = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        clusters = "" if self.cluster is None else f" in {clusters} cluster{'s' * (many != 1)}"
        items = f"{self.rows[0].items:,} items" if same else "Items"
        return (f"{items}{clusters}.",) if same or clusters else ()

    def _told(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "label": self.label,
            "level": self.level,
            "margin": self.margin,
            "cluster": self.cluster,
            "interval": "guaranteed" if self.guaranteed else "asymptotic",
            "notes": self.notes,
            "rows": [row.to_dict() for row in self.rows],
        }

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
        return f"<p>{shown_html(self.sentence)}</p>\n{self.table()._repr_html_()}"

    def __repr__(self) -> str:
        return f"<Comparisons: {shown(self.sentence)}>"
