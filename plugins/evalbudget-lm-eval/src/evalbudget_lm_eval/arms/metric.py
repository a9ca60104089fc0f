"""Which number of the host models are compared by."""

from __future__ import annotations

from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.driving_metric import applies_to_some, driving_score, filters_of, is_mean


def lower_is_better(task: Any, score: str) -> bool | None:
    """Whether the task says so of a score, the host's ``metric,filter``; None if it says nothing."""
    higher = dict(task.higher_is_better() or {}).get(score.partition(",")[0])
    return None if higher is None else not higher


def refuse_lower(name: str, task: Any, score: str) -> None:
    """Refuse to take the highest for the best where the task says that lower is better.

    Args:
        name: of the task.
        task: the host's object.
        score: the host's ``metric,filter``.

    Raises:
        InvalidInputError: it does.
    """
    if lower_is_better(task, score):
        raise InvalidInputError(
            f"task {name!r} says that lower {score.partition(',')[0]} is better, and here the highest is "
            "taken for the best; choose another score, or of several tasks one"
        )


def choose_metric(name: str, task: Any, wanted: str | None, flag: str = "--score") -> str:
    """The metric to compare by, as the host's ``metric,filter``.

    Args:
        name: of the task.
        task: the host's object.
        wanted: ``metric`` or ``metric,filter``; None if there is but one.
        flag: by which the user says so.

    Raises:
        InvalidInputError: there is none to compare by; or several, and none was chosen; or the one chosen is
            no mean of one number per document.
        UnknownNameError: the task has no such metric.
    """
    filters = filters_of(task)
    usable = [m for m, how in task.aggregation().items() if is_mean(how)]
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
    if wanted is not None and "," not in wanted and len(filters) > 1:
        raise InvalidInputError(
            f"task {name!r} has {len(filters)} filters of {metric!r}; choose one: "
            f"{', '.join(f'{flag} {metric},{each}' for each in filters)}"
        )
    return f"{metric},{chosen}"
