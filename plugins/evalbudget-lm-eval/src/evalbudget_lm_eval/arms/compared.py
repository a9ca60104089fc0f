"""What arms are compared on: a task, or all tasks of a group of the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lm_eval.tasks import TaskManager

from evalbudget.backtest import TaskName
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.arms.metric import choose_metric, lower_is_better
from evalbudget_lm_eval.arms.one_task import documents_of, load

Document = tuple[str, int]
"""A task's name and a document's id."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Tasks and their documents; every document weighs the same, as in the host's groups.

    Attributes:
        name: of the task or the group.
        spec: by which the host loads it.
        tasks: the host's objects by name.
        documents: ids that every arm is asked, by task.
        metrics: the host's ``metric,filter`` that decides, by task.
    """

    name: str
    spec: Any
    tasks: Mapping[str, Any]
    documents: Mapping[str, tuple[int, ...]]
    metrics: Mapping[str, str]

    @classmethod
    def of(
        cls,
        manager: TaskManager,
        spec: Any,
        wanted: str | None,
        host: Mapping[str, Any],
    ) -> Compared:
        """From what the user named.

        Args:
            manager: the host's.
            spec: as its ``load`` takes it.
            wanted: the score that decides, ``metric`` or ``metric,filter``; None if there is but one.
            host: options of ``simple_evaluate``.

        Raises:
            InvalidInputError: it cannot be loaded, has no score to compare by, or is a group that weighs its
                tasks, and not their documents, alike.
            UnknownNameError: no such task, or no such score.
        """
        found = load(manager, spec)
        tasks, groups = found["tasks"], found.get("groups") or {}
        name = str(spec) if len(tasks) > 1 and isinstance(spec, str) else "+".join(map(str, tasks))
        metrics = {
            str(task): choose_metric(task, each, wanted, is_tried=True) for task, each in tasks.items()
        }
        if len(set(metrics.values())) > 1:
            (first, one), (other, another) = _two_that_differ(metrics)
            raise InvalidInputError(
                f"{name!r} has tasks with different scores ({one} of {first!r}, {another} of {other!r}), "
                "whose mean says nothing; choose one that all have with --score, or race one of the tasks"
            )
        for group in groups.values():
            for aggregated in group.aggregate_metric_list or ():
                decides = any(metric.partition(",")[0] == aggregated.metric for metric in metrics.values())
                if decides and not aggregated.weight_by_size:
                    raise InvalidInputError(
                        f"group {group.name!r} weighs its tasks alike (weight_by_size: false), and a race "
                        "goes by documents, which weigh the same; race one of its tasks"
                    )
        documents = {str(task): documents_of(str(task), each, host) for task, each in tasks.items()}
        return cls(name, spec, {str(task): each for task, each in tasks.items()}, documents, metrics)

    @property
    def lower_is_better(self) -> bool | None:
        """Of the score that decides, as the tasks say; None where they say nothing, or not the same."""
        told = {lower_is_better(task, self.metrics[name]) for name, task in self.tasks.items()}
        return told.pop() if len(told) == 1 else None

    @property
    def as_logged(self) -> TaskName | None:
        """As the reader of logs names the task; None for a group."""
        if self.is_group:
            return None
        ((name, task),) = self.tasks.items()
        return TaskName(name, None if task.VERSION is None else str(task.VERSION))

    @property
    def is_group(self) -> bool:
        """Whether it is several tasks."""
        return len(self.tasks) > 1

    @cached_property
    def items(self) -> Mapping[str, Document]:
        """Documents by their names in a race: the id, and where there are several tasks ``task/id``."""
        return {
            self.item(task, doc_id): (task, doc_id) for task, own in self.documents.items() for doc_id in own
        }

    def item(self, task: str, doc_id: int) -> str:
        """The name of a document in a race."""
        return f"{task}/{doc_id}" if self.is_group else str(doc_id)


def _two_that_differ(metrics: Mapping[str, str]) -> tuple[tuple[str, str], tuple[str, str]]:
    first = next(iter(metrics.items()))
    return first, next(each for each in metrics.items() if each[1] != first[1])
