"""Which number of the host models are compared by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval.host.driving_metric import applies_to_some, driving_score, filters_of, is_mean
from evalbudget_lm_eval.host.trial import names_its_own


def lower_is_better(task: Any, score: str) -> bool | None:
    """Whether the task says so of a score, the host's ``metric,filter``; None if it says nothing."""
    higher = dict(task.higher_is_better() or {}).get(score.partition(",")[0])
    return None if higher is None else not higher


def check_direction(tasks: Sequence[tuple[str, Any, str]], *, lower: bool) -> None:
    """Refuse to take scores for the best that a task says are the worst.

    Args:
        tasks: name, the host's object and the host's ``metric,filter`` of each.
        lower: the lowest is the best.

    Raises:
        InvalidInputError: a task says that it is not.
    """
    told = [lower_is_better(task, score) for _, task, score in tasks]
    for (name, task, score), says in zip(tasks, told, strict=True):
        if says is None or says == lower:
            continue
        ways = ("lower", "highest") if says else ("higher", "lowest")
        others = ", ".join(m for m in _averaged(task) if lower_is_better(task, m) in (lower, None))
        remedy = f"choose another score{others and f' ({others})'}, or of several tasks one"
        if lower and True not in told:
            remedy = f"--lower-is-better contradicts it: leave it out, or {remedy}"
        elif not lower and False not in told and None in told:
            remedy = f"give --lower-is-better if that is so of all, or {remedy}"
        raise InvalidInputError(
            f"task {name!r} says that {ways[0]} {score.partition(',')[0]} is better, and here the {ways[1]} "
            f"is taken for the best; {remedy}"
        )


def choose_metric(
    name: str, task: Any, wanted: str | None, flag: str = "--score", *, is_tried: bool = False
) -> str:
    """The metric to compare by, as the host's ``metric,filter``.

    Where none is wanted, one of which lower is better is taken only if there is no other.

    Args:
        name: of the task.
        task: the host's object.
        wanted: ``metric`` or ``metric,filter``; None if there is but one.
        flag: by which the user says so.
        is_tried: a first answer shows whether the task's own code gives what the task does not declare.

    Raises:
        InvalidInputError: there is none to compare by; or several, and none was chosen; or the one chosen is
            no mean of one number per document.
        UnknownNameError: the task has no such metric.
    """
    filters = filters_of(task)
    if is_tried and wanted is not None and (own := _of_its_code(task, wanted, filters)):
        return own
    usable = _averaged(task)
    usable.sort(key=lambda metric: applies_to_some(task, metric))  # those of every document first
    upward = [metric for metric in usable if not lower_is_better(task, metric)]
    choices = [f"{metric},{each}" for metric in upward or usable for each in filters]
    if wanted is None and len(choices) > 1:
        raise InvalidInputError(
            f"task {name!r} has {len(choices)} scores to compare by: {', '.join(choices)}; choose one, for "
            f"example {flag} {choices[0]}"
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


def _of_its_code(task: Any, wanted: str, filters: Sequence[str]) -> str:
    """A score that a task does not declare and that its code may give; empty if it is none."""
    metric, _, chosen = (part.strip() for part in wanted.partition(","))
    if metric in task.aggregation() or not names_its_own(task, wanted):
        return ""
    if chosen and chosen not in filters:
        raise UnknownNameError("filter", chosen, filters)
    return f"{metric},{chosen or filters[0]}"


def _averaged(task: Any) -> list[str]:
    return [metric for metric, how in task.aggregation().items() if is_mean(how)]
