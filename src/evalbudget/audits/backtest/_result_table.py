"""What a backtest of audits found: rows, a table, JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evalbudget._fields import Shown
from evalbudget.replay._rows import Replayed
from evalbudget.tables import REPLAYED, NotedTable, fill


def _verdicts(row: AuditRow) -> str:
    return ", ".join(f"{name} {count}" for name, count in row.verdict_counts.items())


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One sampler (and allocator); means over seeds.

    Attributes:
        sampler: its name.
        allocator: of audits; ``-`` for samplers that choose themselves.
        correct: share of replays that name a best system: the winner, or who leads where nothing was decided.
        top: share that name a system near enough to the best.
        decided: share of replays that end with a winner, with equivalent systems, or with an exact tie.
        wrong: share that declare a winner that is not best, or equivalent and is worse by the margin.
        pulls: answers drawn, that is pairs of system and item.
        audits: human labels.
        cost: of judge and labels.
        verdict_counts: replays by outcome.
        judge_correct: share in which the judge's own mean scores, on the same draws, name a best system.
        seeds: replays.
        delta: probability of error asked for.
    """

    sampler: Annotated[str, Shown("sampler")]
    allocator: Annotated[str, Shown("audits by")]
    correct: Annotated[float, Shown("correct", ".2f")]
    top: Annotated[float, Shown("top", ".2f")]
    decided: Annotated[float, Shown("decided", ".2f")]
    wrong: Annotated[float, Shown("wrong", ".2f")]
    pulls: Annotated[float, Shown("pulls", ",.0f")]
    audits: Annotated[float, Shown("audits", ",.0f")]
    cost: Annotated[float, Shown("cost", ",.0f")]
    verdict_counts: Annotated[dict[str, int], Shown("verdicts", by=_verdicts, more=REPLAYED.words)]
    judge_correct: float
    seeds: int
    delta: float


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Replayed):
    """Everything a backtest of audits found.

    Attributes:
        rows: in the order given.
        models: names of the systems.
        items: how many there are.
        best: the system with the best mean reference.
        judge_best: the one with the highest mean judge score over all items; nan scores left out.
        top: how far below the best counts as top, in units of the scores.
        behind: how far the judge's choice is below the best, in units of the scores.
        prices: of a judge's score and of a label.
    """

    rows: tuple[AuditRow, ...]
    models: tuple[str, ...]
    items: int
    best: str
    judge_best: str
    top: float
    behind: float
    prices: tuple[float, float]

    def table(self) -> NotedTable:
        """A rich table that fits 80 columns; it also prints itself as text."""
        table = NotedTable(box=None, padding=(0, 1, 0, 0))
        fill(table, self.rows, REPLAYED)
        table.note = self._note()
        return table

    def _note(self) -> str:
        full = len(self.models) * self.items
        right = (
            "which is right"
            if self.judge_best == self.best
            else f"{self.behind:.3g} below the best, {self.best}"
        )
        return (
            f"{len(self.models)} systems x {self.items:,} items, {self.rows[0].seeds} seeds, delta "
            f"{self.rows[0].delta:g}; labelling everything takes {full:,} labels. A judge's score "
            f"costs {self.prices[0]:g}, a label {self.prices[1]:g}. correct: the system named (winner, else "
            f"leader) has the best mean reference; top: within {self.top:g} of it. "
            f"The judge alone, on all items, names {self.judge_best}: {right}."
        )
