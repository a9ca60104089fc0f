"""What is asked of the host's tasks, what comes back, and what the host makes of all of it."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from evalbudget.run import kept_name

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

Sample = dict[str, Any]
"""What the host writes into ``samples_*.jsonl`` for one answered document and one filter."""


PHASE = "phase"
"""Key, in a record, of the phase in which the reading was bought."""


SHARED = "shared"
"""Key, in our block of the results, of the processes that shared the budget, by the names they have there."""


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

    @property
    def document(self) -> tuple[str, int]:
        """Task and document."""
        return self.task, self.doc_id


def key_of(asked: Asked) -> str:
    """A cell as a bill names it."""
    return kept_name(f"{asked.task}:{asked.doc_id}:{asked.epoch}")


asked_now: ContextVar[tuple[Asked, ...] | None] = ContextVar("asked_now", default=None)
"""While a task's filters run: who asked for each of the responses they are given; None in a stock run."""


SCORED = -1
"""In place of a request's number, among responses that are kept: what a filter that asks others was told."""


class JudgesBill(Protocol):
    """Who pays for calls of judges."""

    def begins(self, asked: Asked, judge: str) -> None:
        """A judge behind a server is about to be asked about this."""

    def will_ask(self, calls: Iterable[tuple[Asked, Any, Instance]]) -> None:
        """These calls are to come: about what, the judge's model, and the request."""

    def asks(self, asked: Sequence[Asked]) -> None:
        """In the thread that asks: a judge is about to be asked about these, in this order."""

    def pays(self, calls: int) -> bool:
        """Pay for calls that brought no reply; False, and nothing paid, if they exceed what is left."""


@dataclass(slots=True, eq=False)
class RunningTask:
    """A task of a run in rounds, for its filters, which the host makes anew in every round.

    Attributes:
        docs: all documents of the run by id, in the host's order.
        memory: for whatever a filter wants to find again in the next round.
        known: what filters were told of these repeats in an attempt that broke off; not to be paid for again.
        keep: to be called with everything that a filter pays for, as text.
        bill: who pays for judges' calls that bring nothing; None if nobody counts them.
        judging: entered while the filters run.
        seeds_of: whose seeds filters send to the servers that they ask: others than those of another run.
    """

    docs: Mapping[int, Any]
    memory: dict[str, Any] = field(default_factory=dict)
    known: Mapping[Asked, Sequence[str]] = field(default_factory=dict)
    keep: Callable[[Asked, str], object] = lambda asked, text: None
    bill: JudgesBill | None = None
    judging: Callable[[], AbstractContextManager[None]] = nullcontext
    seeds_of: str = ""


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
        records: the host's sample records, one per filter, with the ``epoch``.
        asked: what was asked.
    """

    task: str
    doc_id: int
    epoch: int
    metrics: Mapping[str, float]
    requests: int
    records: tuple[Sample, ...]
    asked: Asked = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", Asked(self.task, self.doc_id, self.epoch))

    @classmethod
    def of(cls, asked: Asked, records: Iterable[Sample], requests: int) -> Answered:
        """From the host's records."""
        own = tuple([{**record, "epoch": asked.epoch} for record in records])
        return cls(*asked, metrics=numbers_of(own), requests=requests, records=own)


def numbers_of(records: Iterable[Sample]) -> dict[str, float]:
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


def raw_metrics(answers: Mapping[int, Sequence[Answered]]) -> dict[tuple[str, str], list[Any]]:
    """What the host aggregates: one value per document, metric and filter.

    Args:
        answers: of each document; at least one.
    """
    by_filter: dict[str, dict[tuple[str, str], list[Any]]] = {}
    for doc_id in sorted(answers):
        repeats = sorted(answers[doc_id], key=lambda answer: answer.epoch)
        for i, record in enumerate(repeats[0].records):
            raw = by_filter.setdefault(record["filter"], {})
            for metric in record["metrics"]:
                values = [r.records[i][metric] for r in repeats if metric in r.records[i]]
                there = [value for value in values if value is not None]
                merged: Any = there[0] if there else None
                if len(values) > 1 and hasattr(merged, "merged"):  # more than a number: judges' readings
                    merged = merged.merged(there)
                elif len(values) > 1 and there and all(map(is_number, there)):
                    merged = float(np.mean([float(v) for v in there]))
                raw.setdefault((metric, record["filter"]), []).append(merged)
    return {key: values for raw in by_filter.values() for key, values in raw.items()}


def logged(answers: Mapping[int, Sequence[Answered]]) -> list[Sample]:
    """Every record: filter by filter, as the host has them, then by document and repeat."""
    ordered = [a for doc_id in sorted(answers) for a in sorted(answers[doc_id], key=lambda a: a.epoch)]
    n_filters = max((len(answer.records) for answer in ordered), default=0)
    return [dict(a.records[i]) for i in range(n_filters) for a in ordered if i < len(a.records)]
