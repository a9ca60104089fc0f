"""What a log says of how its scores were bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.log import EvalLog, EvalSampleSummary

from evalbudget import Allocation
from evalbudget.backtest import Bought, HowBought
from evalbudget_inspect.host.scoring import METADATA, RACE_METRIC


def bought(header: EvalLog, samples: Sequence[EvalSampleSummary]) -> Bought:
    """Read it from our entry in the log's results.

    A log of ours without that entry was killed: all that is known then is that an item's first epoch was
    bought whatever its score. A log without our entries had its epochs planned, and so had one whose only
    entries are of scorers with judges that take turns.

    Of a race nothing may count for a plain mean: how many items a model was asked followed from its scores.
    """
    entries = entries_of(header)
    scored = [s for s in samples if s.scores and s.error is None]
    allocation, fixed = Allocation.FIXED, 0
    told = [entry for entry in entries if "allocation" in entry]
    planned = bool(entries) and not any("sampler" in entry for entry in entries)
    if told and scored:  # a log that taught nothing must not decide what counts of others
        allocation, fixed = Allocation(told[0]["allocation"]), int(told[0]["fixed_repeats"])
    elif is_race(header):
        allocation = Allocation.ADAPTIVE
    elif not planned and any(
        METADATA in (score.metadata or {}) for s in scored for score in (s.scores or {}).values()
    ):
        allocation, fixed = Allocation.ADAPTIVE, 1
    dollars = [usage.total_cost for s in samples for usage in (s.model_usage or {}).values()]
    purchase = HowBought(
        allocation,
        fixed,
        cost=float(sum(1 + (s.retries or 0) for s in samples)),
        usd=None if not dollars or None in dollars else float(sum(d for d in dollars if d is not None)),
    )
    return Bought(purchase, max((s.epoch for s in scored), default=0))


def is_race(header: EvalLog) -> bool:
    """Whether the log is of a model in a race, finished or not."""
    metrics = [name for scorer in header.eval.scorers or [] for name in metric_names(scorer.metrics)]
    return any(name.rsplit("/", 1)[-1] == RACE_METRIC for name in metrics)


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
