"""What scores a task's own metric functions give, found out before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.driving_metric import driving_score, filters_of
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks

log = shown_logger(__name__)

_NOTHING: dict[str, Any] = {"generate_until": "", "loglikelihood_rolling": -1.0}
_UNLIKELY = (-1.0, False)
"""What a model says that has nothing to say, by the kind of request."""


def names_its_own(task: Any) -> bool:
    """Whether only a score tells what scores there are: functions may return several, under other names."""
    return any(callable(entry.get("metric")) for entry in getattr(task.config, "metric_list", None) or ())


def names_in_trial(primed: PrimedTasks, name: str) -> tuple[str, ...]:
    """The host's keys ``metric,filter`` of an answer that says nothing, to the first document; for no call.

    Args:
        primed: the tasks, of which nothing was asked yet.
        name: of one.

    Returns:
        The keys; none where the task cannot score such an answer.
    """
    asked = Asked(name, primed.documents(name)[0], 0)
    instances = primed.instances(name, asked.doc_id)
    said = {
        number: [_NOTHING.get(instance.request_type, _UNLIKELY)] * (instance.repeats or 1)
        for number, instance in enumerate(instances)
    }
    try:
        (answer,) = primed.replay({asked: said})
    except Exception as ex:  # the task's own: an answer that says something may do
        log.info("task %s could not score an empty answer: %s", name, ex)
        return ()
    finally:
        primed.keep_only(())
    return tuple(answer.metrics)


def score_in_trial(primed: PrimedTasks, name: str, wanted: str | None) -> str:
    """The key of the score that drives, of a task that :func:`names_its_own`.

    Args:
        primed: the tasks, of which nothing was asked yet.
        name: of one.
        wanted: as for :func:`~evalbudget_lm_eval.host.driving_metric.driving_score`; None for the first.

    Raises:
        UnknownNameError: there is no such score.
        InvalidInputError: it is no number.
    """
    task, found = primed.task(name), names_in_trial(primed, name)
    metric = None if wanted is None else wanted.partition(",")[0].strip()
    if metric is not None and metric not in task.aggregation():
        return _chosen(name, task, str(wanted), found)
    key = driving_score(name, task, wanted)
    if not found or key in found:
        return key
    if wanted is None:
        return found[0]
    raise InvalidInputError(
        f"{metric!r} of task {name!r} is no number, but {' and '.join(found)} are; use --score {found[0]}"
    )


def _chosen(name: str, task: Any, wanted: str, found: Sequence[str]) -> str:
    metric, _, chosen = (part.strip() for part in wanted.partition(","))
    key = f"{metric},{chosen or filters_of(task)[0]}"
    if key in found:
        return key
    names = dict.fromkeys([*task.aggregation(), *(each.partition(",")[0] for each in found)])
    if metric in names:
        raise UnknownNameError(f"filter of task {name!r}", chosen, filters_of(task))
    raise UnknownNameError(f"score of task {name!r}", metric, names)
