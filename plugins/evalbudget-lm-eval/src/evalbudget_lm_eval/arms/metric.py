"""Which number of the host models are compared by."""

from __future__ import annotations

from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.driving_metric import applies_to_some, driving_score, filters_of, is_mean


def choose_metric(name: str, task: Any, wanted: str | None, flag: str = "--score") -> str:
    """The metric to compare by, as the host's ``metric,filter``.

    Args:
        name: of the task.
        task: the host's object.
        wanted: ``metric`` or ``metric,filter``; None if there is but one.
        flag: by which the user says so.

    Raises:
        InvalidInputError: there is none to compare by; or several, and none was chosen; or the one chosen is
            no mean of one number per document, or the smaller the better.
        UnknownNameError: the task has no such metric.
    """
    higher: dict[str, Any] = dict(task.higher_is_better() or {})
    filters = filters_of(task)
    usable = [m for m, how in task.aggregation().items() if is_mean(how) and higher.get(m, True)]
    usable.sort(key=lambda metric: applies_to_some(task, metric))  # those of every document first
    choices = [f"{metric},{each}" for metric in usable for each in filters]
    shown = ", ".join(choices) or "there is none"
    if wanted is None and len(choices) > 1:
        raise InvalidInputError(
            f"task {name!r} has {len(choices)} scores to compare by: {shown}; choose one, for example "
            f"{flag} {choices[0]}"
        )
    metric, _, chosen = driving_score(
        name, task, choices[0] if wanted is None and choices else wanted
    ).partition(",")
    if not higher.get(metric, True):
        raise InvalidInputError(
            f"of metric {metric!r} of task {name!r} smaller is better, and the best model is taken to have "
            f"the largest; choose another: {shown}"
        )
    if wanted is not None and "," not in wanted and len(filters) > 1:
        raise InvalidInputError(
            f"task {name!r} has {len(filters)} filters of {metric!r}; choose one: "
            f"{', '.join(f'{flag} {metric},{each}' for each in filters)}"
        )
    return f"{metric},{chosen}"
