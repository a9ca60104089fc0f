"""One task whose requests are built once; a round of copies is served through attributes of the object."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import Task

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.answers import Answered, Asked, RunningTask, asked_now, task_now
from evalbudget_lm_eval.host.private import get_sample_size

Besides = Callable[[Instance], Mapping[str, object]]


at_home: ContextVar[Callable[[Callable[[], Any]], Any] | None] = ContextVar("at_home", default=None)
"""In a thread that waits for a model: has something done in the thread that began; None in that one.

There a task's own code runs. Tasks of the host time answers out by SIGALRM, which only the main thread may
set; elsewhere some of them take the refusal for a wrong answer (minerva_math). Others keep something between
two calls.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """One request of a round.

    Attributes:
        instance: the host's.
        asked: who asked for it.
        number: which of the document's requests it is.
    """

    instance: Instance
    asked: Asked
    number: int

    @property
    def repeats(self) -> int:
        """How often the host has it answered."""
        return self.instance.repeats or 1


@dataclass(slots=True, eq=False)
class ServedTask:
    """One of the host's tasks.

    Attributes:
        task: the host's object.
        requests: by document, as the host built them.
        docs: by document.
        all_docs: the host's data set.
        cost: calls of the model one answer takes, by document.
        answers: what came back so far, by document.
        running: for its filters.
    """

    task: Task
    requests: dict[int, list[Instance]]
    docs: dict[int, Any]
    all_docs: Any
    cost: dict[int, int]
    answers: dict[int, list[Answered]] = field(default_factory=dict)
    _all_instances: list[Instance] = field(default_factory=list)
    _before: dict[str, Any] = field(default_factory=dict)
    _served: tuple[str, ...] = ()
    running: RunningTask = field(init=False)

    def __post_init__(self) -> None:
        self._all_instances = self.task.instances
        self.running = RunningTask(self.docs)

    def of_another(self, task: Task) -> ServedTask:
        """The same requests for another object of the same task."""
        task._instances = self._all_instances
        return ServedTask(task, self.requests, self.docs, task.eval_docs, self.cost)

    def fresh(self, asked: Sequence[Asked], besides: Besides) -> list[Sent]:
        """The requests of a round of these documents; see :meth:`serve`."""
        return [
            Sent(_fresh(original, position, besides(original)), one, number)
            for position, one in enumerate(asked)
            for number, original in enumerate(self.requests[one.doc_id])
        ]

    def serve(self, asked: Sequence[Asked], besides: Besides) -> list[Sent]:
        """Make the task offer a round of these documents and no others, until :meth:`restore`.

        Args:
            asked: the round; its order is kept.
            besides: what the gen_kwargs of a request have to have besides, by the request.
        """
        task, sent = self.task, self.fresh(asked, besides)
        instances = [one.instance for one in sent]
        owners = tuple(one.asked for one in sent)
        documents = [self.docs[one.doc_id] for one in asked]
        filters, process_results = task.apply_filters, task.process_results

        def build_all_requests(**_: object) -> None:
            task._instances = instances

        def doc_iterator(**_: object) -> Iterator[tuple[int, Any]]:
            return iter(enumerate(documents))

        def filtered() -> Any:
            owner, running = asked_now.set(owners), task_now.set(self.running)
            try:
                with self.running.judging():
                    found = filters()
                _check_filtered(task, instances)
                return found
            finally:
                task_now.reset(running)
                asked_now.reset(owner)

        served = {
            "build_all_requests": build_all_requests,
            "doc_iterator": doc_iterator,
            "aggregation": _NoAggregation,
            "apply_filters": partial(_at_home, filtered),
            "process_results": partial(_at_home, process_results),
            "dump_config": dict,
            # the host asks for the number of documents each time, which may process the data set anew
            "has_test_docs": lambda: True,
            "test_docs": lambda: self.all_docs,
        }
        self._before = {name: vars(task)[name] for name in served if name in vars(task)}
        self._served = tuple(served)
        for name, attribute in served.items():
            setattr(task, name, attribute)
        return sent

    def restore(self) -> None:
        """Leave the task as a stock run would have left it."""
        for name in self._served:
            vars(self.task).pop(name, None)
        vars(self.task).update(self._before)
        self._before, self._served = {}, ()
        self.task._instances = self._all_instances


def most_documents(name: str, task: Task, limit: float | None) -> int | None:
    """How many of a task's documents the host's ``--limit`` leaves; None for all.

    Raises:
        InvalidInputError: none.
    """
    found: int | None = get_sample_size(task, limit)
    if found is not None and found < 1:
        raise InvalidInputError(
            f"--limit {limit:g} leaves no document of task {name!r}; give how many, or a share from 0 to 1"
        )
    return found


def _check_filtered(task: Task, instances: Sequence[Instance]) -> None:
    """Refuse what a filter left out: the host hands the rest to the first documents, whosever it is.

    Raises:
        ValueError: a filter returned less than it was given; the caller asks documents one by one.
    """
    for filters in task._filters:
        there = sum(filters.name in instance.filtered_resps for instance in instances)
        if there < len(instances):
            raise ValueError(
                f"filter {filters.name!r} of task {task.config.task!r} returned {there} of {len(instances)} "
                "answers; a filter must return one for each, in their order"
            )


class _NoAggregation(dict[str, Any]):
    """Rounds are not aggregated: the host's own aggregation runs once, at the end."""

    def __getitem__(self, metric: str) -> Any:
        return _nothing


def _nothing(values: object) -> float:
    return 0.0


def _fresh(original: Instance, position: int, more: Mapping[str, object]) -> Instance:
    instance = copy.copy(original)
    instance.resps, instance.filtered_resps = [], {}
    instance.doc_id = position
    # models take keys out of these dicts
    arguments = [dict(a) if type(a) is dict else a for a in original.args]
    if more:
        arguments[1] = {**arguments[1], **more}
    instance.arguments = tuple(arguments)
    return instance


def _at_home(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a function returns that is called in the thread that began, and sees what this one sees."""
    do = at_home.get()
    if do is None:
        return function(*given, **named)
    here = copy_context()
    here.run(at_home.set, None)
    return do(partial(here.run, function, *given, **named))
