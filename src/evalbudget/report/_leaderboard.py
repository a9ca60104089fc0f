"""Every model's mean with intervals, and the ranks they leave open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from evalbudget._fields import NOTHING, Shown, decimals, names, number, percent, span
from evalbudget.estimate import Estimate
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._numbers import CLAIM, details, table_of
from evalbudget.report._pairs import open_ranks
from evalbudget.report._section import Section
from evalbudget.report._study import Study
from evalbudget.sampler import Allocation
from evalbudget.tables import NotedTable

ALLOCATIONS = {
    Allocation.FIXED: "planned",
    Allocation.PHASED: "adaptive, in phases",
    Allocation.ADAPTIVE: "adaptive",
}
"""How readings were allocated, in words."""
_NEIGHBOURS = 4  # on each side of a model, in its picture


def _open_ranks(row: Standing) -> str:
    only = row.best_rank == row.worst_rank
    return str(row.rank) if only else f"{row.best_rank}-{row.worst_rank}"


@dataclass(frozen=True, slots=True)
class Standing:
    """One model.

    Attributes:
        model: name.
        rank: by the estimate, from 1; equal estimates share the better one.
        best_rank: the best the scores leave open, for all models at once.
        worst_rank: the worst.
        estimate: mean over sampled items.
        standard_error: nan where one item leaves nothing to estimate it from.
        low: of the interval for this model by itself; nan where none is claimed.
        high: of it.
        all_low: of the interval that holds for all models at once.
        all_high: of it.
        items: scored.
        readings: behind the estimate.
        readings_recorded: in all; more, where some may not count.
        fewest: of these, of an item that was read.
        most: likewise.
        cost: cells paid for.
        usd: dollars paid; None where unknown.
        per_usd: precision per dollar, 1/(standard_error^2 usd); None where either is not known, or 0.
        allocation: how readings were allocated.
        method: of the estimate.
    """

    model: Annotated[str, Shown("model")]
    rank: Annotated[int, Shown("rank", by=_open_ranks)]
    best_rank: int
    worst_rank: int
    estimate: Annotated[float, Shown("mean", "p")]
    standard_error: Annotated[float, Shown("s.e.", "p")]
    low: Annotated[float, Shown("{level} interval", "p", to="high")]
    high: float
    all_low: Annotated[float, Shown("at once", "p", to="all_high")]
    all_high: float
    items: Annotated[int, Shown("items", ",")]
    readings: Annotated[int, Shown("readings", ",")]
    readings_recorded: int
    fewest: int
    most: int
    cost: Annotated[float, Shown("cost", ",.0f")]
    usd: Annotated[float | None, Shown("usd", "usd")]
    per_usd: Annotated[float | None, Shown("per $", ",.3g")]
    allocation: str
    method: str


@dataclass(frozen=True)
class Leaderboard(Section):
    """Models, the best estimate first.

    Attributes:
        rows: one per model.
        level: of the intervals.
        items: of the benchmark, those never scored included, without those that no score applies to.
        raters: behind the means.
        notes: what to beware of.
        lower_is_better: the lowest mean is the best.
        proved: the differences rule out some rank of some model.
        claim: what is random, and when it may be read.
        outside: how many items no score applies to.
    """

    name: ClassVar[str] = "leaderboard"

    rows: tuple[Standing, ...]
    level: float
    items: int
    raters: tuple[str, ...]
    notes: tuple[str, ...]
    lower_is_better: bool = False
    proved: bool = False
    claim: str = CLAIM
    outside: int = 0

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """There is always one."""
        ranks: Sequence[tuple[int, int]] = ((1, 1),)
        if len(study.models) > 1:
            ranks = open_ranks(study.pair_bounds, lower_is_better=study.lower_is_better)
        way = -1.0 if study.lower_is_better else 1.0
        values = [way * study.means[m].value for m in study.order]
        rows, notes = [], []
        for m in study.order:
            estimate = study.means[m]
            rank = 1 + sum(value > way * estimate.value for value in values)
            best, worst = ranks[m]
            rows.append(standing(study, m, estimate, rank, (best, worst + study.unranked)))
            notes += _notes(study, m, rows[-1])
        notes += [*([study.missing_note] if study.missing_note else []), *study.unscored]
        outside = 0 if study.outside is None else int(study.outside.sum())
        return cls(
            *(tuple(rows), study.level, len(study.recorded.items) - outside, study.raters, tuple(notes)),
            outside=outside,
            lower_is_better=study.lower_is_better,
            claim=study.claim,
            proved=any(best > 1 or worst < len(rows) for best, worst in ranks),
        )

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        who = f", by these {len(self.raters)} judges, each weighing the same" if len(self.raters) > 1 else ""
        text = f"Mean score over all items like these {self.items:,}{who}"
        text += f"; it does not apply to {self.outside:,} others. " if self.outside else ". "
        text += f"{self.claim} "
        first = f"the {'lowest' if self.lower_is_better else 'highest'} mean is first"
        if len(self.rows) == 1:
            better = " Lower is better." if self.lower_is_better else ""
            return f"{text}{percent(self.level)} interval: of this model.{better}"
        rank = (
            f"what the paired differences of all pairs together leave open at {percent(self.level)}; {first}"
        )
        if not self.proved:
            rank = f"the paired differences leave all of them open; {first}"
        return (
            f"{text}{percent(self.level)} interval: each model by itself; at once: all {len(self.rows)} "
            f"models together (Bonferroni). Rank: {rank}."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """The leaderboard and the costs; columns that say the same in every row go to the caption."""
        rows = self.rows
        same_items = all(row.items == self.items for row in rows)
        per_item = {row.readings / max(row.items, 1) for row in rows}
        constant = len(per_item) == 1 and (readings := per_item.pop()) == int(readings)
        paid = any(row.cost != row.readings for row in rows)
        dollars = any(row.usd is not None for row in rows)
        counts = [f"{self.items:,} item{'s' * (self.items != 1)}."] if same_items else []
        if constant:
            counts.append(_per_item(rows, int(readings)))
        columns = ["model", "estimate", "standard_error", "low"]
        columns = ["rank", *columns, "all_low"] if len(rows) > 1 else columns
        columns += [*([] if same_items else ["items"]), *([] if constant else ["readings"])]
        note = " ".join([*counts, self.label, *self.notes])
        table = table_of(rows, "leaderboard", note, level=self.level, only=columns)
        return (table, self._costs(dollars=dollars)) if paid or dollars else (table,)

    def _costs(self, *, dollars: bool) -> NotedTable:
        """What the readings cost."""
        note = "Cost: readings paid for."
        if dollars:
            note += (
                " Per $: precision per dollar, 1/(s.e.² x usd). Where it is twice as high, half as much does."
            )
        columns = ["model", "readings", "cost", *(["usd", "per_usd"] if dollars else [])]
        return table_of(self.rows, "what it cost", note, only=columns)

    def about_model(self, model: str) -> tuple[NotedTable, ...]:
        """Its estimate, what is claimed of it, and what it rests on."""
        row = next((row for row in self.rows if row.model == model), None)
        if row is None:
            return ()
        places, level = decimals([row.standard_error]), percent(self.level)
        told = {
            "estimate": number(row.estimate, places),
            "standard error": number(row.standard_error, places),
            f"{level} interval": span(row.low, row.high, places),
        }
        n = len(self.rows)
        if n > 1:
            told[f"{level} interval, all {n:,} models at once"] = span(row.all_low, row.all_high, places)
            told["rank"] = f"{row.rank} of {n:,}; open: {row.best_rank} to {row.worst_rank}"
        told |= {
            "items": f"{row.items:,} of {self.items:,}",
            "readings behind the estimate": f"{row.readings:,} of {row.readings_recorded:,}",
            "repeats": ALLOCATIONS[Allocation(row.allocation)],
            "method": row.method,
        }
        return (details("estimate", f"{self.claim} {' '.join(self._of(model))}".strip(), told),)

    def _of(self, model: str) -> list[str]:
        return [note for note in self.notes if note.startswith((f"{model}: ", f"{model} was "))]

    def to_dict(self) -> dict[str, Any]:
        """Label, notes and rows."""
        return {"label": self.label, "notes": list(self.notes), "rows": [asdict(row) for row in self.rows]}

    def charts(self) -> tuple[Chart, ...]:
        """Thick: each model's own interval; thin: that of all at once."""
        return (Chart("leaderboard", "mean score", tuple(map(_bar, self.rows))),)

    def model_charts(self, model: str) -> tuple[Chart, ...]:
        """It among the models that are ranked next to it."""
        at = next((i for i, row in enumerate(self.rows) if row.model == model), None)
        if at is None:
            return ()
        first = max(0, min(at - _NEIGHBOURS, len(self.rows) - 2 * _NEIGHBOURS - 1))
        rows = self.rows[first : first + 2 * _NEIGHBOURS + 1]
        title = "among its neighbours" if len(rows) < len(self.rows) else "among all models"
        bars = tuple(map(_bar, rows))
        return (Chart(title, "mean score", bars, marked=model, of=len(self.rows)),)


