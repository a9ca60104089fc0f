"""Which of a task's metrics drives the sampler."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from lm_eval.api.metrics import mean

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval.host.aggregations import mean_by_code


def driving_score(name: str, task: Any, wanted: str | None) -> str:
    """The host's key ``metric,filter`` of the metric that drives the sampler.

    Args:
        name: of the task.
        task: the host's object.
        wanted: ``metric`` or ``metric,filter``; None for the first that can, and that applies to every
            document if there is one: of a metric averaged by ``nanmean`` some may have no score by design.

    Raises:
        UnknownNameError: the task has no such metric or filter.
        InvalidInputError: no metric, or not this one, has a number per document that is averaged; or several
            are wanted.
    """
    aggregations: dict[str, Any] = task.aggregation()
    filters = filters_of(task)
    if "bypass" in aggregations:
        raise InvalidInputError(
            f"--predict_only computes no scores of task {name!r}, so there is nothing to budget by; drop it"
        )
    averaged = [metric for metric, how in aggregations.items() if is_mean(how)]
    if wanted is None:
        if not averaged:
            raise InvalidInputError(
                f"task {name!r} has no metric that is a number per document and averaged "
                f"({_listed(aggregations)}), so repeats cannot be allocated by it; add one with "
                "aggregation: mean to its metric_list, or drop the task"
            )
        every = [metric for metric in averaged if not applies_to_some(task, metric)]
        return f"{(every or averaged)[0]},{filters[0]}"
    metric, _, chosen = (part.strip() for part in wanted.partition(","))
    if metric not in aggregations:
        raise UnknownNameError(f"score of task {name!r}", metric, aggregations)
    if chosen not in filters and ("," in chosen or chosen in aggregations):
        raise InvalidInputError(
            f"--score {wanted} names several scores of task {name!r}, and one of them decides; name that one"
        )
    if chosen and chosen not in filters:
        raise UnknownNameError(f"filter of task {name!r}", chosen, filters)
    if metric not in averaged:
        raise InvalidInputError(
            f"metric {metric!r} of task {name!r} is aggregated by {_name(aggregations[metric])}, not as the "
            "mean of one number per document, so an interval of the mean would be of something else; "
            + (f"use --score {averaged[0]}" if averaged else "add a metric with aggregation: mean")
        )
    return f"{metric},{chosen or filters[0]}"


def filters_of(task: Any) -> list[str]:
    """Names of a task's filters, in the host's order."""
    return [ensemble.name for ensemble in getattr(task, "_filters", ())] or ["none"]


def scores_per_answer(task: Any) -> int:
    """How many scores each answer gets: several where filters have it scored by several judges."""
    found = 1
    for ensemble in getattr(task, "_filters", ()):
        for make in ensemble.filters:
            count = getattr(getattr(make, "func", make), "scores_per_answer", None)
            if callable(count):
                found = max(found, int(count(**getattr(make, "keywords", {}))))
    return found


def is_mean(aggregation: Any) -> bool:
    """Whether this is the host's mean, does the same, or says that it averages (a panel's mean)."""
    return (
        aggregation is mean
        or getattr(aggregation, "averages", False)
        or _name(aggregation) in ("mean", "nanmean")
    )


def applies_to_some(task: Any, metric: str) -> bool:
    """Whether nan says that a metric does not apply to a document, and not that a score is missing."""
    return _name(task.aggregation().get(metric)) == "nanmean"


def _listed(aggregations: dict[str, Any]) -> str:
    return ", ".join(f"{metric}: {_name(how)}" for metric, how in aggregations.items()) or "it has none"


def _name(aggregation: Any) -> str:
    by_code = mean_by_code(aggregation) if isinstance(aggregation, FunctionType) else ""
    return by_code or str(getattr(aggregation, "__name__", aggregation))
