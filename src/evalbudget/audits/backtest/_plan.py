"""How many human labels until an audit's verdict, from a pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from evalbudget._fields import Shown
from evalbudget.audits.backtest._compare_policies import backtest_audits
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._workers import Progress
from evalbudget.replay._worlds import WORLDS, median_and_most, worlds

EVERYTHING = "label everything"


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit needs.

    Attributes:
        policy: its name, or everything labelled without a judge.
        labels: median over benchmarks that fit the pilot.
        labels_most: the most in any of them.
        cost: of judge and labels, in scores of the judge; median.
        cost_most: the most in any of them.
        decided: share of them that end with a verdict.
        right: share of them that name a best system.
    """

    policy: Annotated[str, Shown("")]
    labels: Annotated[int, Shown("labels", ",")]
    labels_most: Annotated[int, Shown("at most", ",")]
    cost: Annotated[int, Shown("cost", ",")]
    cost_most: Annotated[int, Shown("at most", ",")]
    decided: Annotated[float, Shown("decided", ".0%")]
    right: Annotated[float, Shown("named is best", ".0%")]


def plan_audit(
    pilot: RecordedScores,
    policies: Sequence[str] = ("audit-eprocess", "human-only"),
    *,
    n_items: int | None = None,
    rater: str | None = None,
    score_range: tuple[float, float] | None = None,
    judge_range: tuple[float, float] | None = None,
    label_price: float = 20.0,
    n_worlds: int = WORLDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[AuditPlan, ...]:
    """Labels and money until the best of these systems is proved, by replays of audits in resampled pilots.

    Args:
        pilot: judge scores of two systems or more, with human labels as its reference.
        policies: registered names.
        n_items: of the evaluation planned; None for the pilot's.
        rater: the judge; None for the mean of all raters.
        score_range: the smallest and the largest possible label; None for 0 and 1.
        judge_range: the same of the judge; None for that of the labels.
        label_price: in scores of the judge.
        n_worlds: resampled pilots.
        seed: of these and of the audits.
        progress: called with (resampled pilots done, in all).

    Returns:
        Everything labelled, then the policies in their order.

    Raises:
        InvalidInputError: a single system, no reference, or a score outside its range.
        InvalidInferenceError: too few items have a score and a label of every system.
        UnknownNameError: no such policy or rater.
    """
    pilot = pilot.select(rater=rater)
    n = len(pilot.items) if n_items is None else n_items
    every = len(pilot.models) * n
    found: dict[str, list[tuple[float, float, bool, bool]]] = {name: [] for name in policies}
    for number, world in enumerate(worlds(pilot, n, n_worlds=n_worlds, seed=seed)):
        result = backtest_audits(
            world,
            policies,
            seeds=[seed],
            score_range=score_range,
            judge_range=judge_range,
            prices=(1.0, label_price),
        )
        for row in result.rows:
            proved = row.decided == 1.0  # without a verdict, everything is left to label
            bought = (row.audits, row.cost) if proved else (float(every), max(row.cost, every * label_price))
            found[row.sampler].append((*bought, proved, row.correct == 1.0))
        if progress is not None:
            progress(number + 1, n_worlds)
    price = round(every * label_price)
    plans = [AuditPlan(EVERYTHING, every, every, price, price, 1.0, 1.0)]
    for name, own in found.items():
        labels, costs, decided, right = zip(*own, strict=True)
        plans.append(
            AuditPlan(
                name,
                *median_and_most(labels),
                *median_and_most(costs),
                sum(decided) / len(own),
                sum(right) / len(own),
            )
        )
    return tuple(plans)
