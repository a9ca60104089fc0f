"""The seam: the host's own ``evaluate`` run in rounds on one live model, with prompts of a full run.

The host's ``samples=`` drops duplicates and mislabels ids that are not ascending, and rebuilding the
requests per round would draw other few-shot examples. So all requests are built once, by the host, and each
round serves copies of those that were asked, through attributes set on the task *objects*;
:meth:`PrimedTasks.restore` takes them off again.
"""

from __future__ import annotations

import copy
import logging
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.task import Task
from lm_eval.evaluator import evaluate as _evaluate
from lm_eval.evaluator_utils import _handle_back_comp, _process_results, get_sample_size, print_writeout

from evalbudget.errors import InvalidInputError, UnknownNameError

log = logging.getLogger(__name__)

Record = dict[str, Any]
"""What the host writes into ``samples_*.jsonl`` for one answered document and one filter."""

_HOST_LOG = logging.getLogger("lm_eval.evaluator")


class Asked(NamedTuple):
    """One document asked once.

    Attributes:
        task: name of the task.
        doc_id: the document, as in ``samples_*.jsonl``.
        epoch: ordinal of the repeat, from 0.
    """

    task: str
    doc_id: int
    epoch: int


asked_now: ContextVar[tuple[Asked, ...] | None] = ContextVar("asked_now", default=None)
"""While a task's filters run: who asked for each of the responses they are given; None in a stock run."""


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task of a run in rounds, for its filters, which the host makes anew in every round.

    Attributes:
        docs: all documents of the run by id, in the host's order.
        memory: for whatever a filter wants to find again in the next round.
    """

    docs: Mapping[int, Any]
    memory: dict[str, Any] = field(default_factory=dict)


task_now: ContextVar[RunningTask | None] = ContextVar("task_now", default=None)
"""While a task's filters run: the task they filter for; None in a stock run."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back for one document asked once.

    Attributes:
        task: name of the task.
        doc_id: the document.
        epoch: ordinal of the repeat, from 0.
        metrics: every metric that is a number, by the host's key ``metric,filter``.
        requests: how many calls of the model it took.
        records: the host's sample records, one per filter.
    """

    task: str
    doc_id: int
    epoch: int
    metrics: Mapping[str, float]
    requests: int
    records: tuple[Record, ...]


@dataclass(slots=True)
class _Primed:
    """One task with all its requests built."""

    task: Task
    requests: dict[int, list[Instance]]
    docs: dict[int, Any]
    all_docs: Any
    all_instances: list[Instance]
    cost: dict[int, int]
    running: RunningTask
    answers: dict[int, list[Answered]] = field(default_factory=dict)
    round: list[Asked] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    served: tuple[str, ...] = ()


class PrimedTasks:
    """One live model and the host's tasks, every request built once: prompts equal a full run's.

    Use it as a context manager, or call :meth:`restore` when done, whatever happened.

    Args:
        lm: the host's model object.
        tasks: what the host's ``TaskManager.load`` returned, or tasks by name.
        host_evaluate_kwargs: further arguments of the host's ``evaluate``.

    Raises:
        InvalidInputError: several processes share the model; or ``samples`` is unsorted, has duplicates, is
            empty, out of range, lacks a task, or is combined with the host's request cache.
    """

    def __init__(self, lm: Any, tasks: Mapping[Any, Any], **host_evaluate_kwargs: Any) -> None:
        if lm.world_size > 1:
            raise InvalidInputError(
                f"the model runs in {lm.world_size} processes, and a budget is kept by one; start lm-eval "
                "without accelerate or torchrun (one process; it may use several GPUs: parallelize=True)"
            )
        self.lm = lm
        self._host = dict(host_evaluate_kwargs)
        groups, found = _tasks_of(tasks)
        self._groups: Mapping[str, Any] = groups
        self._primed: dict[str, _Primed] = {}
        self._first_round = True
        samples = self._host.get("samples")
        if samples is not None:
            _check_samples(samples, found, cached=bool(self._host.get("cache_requests")))
        try:
            for name, task in found.items():
                self._primed[name] = self._prime(name, task, samples)
        except BaseException:
            self.restore()
            raise

    # what is there

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks, in the host's order."""
        return tuple(self._primed)

    def task(self, name: str) -> Task:
        """The host's task object."""
        return self._of(name).task

    def documents(self, task: str) -> tuple[int, ...]:
        """Ids of the documents in the host's order, after ``limit`` and ``samples``."""
        return tuple(self._of(task).requests)

    def cost(self, task: str, doc_id: int) -> int:
        """How many calls of the model one answer of this document takes."""
        return self._document(task, doc_id).cost[doc_id]

    def instances(self, task: str, doc_id: int) -> tuple[Instance, ...]:
        """The host's requests for this document."""
        return tuple(self._document(task, doc_id).requests[doc_id])

    # what happens

    def run(self, cells: Sequence[tuple[str, int]], *, epochs: Sequence[int] | None = None) -> list[Answered]:
        """One round through the host's own ``evaluate``.

        Args:
            cells: task and document, in any order; duplicates are repeats.
            epochs: ordinal of the repeat of each cell; by default how often the document was answered before.

        Returns:
            One answer per cell, in the order of ``cells``.

        Raises:
            UnknownNameError: no such task.
            InvalidInputError: no such document.
        """
        if not cells:
            return []
        asked = self._number(cells, epochs)
        answered = self._evaluate(self.lm, asked)
        self.adopt(answered)
        return answered

    def adopt(self, answers: Iterable[Answered]) -> None:
        """Count answers of an earlier run as this one's."""
        for answer in answers:
            self._document(answer.task, answer.doc_id).answers.setdefault(answer.doc_id, []).append(answer)

    def results(self) -> dict[str, Any]:
        """Everything answered so far, as the host's ``evaluate`` returns it.

        A document that was answered several times counts once, with the mean of its answers, so that the
        host's aggregations and its groups stay what they are. Metrics that are no numbers (the pairs of f1,
        bleu and the like) are those of the first answer. ``samples`` has every answer, with its ``epoch``.
        """
        accumulated: dict[str, Any] = {}
        for name, primed in self._primed.items():
            accumulated[name] = {
                "task": primed.task,
                "raw_metrics": _raw_metrics(primed.answers),
                "logged_samples": _logged(primed.answers),
            }
        result = _process_results(accumulated, self._groups, self._host.get("bootstrap_iters", 100000))
        samples = result.samples if self._host.get("log_samples", True) else None
        return dict(result._to_eval_results(samples=samples))

    def restore(self) -> None:
        """Leave the host's tasks as a stock run would have left them; may be called again."""
        for primed in self._primed.values():
            _restore(primed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    # how

    def _prime(self, name: str, task: Task, samples: Mapping[str, Sequence[int]] | None) -> _Primed:
        host, lm = self._host, self.lm
        chat = bool(host.get("apply_chat_template"))
        limit = get_sample_size(task, host.get("limit"))
        ids = None if samples is None else list(samples[name])
        task.build_all_requests(
            limit=limit,
            samples=ids,
            rank=lm.rank,
            world_size=lm.world_size,
            cache_requests=host.get("cache_requests", False),
            rewrite_requests_cache=host.get("rewrite_requests_cache", False),
            system_instruction=host.get("system_instruction"),
            apply_chat_template=chat,
            fewshot_as_multiturn=host.get("fewshot_as_multiturn", False),
            chat_template=getattr(lm, "apply_chat_template", None) if chat else None,
            tokenizer_name=getattr(lm, "tokenizer_name", "") if chat else "",
        )
        if host.get("write_out"):
            print_writeout(task)
        by_position: dict[int, list[Instance]] = {}
        for instance in task.instances:
            by_position.setdefault(instance.doc_id, []).append(instance)
        docs = task.doc_iterator(rank=lm.rank, limit=limit, world_size=lm.world_size, samples=ids)
        # with samples the host numbers the documents by their position among the chosen ones
        true_id = {position: ids[position] if ids else position for position in by_position}
        documents = {true_id[position]: doc for position, doc in docs if position in true_id}
        return _Primed(
            task,
            requests={true_id[position]: instances for position, instances in by_position.items()},
            docs=documents,
            all_docs=task.eval_docs,
            all_instances=task.instances,
            cost={
                true_id[position]: sum(instance.repeats or 1 for instance in instances)
                for position, instances in by_position.items()
            },
            running=RunningTask(documents),
        )

    def _number(self, cells: Sequence[tuple[str, int]], epochs: Sequence[int] | None) -> list[Asked]:
        if epochs is not None:
            return [Asked(*cell, epoch) for cell, epoch in zip(cells, epochs, strict=True)]
        seen: dict[tuple[str, int], int] = {}
        asked = []
        for task, doc_id in cells:
            before = len(self._document(task, doc_id).answers.get(doc_id, ()))
            epoch = seen.get((task, doc_id), before)
            seen[task, doc_id] = epoch + 1
            asked.append(Asked(task, doc_id, epoch))
        return asked

    def _evaluate(self, lm: Any, asked: Sequence[Asked]) -> list[Answered]:
        """The host's ``evaluate`` on these documents, answered by ``lm``."""
        chosen: dict[str, _Primed] = {}
        for one in asked:
            primed = self._document(one.task, one.doc_id)
            if one.task not in chosen:
                chosen[one.task] = primed
                primed.round = []
            primed.round.append(one)
        try:
            for primed in chosen.values():
                _serve(primed)
            with _quiet(enabled=not self._first_round):
                # samples only tells the host which id each document has
                found = _evaluate(
                    lm=lm,
                    task_dict={"tasks": {name: p.task for name, p in chosen.items()}, "groups": {}},
                    **{
                        **self._host,
                        "limit": None,
                        "samples": {name: [a.doc_id for a in p.round] for name, p in chosen.items()},
                        "bootstrap_iters": 0,
                        "write_out": False,
                        "log_samples": True,
                    },
                )
        finally:
            for primed in chosen.values():
                _restore(primed)
        self._first_round = False
        answers = {name: iter(_answers(p, found["samples"][name])) for name, p in chosen.items()}
        return [next(answers[one.task]) for one in asked]

    def _of(self, task: str) -> _Primed:
        if task not in self._primed:
            raise UnknownNameError("task", task, self._primed)
        return self._primed[task]

    def _document(self, task: str, doc_id: int) -> _Primed:
        primed = self._of(task)
        if doc_id not in primed.requests:
            raise InvalidInputError(
                f"task {task!r} has no document {doc_id} in this run; see documents({task!r})"
            )
        return primed


def _tasks_of(tasks: Mapping[Any, Any]) -> tuple[Mapping[str, Any], Mapping[str, Task]]:
    if "tasks" in tasks and not isinstance(tasks["tasks"], Task):
        return tasks.get("groups", {}), tasks["tasks"]
    groups, found = _handle_back_comp(dict(tasks))
    return groups, found


def _check_samples(samples: Mapping[str, Sequence[int]], tasks: Mapping[str, Any], *, cached: bool) -> None:
    if cached:
        raise InvalidInputError(
            "--samples with --cache_requests: the host would pair the cached prompts of the first documents "
            "with the documents chosen; drop --cache_requests"
        )
    for name, task in tasks.items():
        if name not in samples:
            raise InvalidInputError(
                f"--samples has no entry for task {name!r} (it has {', '.join(map(repr, samples))}), and the "
                f'host would run all its documents; add "{name}": [...] or drop the task'
            )
        ids = list(samples[name])
        if not ids:
            raise InvalidInputError(
                f"--samples chooses no document of task {name!r}, which the host takes for all of them; "
                "name at least one, or drop the task"
            )
        remedy = f'write "{name}": {sorted(set(ids))[:8]}'.replace(
            "]", ", ...]" if len(set(ids)) > 8 else "]"
        )
        if any(type(i) is not int or i < 0 for i in ids):
            raise InvalidInputError(f"--samples of task {name!r} has {ids[:8]}; write document ids from 0")
        shown = ", ".join(map(str, sorted(set(ids))[:8])) + (", ..." if len(set(ids)) > 8 else "")
        remedy = f'write "{name}": [{shown}]'
        if len(set(ids)) != len(ids):
            raise InvalidInputError(
                f"--samples names documents of task {name!r} twice, which the host would run once and count "
                f"wrong; {remedy}"
            )
        if ids != sorted(ids):
            raise InvalidInputError(
                f"--samples of task {name!r} is not ascending, and the host would put the scores to the "
                f"wrong documents; {remedy}"
            )
        n = len(task.eval_docs)
        if ids[-1] >= n:
            raise InvalidInputError(
                f"--samples of task {name!r} names document {ids[-1]}, but it has {n} (0..{n - 1})"
            )


# how a round is served: attributes of the task object that come before those of its class


class _NoAggregation(dict[str, Any]):
    """Rounds are not aggregated: the host's own aggregation runs once, at the end."""

    def __getitem__(self, metric: str) -> Any:
        return _nothing


def _nothing(values: object) -> float:
    return 0.0


def _serve(primed: _Primed) -> None:
    task = primed.task
    instances: list[Instance] = []
    owners: list[Asked] = []
    for position, asked in enumerate(primed.round):
        for original in primed.requests[asked.doc_id]:
            instances.append(_fresh(original, position))
            owners.append(asked)
    documents = [primed.docs[asked.doc_id] for asked in primed.round]
    filters = task.apply_filters

    def build_all_requests(**_: object) -> None:
        task._instances = instances

    def doc_iterator(**_: object) -> Iterator[tuple[int, Any]]:
        return iter(enumerate(documents))

    def apply_filters() -> Any:
        tokens = asked_now.set(tuple(owners)), task_now.set(primed.running)
        try:
            return filters()
        finally:
            asked_now.reset(tokens[0])
            task_now.reset(tokens[1])

    served = {
        "build_all_requests": build_all_requests,
        "doc_iterator": doc_iterator,
        "aggregation": _NoAggregation,
        "apply_filters": apply_filters,
        "dump_config": dict,
        # the host asks for the number of documents each time, which may process the data set anew
        "has_test_docs": lambda: True,
        "test_docs": lambda: primed.all_docs,
    }
    primed.before = {name: vars(task)[name] for name in served if name in vars(task)}
    primed.served = tuple(served)
    for name, attribute in served.items():
        setattr(task, name, attribute)


def _restore(primed: _Primed) -> None:
    for name in primed.served:
        vars(primed.task).pop(name, None)
    vars(primed.task).update(primed.before)
    primed.before, primed.served = {}, ()
    primed.task._instances = primed.all_instances


def _fresh(original: Instance, position: int) -> Instance:
    instance = copy.copy(original)
    instance.resps, instance.filtered_resps = [], {}
    instance.doc_id = position
    # models take keys out of these dicts
    instance.arguments = tuple(dict(a) if type(a) is dict else a for a in original.args)
    return instance


@contextmanager
def _quiet(*, enabled: bool) -> Iterator[None]:
    """The host says what it runs: once is enough."""
    before = _HOST_LOG.level
    if enabled:
        _HOST_LOG.setLevel(logging.WARNING)
    try:
        yield
    finally:
        _HOST_LOG.setLevel(before)


# what came back


def _answers(primed: _Primed, records: Sequence[Record]) -> list[Answered]:
    """The host's records, which come filter by filter in the order of the documents."""
    n = len(primed.round)
    answers = []
    for position, asked in enumerate(primed.round):
        own = tuple({**record, "epoch": asked.epoch} for record in records[position::n])
        answers.append(Answered(*asked, numbers_of(own), primed.cost[asked.doc_id], own))
    return answers


def numbers_of(records: Iterable[Record]) -> dict[str, float]:
    """The metrics in sample records that are numbers, by ``metric,filter``."""
    return {
        f"{metric},{record['filter']}": float(record[metric])
        for record in records
        for metric in record["metrics"]
        if is_number(record[metric])
    }


def is_number(value: object) -> bool:
    """Whether the host's aggregation would take this value for one number."""
    return isinstance(value, numbers.Real | np.bool_)


def _raw_metrics(answers: Mapping[int, list[Answered]]) -> dict[tuple[str, str], list[Any]]:
    """What the host aggregates: one value per document, metric and filter."""
    by_filter: dict[str, dict[tuple[str, str], list[Any]]] = {}
    for doc_id in sorted(answers):
        repeats = sorted(answers[doc_id], key=lambda a: a.epoch)
        for i, record in enumerate(repeats[0].records):
            raw = by_filter.setdefault(record["filter"], {})
            for metric in record["metrics"]:
                values = [r.records[i][metric] for r in repeats if metric in r.records[i]]
                merged = values[0]
                if len(values) > 1 and hasattr(merged, "merged"):  # it knows what its row needs
                    merged = merged.merged(values)
                elif len(values) > 1 and all(is_number(v) for v in values):
                    merged = float(np.mean([float(v) for v in values]))
                raw.setdefault((metric, record["filter"]), []).append(merged)
    return {key: values for raw in by_filter.values() for key, values in raw.items()}


def _logged(answers: Mapping[int, list[Answered]]) -> list[Record]:
    """Every record, filter by filter as the host has them, then by document and repeat."""
    ordered = [a for doc_id in sorted(answers) for a in sorted(answers[doc_id], key=lambda a: a.epoch)]
    n_filters = max((len(a.records) for a in ordered), default=0)
    return [dict(a.records[i]) for i in range(n_filters) for a in ordered if i < len(a.records)]
