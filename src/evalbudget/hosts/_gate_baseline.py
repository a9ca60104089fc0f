"""The baseline of a gate: an arm whose scores are there, and cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalbudget.backtest import TaskName
from evalbudget.comparisons import GateConfig
from evalbudget.races import KnownCell


@dataclass(frozen=True)
class BaselineArm:
    """What a gate compares with; it is the first arm, asked or not.

    Attributes:
        model: whose scores they are.
        items: ids of the candidate's items to compare on, in their order.
        categories: of these; None where they are not clustered.
        known: its scores.
        repeats: answers of each item.
        notes: what its log says beside its scores.
    """

    model: str
    items: list[str]
    categories: tuple[str, ...] | None
    known: list[KnownCell]
    repeats: int
    notes: tuple[str, ...]


def baseline_of(
    config: GateConfig,
    series: Sequence[str],
    task: TaskName | None,
    items: Sequence[str],
    *,
    told: bool = False,
) -> BaselineArm:
    """Read the baseline, for the items that the candidate could be asked.

    Args:
        config: names the baseline.
        series: names of the score that decides, as readers of the host's logs may have it.
        task: of the candidate, as they name it; None where it is several.
        items: that the candidate could be asked.
        told: the task says which scores are better, so that the log need not.

    Raises:
        EvalbudgetError: it cannot be read, is of another task, or shares no item.
    """
    found = config.read_baseline(series)
    found.check_task(task)
    found = found.within(config.bounds)
    compared = config.compared(found, items)
    repeats = config.repeats_for(found, len(compared))
    known = [
        KnownCell((item, epoch + 1), found.scores[item], attempts=0)
        for item in compared
        if item in found.scores
        for epoch in range(repeats)
    ]
    notes = found.notes if told else found.told
    return BaselineArm(found.name, compared, config.clusters(found, compared), known, repeats, notes)