def _per_item(rows: Sequence[Standing], average: int) -> str:
    """How often items were read, on average the same in all rows; with the range where counts differ."""
    least, most = min(row.fewest for row in rows), max(row.most for row in rows)
    if least == most or any(row.readings < row.readings_recorded for row in rows):
        return f"{average:,} reading{'s' * (average > 1)} per item."
    return f"{least:,} to {most:,} readings per item, {average:,} on average."


def standing(study: Study, m: int, estimate: Estimate, rank: int, ranks: tuple[int, int]) -> Standing:
    """What is said of one model.

    Args:
        study: of it and others.
        m: its number.
        estimate: of its mean.
        rank: by that.
        ranks: that the differences leave open.
    """
    level, several = study.level, len(study.models)
    own, everyone = study.rows(m, level), study.rows(m, 1 - (1 - level) / several)
    purchase, counts = study.purchase(m), np.bincount(study.scores(m).item)
    read = counts[counts > 0]
    return Standing(
        model=study.models[m],
        rank=rank,
        best_rank=ranks[0],
        worst_rank=ranks[1],
        estimate=estimate.value,
        standard_error=own.get("stderr", math.nan),
        low=own.get("lower", math.nan),
        high=own.get("upper", math.nan),
        all_low=everyone.get("lower", math.nan),
        all_high=everyone.get("upper", math.nan),
        items=int(own["items"]),
        readings=int(own["readings"]),
        readings_recorded=int(study.scores(m).value.size),
        fewest=int(read.min(initial=own["readings"])),
        most=int(read.max(initial=0)),
        cost=float(study.scores(m).value.size) if purchase.cost is None else purchase.cost,
        usd=purchase.usd,
        per_usd=_per_usd(own.get("stderr", math.nan), purchase.usd),
        allocation=purchase.allocation.value,
        method=estimate.method,
    )


