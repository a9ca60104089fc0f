"""What it takes to prove which model is best, by evaluations or labels: plans as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalbudget.audits.backtest._plan import AuditPlan, plan_audit
from evalbudget.plans._result import Plans, table_of
from evalbudget.races.backtest._plan import RacePlan, plan_race
from evalbudget.recorded._direction import notes_of
from evalbudget.recorded._scores import RecordedScores

_AS_IN_THE_PILOT = (
    "on items like the pilot's: median, and most, over 40 benchmarks drawn from it. Chance makes models look "
    "further apart in a pilot than they are: count on the larger number where several are close."
)


def plan_contest(
    pilot: RecordedScores,
    samplers: Sequence[str],
    *,
    rater: str | None,
    label_price: float | None,
    **options: Any,
) -> Plans:
    """Evaluations, or labels where these have a price, until the best of the pilot's models is proved.

    Args:
        pilot: its scores.
        samplers: to plan with; empty for the usual ones.
        rater: whose scores decide.
        label_price: in scores of the judge; None for a race.
        options: of :func:`~evalbudget.races.backtest._plan.plan_race`, and of its like for audits.
    """
    one = pilot.select(rater=rater)
    plans: Sequence[RacePlan] | Sequence[AuditPlan]
    if label_price is None:
        plans = plan_race(one, samplers or ("race",), **options)
        caption = f"Until the best is proved, {_AS_IN_THE_PILOT}"
    else:
        policies = samplers or ("audit-eprocess", "human-only")
        plans = plan_audit(one, policies, label_price=label_price, **options)
        cost = f"Cost in scores of the judge; a label costs {label_price:g}."
        caption = f"Until the verdict, {_AS_IN_THE_PILOT} {cost}"
    document = {"plans": [asdict(plan) for plan in plans], "notes": list(notes_of(one))}
    return Plans(document, (table_of(plans, caption),))
