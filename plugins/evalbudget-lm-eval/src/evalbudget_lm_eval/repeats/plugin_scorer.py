"""Has a plugin's scorer score the host's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from lm_eval.api.metrics import mean

from evalbudget.errors import InvalidInputError
from evalbudget.hooks import plugins
from evalbudget_lm_eval.host.patched import patched
from evalbudget_lm_eval.host.private import build_filter_ensemble


def scored_by(name: str, tasks: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Within the block this scorer's score is the tasks' only metric.

    Args:
        name: of the scorer.
        tasks: the host's objects by name.

    Raises:
        InvalidInputError: within it, a task does not generate answers.
    """
    return patched(change for task_name, task in tasks.items() for change in _changes(name, task_name, task))


def _changes(name: str, task_name: str, task: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    if getattr(task, "OUTPUT_TYPE", None) != "generate_until":
        raise InvalidInputError(
            f"task {task_name!r} scores log-likelihoods, so there is no answer that --scorer {name} could "
            "score; drop it, or the task"
        )
    made = plugins().scorer(name)()

    def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
        item = {**doc, "input": str(task.doc_to_text(doc)), "target": _target(task, doc)}
        return {name: float(made.score(item, results[0]))}

    yield (
        task,
        {
            "_filters": [build_filter_ensemble("none", [["take_first", None]])],
            "process_results": process_results,
            "aggregation": lambda: {name: mean},
            "higher_is_better": lambda: {name: True},
            "multiple_target": 0,
        },
    )
    metric = {"metric": name, "aggregation": "mean", "higher_is_better": True}
    yield task.config, {"filter_list": None, "metric_list": [metric], "process_results": None}


def _target(task: Any, doc: Mapping[str, Any]) -> str:
    if task.config.doc_to_target is None:
        return ""
    target = task.doc_to_target(doc)
    if task.config.doc_to_choice is not None:  # then it is the number of the right one
        target = task.doc_to_choice(doc)[target]
    return "\n".join(map(str, target)) if isinstance(target, list) else str(target)
