"""What it takes to prove which model is best, by evaluations or labels: plans as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.text import Text

from evalbudget.audits.backtest._plan import AuditPlan, plan_audit
from evalbudget.plans._result import Plans
from evalbudget.races.backtest._plan import RacePlan, plan_race
from evalbudget.recorded._direction import notes_of
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._workers import Progress
from evalbudget.tables import PrintableTable

_AS_IN_THE_PILOT = (
    "on items like the pilot's: median, and most, over 40 benchmarks drawn from it. Chance makes models look "
    "further apart in a pilot than they are: count on the larger number where several are close."
)


def plan_races(
    recorded: RecordedScores,
    samplers: Sequence[str],
    items: int | None,
    rater: str | None,
    score_range: tuple[float, float] | None,
    progress: Progress,
) -> Plans:
    """:func:`evalbudget.races.backtest._plan.plan_race`."""
    recorded = recorded.select(rater=rater)
    plans = plan_race(
        recorded,
        samplers or ("race",),
        n_items=items,
        rater=rater,
        score_range=score_range,
        progress=progress,
    )
    table = _table(("", "evaluations", "at most", "proved before the end", "named is best"))
    for plan in plans:
        table.add_row(
            plan.sampler,
            f"{plan.evaluations:,}",
            f"{plan.evaluations_most:,}",
            f"{plan.proved:.0%}",
            f"{plan.best:.0%}",
        )
    table.caption = Text(f"Until the best is proved, {_AS_IN_THE_PILOT}")
    return _of(plans, table, recorded)


def plan_audits(
    recorded: RecordedScores,
    policies: Sequence[str],
    items: int | None,
    rater: str | None,
    score_range: tuple[float, float] | None,
    label_price: float,
    progress: Progress,
) -> Plans:
    """:func:`evalbudget.audits.backtest._plan.plan_audit`."""
    recorded = recorded.select(rater=rater)
    plans = plan_audit(
        recorded,
        policies or ("audit-eprocess", "human-only"),
        n_items=items,
        rater=rater,
        score_range=score_range,
        label_price=label_price,
        progress=progress,
    )
    table = _table(("", "labels", "at most", "cost", "at most", "decided", "named is best"))
    for plan in plans:
        table.add_row(
            plan.policy,
            f"{plan.labels:,}",
            f"{plan.labels_most:,}",
            f"{plan.cost:,}",
            f"{plan.cost_most:,}",
            f"{plan.decided:.0%}",
            f"{plan.right:.0%}",
        )
    table.caption = Text(
        f"Until the verdict, {_AS_IN_THE_PILOT} Cost in scores of the judge; a label costs {label_price:g}."
    )
    return _of(plans, table, recorded)


def _of(
    plans: Sequence[RacePlan] | Sequence[AuditPlan], table: PrintableTable, pilot: RecordedScores
) -> Plans:
    return Plans({"plans": [asdict(plan) for plan in plans], "notes": list(notes_of(pilot))}, (table,))


def _table(columns: Sequence[str]) -> PrintableTable:
    table = PrintableTable(box=None, caption_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table