def _bar(row: Standing) -> Bar:
    return Bar(row.model, row.estimate, row.low, row.high, row.all_low, row.all_high)


def _per_usd(standard_error: float, usd: float | None) -> float | None:
    if not usd or not standard_error > NOTHING:
        return None
    return 1.0 / (standard_error**2 * usd)


def _alike(study: Study, m: int) -> str:
    """What is the same in scores whose mean has no standard error."""
    means = study.all_item_means[m]
    if not np.nanmax(means) - np.nanmin(means) > NOTHING:
        return "all items score the same"
    if study.clusters is not None:
        return "all clusters have the same mean"
    return f"all items of a {'task' if study.tasks else 'stratum'} score the same"


def _notes(study: Study, m: int, row: Standing) -> list[str]:
    notes = []
    if row.readings < row.readings_recorded:
        notes.append(
            f"{row.model}: {row.readings:,} of {row.readings_recorded:,} readings count, the first "
            f"{study.purchase(m).fixed_repeats} of each item; the others were bought because of the scores, "
            "and would bias the mean."
        )
    elif row.allocation == Allocation.PHASED.value:
        notes.append(
            f"{row.model}: adaptive repeats; all readings count, and the mean over phases is unbiased."
        )
    if study.means[m].standard_error <= NOTHING:
        alike = _alike(study, m)
        if study.bounds is not None and row.items > 1:
            low, high = study.bounds
            proved = f"; its interval is exact for scores from {low:g} to {high:g}"
        else:
            proved = ", which proves no interval"
        notes.append(f"{row.model}: {alike}{proved}.")
    elif not np.isfinite(row.standard_error):
        notes.append(f"{row.model}: too few scores to estimate an error.")
    if study.is_panel:
        silent = [j for j, n in zip(study.raters, study.scores(m).counts, strict=True) if n == 0]
        if silent:
            notes.append(
                f"{row.model} was not scored by {names(silent)}: its mean is of the other judges, and "
                "not comparable."
            )
    return notes
