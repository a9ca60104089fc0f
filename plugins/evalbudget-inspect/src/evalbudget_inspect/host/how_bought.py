"""What a log says of how its scores were bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, EvalSampleSummary

from evalbudget import Allocation
from evalbudget.backtest import Bought, HowBought
from evalbudget_inspect.host.chosen_samples import chosen_samples
from evalbudget_inspect.host.scoring import METADATA, RACE_METRIC

BUDGET, RACE = "budget", "race"
"""Of the solvers that we put before a task's own: what their logs are of."""

ALLOCATION, FIXED_REPEATS = "allocation", "fixed_repeats"

JUDGE = "evalbudget_judge"
"""Key in a log's metadata: the scorer that was the judge of its audit."""
LOWER_IS_BETTER = "evalbudget_lower_is_better"
"""Key in a log's metadata: the audit is for the lowest scores of that judge."""

CHANGES = "changes"
"""What differs in the task since earlier attempts whose answers count, in sentences."""
ITEMS = "items"
"""Ids of the task's samples, where our source holds them back and the host does not know them."""


def paid_in_all(header: EvalLog) -> float | None:
    """Calls that a run of ours paid for, by its own account; None without one, or of several processes.

    Earlier attempts are in it, with what they lost, and samples that asked nothing are not.
    """
    for entry in entries_of(header):
        if "readings" in entry and "store" not in entry:
            return float(entry["readings"] + entry["failed"] if "unit" in entry else entry["spent"])
    return None


def bought(header: EvalLog, samples: Sequence[EvalSampleSummary], cost: float | None = None) -> Bought:
    """Read it from our entry in the log's results or, if they were scored again, in its plan.

    A log of ours without that entry was killed. Where repeats were bought in phases, each sample says in
    which, and the estimate is that of a run that ended there. Otherwise all that is known is that an item's
    first epoch was bought whatever its score. So it is where a task stops early by a rule of its own. Any
    other log had its epochs planned, and so had one whose only entries are of scorers with judges that take
    turns.

    Of a race nothing may count for a plain mean: how many items a model was asked followed from its scores.

    Args:
        header: of the log.
        samples: that were paid for.
        cost: what was paid; None: by these samples.
    """
    scored = [s for s in samples if s.scores]
    allocation, fixed = _allocation(header, scored)
    dollars = [usage.total_cost for s in samples for usage in (s.model_usage or {}).values()]
    purchase = HowBought(
        allocation,
        fixed,
        cost=float(sum(1 + (s.retries or 0) for s in samples)) if cost is None else cost,
        usd=None if not dollars or None in dollars else float(sum(d for d in dollars if d is not None)),
    )
    return Bought(purchase, max((s.epoch for s in scored), default=0))


def _allocation(header: EvalLog, scored: Sequence[EvalSampleSummary]) -> tuple[Allocation, int]:
    """Of the samples, and how many of an item's were bought whatever its scores."""
    entries = entries_of(header)
    if not scored:  # a log that taught nothing must not decide what counts of others
        return Allocation.FIXED, 0
    for entry in entries:
        if ALLOCATION in entry:
            return Allocation(entry[ALLOCATION]), int(entry[FIXED_REPEATS])
    if is_race(header):
        return Allocation.ADAPTIVE, 0
    told = step_of(header, BUDGET)
    if told is not None and ALLOCATION in told:
        allocation = Allocation(told[ALLOCATION])
        if header.status == "success" or allocation is Allocation.PHASED:
            return allocation, int(told[FIXED_REPEATS])
    if told is not None or stops_early(header):
        return Allocation.ADAPTIVE, 1
    planned = bool(entries) and not any("sampler" in entry for entry in entries)
    ours = any(METADATA in (score.metadata or {}) for s in scored for score in (s.scores or {}).values())
    return (Allocation.FIXED, 0) if planned or not ours else (Allocation.ADAPTIVE, 1)


def step_of(header: EvalLog, name: str) -> Mapping[str, Any] | None:
    """What our solver of that name says in the log's plan; None where it is not among the solvers."""
    for step in header.plan.steps:
        if step.solver.startswith("evalbudget_inspect/") and step.solver.rpartition("/")[2] == name:
            return step.params
    return None


def to_be_asked(header: EvalLog) -> list[str]:
    """Ids of the samples that were to be asked, or of which some were to be drawn; empty if nothing tells."""
    told = (step_of(header, BUDGET) or {}).get(ITEMS)
    if told is None:
        return [str(id_) for id_ in header.eval.dataset.sample_ids or ()]
    dataset = MemoryDataset([Sample(input="", id=id_) for id_ in told])
    return [str(sample.id) for sample in chosen_samples(dataset, header.eval.config, "other items")]


def stops_early(header: EvalLog) -> bool:
    """Whether the task has a rule of its own for when an item needs no further epoch."""
    return header.results is not None and header.results.early_stopping is not None


def is_race(header: EvalLog) -> bool:
    """Whether the log is of a model in a race or a gate, finished or not."""
    metrics = [name for scorer in header.eval.scorers or [] for name in metric_names(scorer.metrics)]
    raced = any(name.rsplit("/", 1)[-1] == RACE_METRIC for name in metrics)
    return raced or step_of(header, RACE) is not None


def metric_names(metrics: object) -> list[str]:
    """Names in what the log says of a scorer's metrics: a list, or lists by key."""
    if isinstance(metrics, Mapping):
        return [name for part in metrics.values() for name in metric_names(part)]
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        return [name for part in metrics for name in metric_names(part)]
    return [str(getattr(metrics, "name", ""))]


def entries_of(header: EvalLog) -> list[dict[str, Any]]:
    """Ours in a log's results."""
    scores = header.results.scores if header.results else []
    return [entry for s in scores if isinstance(entry := (s.metadata or {}).get(METADATA), dict)]
