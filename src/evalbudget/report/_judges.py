"""Each judge's bias against its panel, and what the panel's votes are worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from evalbudget._fields import Shown, decimals, names, number, percent, span
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import Coverage
from evalbudget.judges.estimates import EffectiveVotes, JudgeScores, effective_votes, judge_biases
from evalbudget.report._charts import Bar, Chart
from evalbudget.report._numbers import CLAIM, claimed, details
from evalbudget.report._section import TableSection
from evalbudget.report._study import Study
from evalbudget.statistics._means import mean_of_known
from evalbudget.tables import NotedTable


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge.

    Attributes:
        judge: name.
        bias: its deviation from the panel's mean.
        standard_error: of the bias.
        low: of the interval for this judge by itself.
        high: of it.
        all_low: of the interval that holds for all judges at once.
        all_high: of it.
        mean: of its scores.
        scores: how many.
    """

    judge: Annotated[str, Shown("judge")]
    bias: Annotated[float, Shown("bias", "+p")]
    standard_error: Annotated[float, Shown("s.e.", "p")]
    low: float
    high: float
    all_low: Annotated[float, Shown("{level} at once", "+p", to="all_high")]
    all_high: float
    mean: Annotated[float, Shown("mean", "p")]
    scores: Annotated[int, Shown("scores", ",")]


@dataclass(frozen=True)
class Judges(TableSection):
    """The panel, the most lenient judge first.

    Attributes:
        rows: one per judge that scored.
        level: of the intervals.
        method: how judges were compared.
        models: how many the biases are averaged over.
        votes: what the panel's agreement is worth; None where no item was scored by all judges.
        silent: judges without a score.
    """

    name: ClassVar[str] = "judges"
    caption: ClassVar[str] = "judges"

    rows: tuple[JudgeRow, ...]
    level: float
    method: str
    models: int
    votes: EffectiveVotes | None
    silent: tuple[str, ...]

    @classmethod
    def of(cls, study: Study) -> Self | None:
        """None without a panel, or if fewer than two judges scored."""
        if not study.is_panel:
            return None
        scores = study.stacked(study.fixed_table, study.raters)
        try:
            found = judge_biases(scores)
        except InvalidInferenceError:
            return None
        own = claimed(found.confidence_intervals(study.level, coverage=Coverage.EACH), found.standard_error)
        everyone = claimed(found.confidence_intervals(study.level), found.standard_error)
        flat = np.moveaxis(study.fixed_table, 2, 0).reshape(len(study.raters), -1)
        mean = {name: float(np.nanmean(x)) for name, x in zip(study.raters, flat, strict=True) if _any(x)}
        rows = [
            JudgeRow(
                name,
                float(found.value[j]),
                float(found.standard_error[j]),
                float(own.low[j]),
                float(own.high[j]),
                float(everyone.low[j]),
                float(everyone.high[j]),
                mean[name],
                int(found.n[j]),
            )
            for j, name in enumerate(found.judges)
        ]
        rows.sort(key=lambda row: -row.bias)
        return cls(
            tuple(rows), study.level, found.method, len(study.models), _votes(study), tuple(scores.silent)
        )

    @property
    def label(self) -> str:
        """Exactly what the intervals claim."""
        over = f", averaged over {self.models} models" if self.models > 1 else ""
        return (
            f"Bias: deviation from the mean of these {len(self.rows)} judges, not from the truth{over}; "
            f"{self.method}. {CLAIM} {percent(self.level)} at once: all judges together (Bonferroni)."
        )

    def tables(self) -> tuple[NotedTable, ...]:
        """One table."""
        lines = [self.label]
        if self.votes is not None:
            bound = "at most " if self.votes.upper_bound else ""
            shared = (
                "; errors that all judges share do not show"
                if bound
                else "; errors against the reference, whose own noise counts as shared"
            )
            lines.append(
                f"Effective votes: the {self.votes.judges} judges are worth {bound}{self.votes.value:.1f} "
                f"independent ones (a point estimate{shared})."
            )
        if self.silent:
            lines.append(f"No score by {names(self.silent)}.")
        return (self._table(self.rows, note=" ".join(lines)),)

    def about_judge(self, judge: str) -> tuple[NotedTable, ...]:
        """Its bias, with both intervals."""
        row = next((row for row in self.rows if row.judge == judge), None)
        if row is None:
            return ()
        places, level = decimals([row.standard_error]), percent(self.level)
        together = f"{level} interval, all {len(self.rows)} judges at once"
        told = {
            "bias": number(row.bias, places, sign=True),
            "standard error": number(row.standard_error, places),
            f"{level} interval": span(row.low, row.high, places, sign=True),
            together: span(row.all_low, row.all_high, places, sign=True),
            "mean of its scores": number(row.mean, places),
            "scores": f"{row.scores:,}",
        }
        return (details("bias", self.label, told),)

    def to_dict(self) -> dict[str, Any]:
        """Label, rows and effective votes."""
        votes = None if self.votes is None else asdict(self.votes)
        return {**super().to_dict(), "effective_votes": votes, "silent": list(self.silent)}

    def charts(self) -> tuple[Chart, ...]:
        """Thick: each judge's own interval; thin: that of all at once."""
        bars = tuple(
            Bar(row.judge, row.bias, row.low, row.high, row.all_low, row.all_high) for row in self.rows
        )
        return (Chart("judges", "bias against the panel's mean", bars, zero=True),)


def _any(x: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    return bool((~np.isnan(x)).any())


def _votes(study: Study) -> EffectiveVotes | None:
    """Every model's items side by side: errors are pooled over models."""
    models, items, raters, epochs = study.fixed_table.shape
    scores = JudgeScores.from_table(
        study.fixed_table.reshape(models * items, raters, epochs), judges=study.raters
    )
    reference = study.recorded.reference
    truth = None if reference is None else mean_of_known(reference).ravel()
    try:
        return effective_votes(scores, truth=truth)
    except InvalidInferenceError:
        return None
