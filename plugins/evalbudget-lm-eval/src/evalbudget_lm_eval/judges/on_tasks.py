"""Has judges score tasks that were not written for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.patched import patched
from evalbudget_lm_eval.host.private import build_filter_ensemble
from evalbudget_lm_eval.judges.filter import CyclicJudgeFilter, check_judges, filter_of
from evalbudget_lm_eval.judges.readings import Judged, Readings
from evalbudget_lm_eval.judges.rows import NAME, judged, panel

FILTER = "panel"


def judged_by(
    options: Mapping[str, Any], tasks: Mapping[str, Any], *, scale: Sequence[float] | None = None
) -> AbstractContextManager[None]:
    """Within the block these judges score the tasks' answers, in place of the tasks' own metrics.

    A task with a ``CyclicJudgeFilter`` keeps its prompt, its scale and whatever else the options do not say.

    Args:
        options: of ``CyclicJudgeFilter``.
        tasks: the host's objects by name.
        scale: where neither the options nor the task have one.

    Raises:
        InvalidInputError: within it, a task does not generate answers, or a judge cannot be used.
    """
    return patched(_all_changes(options, tasks, scale))


def _all_changes(
    options: Mapping[str, Any], tasks: Mapping[str, Any], scale: Sequence[float] | None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    for name, task in tasks.items():
        if getattr(task, "OUTPUT_TYPE", None) != "generate_until":
            raise InvalidInputError(
                f"task {name!r} scores log-likelihoods ({getattr(task, 'OUTPUT_TYPE', '?')}), so there is no "
                "answer that judges could score; drop --judges, or the task"
            )
        own = filter_of(task)
        told = {**(own.keywords if own is not None else {}), **options}
        if scale is not None:
            told.setdefault("scale", list(scale))
        yield from _changes(task, told, own is not None)
        check_judges(task)


def _changes(
    task: Any, options: dict[str, Any], judges_already: bool
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What to set on the task and on its configuration, from which the host writes what it ran."""
    if judges_already:
        ensembles = [
            build_filter_ensemble(
                ensemble.name,
                [
                    [make.func, options if make.func is CyclicJudgeFilter else make.keywords]
                    if isinstance(make, partial)
                    else [make, {}]
                    for make in ensemble.filters
                ],
            )
            for ensemble in task._filters
        ]
        yield task, {"_filters": ensembles}
        listed = [
            {**entry, "filter": [_shown(step, options) for step in entry["filter"]]}
            for entry in task.config.filter_list or ()
        ]
        yield task.config, {"filter_list": listed or None}
        return
    ours = build_filter_ensemble(FILTER, [[CyclicJudgeFilter, options]])
    rows = _Rows({NAME: panel})
    yield (
        task,
        {
            "_filters": [ours],
            "multiple_target": 0,  # several targets are of no account: nothing is compared with them
            "process_results": _process,
            "aggregation": lambda: rows,
            "higher_is_better": lambda: {NAME: True},
        },
    )
    shown = _shown({"function": CyclicJudgeFilter}, options)
    yield (
        task.config,
        {
            "filter_list": [{"name": FILTER, "filter": [shown]}],
            "metric_list": [{"metric": NAME, "aggregation": "panel", "higher_is_better": True}],
            "process_results": None,
        },
    )


def _shown(step: Mapping[str, Any], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A step of a filter as the host writes it into results, which people publish."""
    if step.get("function") is not CyclicJudgeFilter:
        return step
    return {"function": "evalbudget_lm_eval.CyclicJudgeFilter", **options}


def _process(doc: object, results: Sequence[Readings]) -> dict[str, Judged]:
    """In place of the task's, whose metrics would compare what judges said with its targets."""
    return judged(predictions=results)


class _Rows(dict[str, Any]):
    """Every row of the metric has the one aggregation, each judge's bias included."""

    def __missing__(self, metric: str) -> Any:
        return panel
