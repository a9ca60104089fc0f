"""``evalbudget plan PILOT --race`` and ``--audit``: what it takes to prove which model is best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from evalbudget.cli.backtest._shared import progress
from evalbudget.scale import parse_range

if TYPE_CHECKING:
    from evalbudget.audits.backtest._plan import AuditPlan
    from evalbudget.races.backtest._plan import RacePlan
    from evalbudget.recorded._scores import RecordedScores

_AS_IN_THE_PILOT = (
    "on items like the pilot's: median, and most, over 40 benchmarks drawn from it. Chance makes models look "
    "further apart in a pilot than they are: count on the larger number where several are close."
)


def plan_races(
    recorded: RecordedScores,
    samplers: Sequence[str],
    items: int | None,
    rater: str | None,
    score_range: str | None,
) -> tuple[str, Table]:
    """:func:`evalbudget.races.backtest._plan.plan_race`, as JSON and as a table."""
    from evalbudget.races.backtest._plan import plan_race

    bounds = None if score_range is None else parse_range(score_range)
    with progress() as report:
        plans = plan_race(
            recorded,
            samplers or ("race",),
            n_items=items,
            rater=rater,
            score_range=bounds,
            progress=report,
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
    return _as_json(plans), table


def plan_audits(
    recorded: RecordedScores,
    policies: Sequence[str],
    items: int | None,
    rater: str | None,
    score_range: str | None,
    label_price: float,
) -> tuple[str, Table]:
    """:func:`evalbudget.audits.backtest._plan.plan_audit`, as JSON and as a table."""
    from evalbudget.audits.backtest._plan import plan_audit

    bounds = None if score_range is None else parse_range(score_range)
    with progress() as report:
        plans = plan_audit(
            recorded,
            policies or ("audit-eprocess", "human-only"),
            n_items=items,
            rater=rater,
            score_range=bounds,
            label_price=label_price,
            progress=report,
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
    return _as_json(plans), table


def _as_json(plans: Sequence[RacePlan] | Sequence[AuditPlan]) -> str:
    return json.dumps({"plans": [asdict(plan) for plan in plans]}, indent=2)


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=None, caption_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table
