"""The baseline of a gate: an arm whose scores are there, and cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from evalbudget.backtest import TaskName
from evalbudget.comparisons import GateConfig
from evalbudget.races import KnownCell
from evalbudget_lm_eval.arms.compared import Compared


@dataclass(frozen=True)
class BaselineArm:
    """What a gate compares with; it is the first arm, asked or not.

    Attributes:
        name: to go by.
        items: documents compared.
        categories: of these; None where they are not clustered.
        known: its scores.
        repeats: answers of each document.
        notes: what its log says beside its scores.
    """

    name: str
    items: list[str]
    categories: tuple[str, ...] | None
    known: list[KnownCell]
    repeats: int
    notes: tuple[str, ...]


def baseline_of(config: GateConfig, compared: Compared, metric: str) -> BaselineArm:
    """Read the baseline, for the documents that the candidate could be asked.

    Args:
        config: names the baseline.
        compared: what the candidate could be asked.
        metric: that decides, ``metric,filter``.

    Raises:
        EvalbudgetError: it cannot be read, is of another task, or shares no document.
    """
    found = config.read_baseline([metric, metric.partition(",")[0]])
    found.check_task(_task(compared))
    found = found.within(config.bounds)
    items = config.compared(found, list(compared.items))
    repeats = config.repeats_for(found, len(items))
    known = [
        KnownCell((item, epoch + 1), found.scores[item], attempts=0)
        for item in items
        if item in found.scores
        for epoch in range(repeats)
    ]
    notes = found.notes if compared.lower_is_better is not None else found.told
    return BaselineArm(f"baseline {found.name}", items, config.clusters(found, items), known, repeats, notes)


def _task(compared: Compared) -> TaskName | None:
    """As the reader of logs names it; None for a group."""
    if compared.is_group:
        return None
    ((name, task),) = compared.tasks.items()
    return TaskName(name, None if task.VERSION is None else str(task.VERSION))
