"""What scores a task's own metric functions give, found out before anything is asked."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.driving_metric import applies_to_some, driving_score, filters_of, is_mean
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks

log = shown_logger(__name__)

_SURE, _UNLIKELY = (-0.1, True), (-1.0, False)
"""What a model says of a text that was given to it."""
_DOCUMENTS = 8


def names_its_own(task: Any, wanted: str | None = None) -> bool:
    """Whether only a score tells what scores there are: functions may return several, under other names.

    Args:
        task: the host's.
        wanted: a score that the user named, which the task's own code may give without declaring it.
    """
    declared = wanted is None or wanted.partition(",")[0].strip() in task.aggregation()
    return bool(_functions(task)) or not (declared or task.config.process_results is None)


def names_in_trial(primed: PrimedTasks, name: str) -> tuple[str, ...]:
    """The host's keys ``metric,filter`` of two answers to a document, its target and nothing; for no call.

    Args:
        primed: the tasks, of which nothing was asked yet.
        name: of one.

    Returns:
        The keys; none where the task cannot score the target.
    """
    asked = Asked(name, primed.documents(name)[0], 0)
    try:
        found = dict.fromkeys(_of_target(primed, asked))
    except Exception as ex:  # the task's own
        log.info("task %s could not score its own target: %s", name, ex)
        return ()
    with suppress(Exception):  # what is said may have to be something
        found |= dict.fromkeys(_tried(primed, asked, "", _UNLIKELY))
    return tuple(found)


def scores_targets(primed: PrimedTasks, name: str, key: str) -> bool:
    """Whether a task has this score for the target of one of its first documents, as an answer; for no call.

    True where the metric need not apply to a document.
    """
    for document in primed.documents(name)[:_DOCUMENTS]:
        with suppress(Exception):  # the task's own
            if not math.isnan(_of_target(primed, Asked(name, document, 0)).get(key, math.nan)):
                return True
    return applies_to_some(primed.task(name), key.partition(",")[0])


def _of_target(primed: PrimedTasks, asked: Asked) -> Mapping[str, float]:
    target = str(primed.task(asked.task).doc_to_target(primed.doc(asked.task, asked.doc_id)))
    return _tried(primed, asked, target, _SURE)


def _tried(primed: PrimedTasks, asked: Asked, text: str, likely: tuple[float, bool]) -> Mapping[str, float]:
    said: dict[int, list[Any]] = {}
    for number, instance in enumerate(primed.instances(asked.task, asked.doc_id)):
        given = {"generate_until": text, "loglikelihood_rolling": likely[0]}
        said[number] = [given.get(instance.request_type, likely)] * (instance.repeats or 1)
    nowhere = io.StringIO()
    # what a task prints is of its answers; what it warns of once is not used up
    with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
        (answer,) = primed.replay({asked: said})
    primed.forget(answer)
    return answer.metrics


def score_in_trial(primed: PrimedTasks, name: str, wanted: str | None) -> str:
    """The key of the score that drives, of a task that :func:`names_its_own`.

    Args:
        primed: the tasks, of which nothing was asked yet.
        name: of one.
        wanted: as for :func:`~evalbudget_lm_eval.host.driving_metric.driving_score`; None for the first.

    Raises:
        UnknownNameError: there is no such score.
        InvalidInputError: it is the name of a function that returns others.
    """
    task = primed.task(name)
    declared, functions = set(task.aggregation()), _functions(task)
    found = names_in_trial(primed, name)
    metric = None if wanted is None else wanted.partition(",")[0].strip()
    if metric is not None and metric not in declared:
        return _chosen(name, task, str(wanted), found)
    key = driving_score(name, task, wanted)
    metric = key.partition(",")[0]
    others = functions | {each for each, how in task.aggregation().items() if not is_mean(how)}
    own = [each for each in found if each.partition(",")[0] not in others]
    if metric not in functions or key in found or not own:
        return key
    if wanted is None:
        return own[0]
    raise InvalidInputError(
        f"{metric!r} of task {name!r} is a function that returns {' and '.join(own)}; use --score {own[0]}"
    )


def _functions(task: Any) -> set[str]:
    """Names of the metrics that are functions of the task's own."""
    metrics = (entry.get("metric") for entry in getattr(task.config, "metric_list", None) or ())
    return {str(getattr(metric, "__name__", metric)) for metric in metrics if callable(metric)}


def _chosen(name: str, task: Any, wanted: str, found: Sequence[str]) -> str:
    metric, _, chosen = (part.strip() for part in wanted.partition(","))
    key = f"{metric},{chosen or filters_of(task)[0]}"
    if key in found:
        return key
    names = dict.fromkeys([*task.aggregation(), *(each.partition(",")[0] for each in found)])
    if metric in names:
        raise UnknownNameError(f"filter of task {name!r}", chosen, filters_of(task))
    raise UnknownNameError(f"score of task {name!r}", metric, names)
