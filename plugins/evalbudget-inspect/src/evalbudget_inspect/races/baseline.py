"""The baseline of a gate: an arm whose scores are there, and cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
from inspect_ai.log import EvalSpec

from evalbudget.backtest import TaskName
from evalbudget.comparisons import GateConfig
from evalbudget.races import KnownCell

BASELINE = "baseline"
"""Its label among the arms."""


@dataclass(frozen=True)
class BaselineArm:
    """What a gate compares with.

    Attributes:
        identity: label and model.
        items: ids of the task's samples to compare on, in the task's order.
        categories: of these; None where they are not clustered.
        known: its scores.
        repeats: answers of each item.
        notes: what its log says beside its scores.
    """

    identity: tuple[str, str]
    items: list[str]
    categories: tuple[str, ...] | None
    known: list[KnownCell]
    repeats: int
    notes: tuple[str, ...]


async def read_baseline(config: GateConfig, series: str, spec: EvalSpec, items: Sequence[str]) -> BaselineArm:
    """Read it, for the samples that the candidate's task has.

    Args:
        config: names the baseline.
        series: the score that decides, as readers of logs name it.
        spec: of the candidate's task.
        items: ids of its samples.

    Raises:
        EvalbudgetError: it cannot be read, is of another task, or shares no sample.
    """
    found = await anyio.to_thread.run_sync(config.read_baseline, [series])
    found.check_task(task_of(spec))
    config.check_model(found.name)
    found = found.within(config.bounds)
    compared = config.compared(found, items)
    repeats = config.repeats_for(found, len(compared))
    known = [
        KnownCell((item, epoch + 1), found.scores[item], attempts=0)
        for item in compared
        if item in found.scores
        for epoch in range(repeats)
    ]
    clusters = config.clusters(found, compared)
    return BaselineArm((BASELINE, found.name), compared, clusters, known, repeats, found.told)


def task_of(spec: EvalSpec) -> TaskName:
    """As the reader of logs names it."""
    return TaskName(spec.task.rpartition("/")[2], str(spec.task_version))
