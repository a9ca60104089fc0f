"""The task's own scorers, but scores carry epoch and judge, results our metrics; judges may take turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from inspect_ai._util.registry import (
    registry_info,
    registry_params,
    set_registry_info,
    set_registry_params,
)
from inspect_ai.scorer import Metric, Score, Scorer, Target
from inspect_ai.scorer._scorer import SCORER_METRICS, unique_scorer_name
from inspect_ai.solver import TaskState
from inspect_ai.util import RegistryInfo

METADATA = "evalbudget"
"""Key of our entries in a host's metadata."""

MetricList = list[Metric | dict[str, list[Metric]]]
BeforeScoring = Callable[[TaskState], Awaitable[bool]]


class JudgeSeat(AbstractContextManager[Any], Protocol):
    """Entered while a scorer runs: the judge it finds under its role."""

    def entry(self) -> dict[str, Any]:
        """For the score's metadata."""
        ...


FindSeat = Callable[[TaskState], Awaitable[JudgeSeat | None]]


def scorer_names(scorers: Sequence[Scorer]) -> list[str]:
    """The names the host will give these scorers in its log."""
    names: list[str] = []
    for scorer in scorers:
        names.append(unique_scorer_name(scorer, names))
    return names


def with_metrics(
    base: Scorer,
    metric: Metric | None,
    *,
    metadata: dict[str, Any],
    before: BeforeScoring,
    seat: FindSeat | None = None,
) -> Scorer:
    """The same scorer under the same name, with one more metric.

    Args:
        base: the task's scorer; it is not changed.
        metric: appended to its metrics; None for none.
        metadata: added to what the host logs about the scorer.
        before: awaited with the state about to be scored; False if it is not to be scored at all.
        seat: finds the judge of the state about to be scored; None where judges do not take turns.
    """

    async def score(state: TaskState, target: Target) -> Score | None:
        if not await before(state):
            return None
        judge = None if seat is None else await seat(state)
        with nullcontext() if judge is None else judge:
            result = await base(state, target)
        if result is None:
            return None
        entry = {"epoch": state.epoch} | ({} if judge is None else judge.entry())
        ours = {**(result.metadata or {}), METADATA: entry}
        return result.model_copy(update={"metadata": ours})

    info = registry_info(base)
    set_registry_info(
        score,
        RegistryInfo(
            type=info.type,
            name=info.name,
            metadata={
                **info.metadata,
                SCORER_METRICS: info.metadata[SCORER_METRICS]
                if metric is None
                else _append(info.metadata[SCORER_METRICS], metric),
                METADATA: metadata,
            },
        ),
    )
    set_registry_params(score, registry_params(base))
    return score


def _append(metrics: MetricList | dict[str, list[Metric]], metric: Metric) -> Any:
    """Where the task's metrics are by key of a dict score, ours is too."""
    if isinstance(metrics, dict):
        return {key: [*group, metric] for key, group in metrics.items()}
    grouped: MetricList = [_append(m, metric) if isinstance(m, dict) else m for m in metrics]
    if any(not isinstance(m, dict) for m in metrics) or not metrics:
        grouped.append(metric)
    return grouped
