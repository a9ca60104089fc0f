"""Whose turn it is, for scorers that ask several judges by themselves: in a run, or where a log is scored."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from zipfile import BadZipFile

import anyio
import numpy as np
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries_async
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState

from evalbudget.errors import InvalidInputError
from evalbudget.judges import Call, PanelRows
from evalbudget.judges.schedules import Dealer
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.current_run import Run, current_run
from evalbudget_inspect.host.host_frames import held_by_caller
from evalbudget_inspect.host.readings import readings_of
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.judges.dealing import Turn
from evalbudget_inspect.judges.panel import Panel
from evalbudget_inspect.judges.panel_report import panel_asked_for, panel_report

logger = shown_logger(__name__)

_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile)


@dataclass(frozen=True, slots=True)
class Cells:
    """What is to be scored.

    Attributes:
        items: sample ids, in an order that does not depend on when they arrive.
        epochs: of each item, ascending.
        categories: by item, where there are any.
        model: whose answers they are.
    """

    items: Sequence[str]
    epochs: Mapping[str, Sequence[int]]
    categories: Mapping[str, str]
    model: str

    @classmethod
    def of_run(cls, run: Run) -> Cells:
        """Of a running task: every sample in every epoch."""
        items = [str(i) for i in run.spec.dataset.sample_ids or []]
        epochs = range(1, (run.spec.config.epochs or 1) + 1)
        return cls(items, dict.fromkeys(items, epochs), run.categories, run.spec.model)

    @classmethod
    async def of_log(cls, log: EvalLog) -> Cells:
        """Of a finished log: the samples that stand in it; the header's, if they cannot be read yet."""
        samples: Sequence[Any] = log.samples or []
        if not samples and log.location:  # it is streamed
            with suppress(*_UNREADABLE):
                samples = await read_eval_log_sample_summaries_async(log.location)
        header = [str(i) for i in log.eval.dataset.sample_ids or []]
        if not samples:
            planned = range(1, (log.eval.config.epochs or 1) + 1)
            return cls(header, dict.fromkeys(header, planned), {}, log.eval.model)
        epochs: dict[str, list[int]] = {}
        categories: dict[str, str] = {}
        for sample in samples:
            epochs.setdefault(str(sample.id), []).append(sample.epoch)
            if "category" in (sample.metadata or {}):
                categories[str(sample.id)] = str(sample.metadata["category"])
        order = {item: i for i, item in enumerate(header)}
        items = sorted(epochs, key=lambda item: (order.get(item, len(order)), item))
        return cls(items, {item: sorted(epochs[item]) for item in items}, categories, log.eval.model)


@dataclass
class Pass:
    """One run, or one log being scored: who scores which cell, and what became of it.

    Args:
        panel: the judges.
        seed: of the rotation.
        cells: what is to be scored.
        clustered: items are not independent of each other.
    """

    panel: Panel
    seed: int
    cells: Cells
    clustered: bool = False
    attempts: list[int] = field(init=False)
    """Calls of each judge, failed ones included."""
    _values: dict[tuple[str, int, int], float] = field(default_factory=dict)
    _ill: set[str] = field(default_factory=set)
    _arrived: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        items, epochs = self.cells.items, self.cells.epochs
        self.attempts = [0] * len(self.panel.judges)
        self._index = {item: i for i, item in enumerate(items)}
        self._ordinal = {item: {epoch: n for n, epoch in enumerate(epochs[item])} for item in items}
        self._dealer: Dealer | None = None
        if items:
            schedule = self.panel.schedule(
                items,
                categories=[self.cells.categories.get(item, "") for item in items],
                epochs=max(len(epochs[item]) for item in items),
                seed=self.seed,
            )
            self._dealer = Dealer(schedule)
        itself = self.panel.judging_itself(self.cells.model)
        self._itself = [itself] if itself else []
        for note in self.notes:
            logger.warning(note)

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know."""
        return [*(self._dealer.schedule.notes if self._dealer is not None else ()), *self._itself]

    def judges(self, item: str, epoch: int, category: str) -> tuple[int, ...]:
        """Who scores this cell; epochs as the host counts them."""
        if self._dealer is None or item not in self._index:
            return self._by_arrival(item, epoch, category)
        place = (self._index[item], self._ordinal[item].get(epoch, max(epoch - 1, 0)))
        if not any((item, epoch, judge) in self._values for judge in range(len(self.panel.judges))):
            self._dealer.deal_again(*place)
        return self._dealer.judges(*place)

    def tell(self, item: str, epoch: int, judge: int, value: float) -> None:
        """A judge's reading of a cell, nan if it failed; a cell read again keeps its last reading."""
        self.attempts[judge] += 1
        self._values[item, epoch, judge] = value
        dropped = None if self._dealer is None else self._dealer.note(judge, scored=not np.isnan(value))
        if dropped is not None:
            logger.warning(dropped)

    def bear(self, judge: str, error: Exception) -> None:
        """Say once per judge that its calls fail, where that does not end the scoring."""
        if judge not in self._ill:
            self._ill.add(judge)
            logger.warning(
                "judge %r failed (%r); what it fails to score is left out and counted in the log",
                judge,
                error,
            )

    def report(self) -> dict[str, Any]:
        """For the log."""
        index: dict[str, int] = {}
        calls = [
            Call(index.setdefault(item, len(index)), epoch - 1, judge, value)
            for (item, epoch, judge), value in self._values.items()
        ]
        pass_or_fail = {call.score for call in calls if not math.isnan(call.score)} == {0.0, 1.0}
        found = PanelRows(
            calls,
            self.panel.judges,
            weighs_judges=self.panel.weighs_judges,
            bounds=(0.0, 1.0) if pass_or_fail else None,
            asks_again=False,
        )
        worst = None if self.clustered else found.mean.at_worst
        return {
            **panel_report(self.panel, found, self.attempts, notes=self.notes),
            **({} if worst is None else {"at_worst": [worst.low, worst.high], "missing": found.missing}),
        }

    def _by_arrival(self, item: str, epoch: int, category: str) -> tuple[int, ...]:
        """In blocks of every judge once, permuted: where nobody knows what else is to be scored."""
        seen = self._arrived.setdefault(category, {})
        number = seen.setdefault((item, epoch), len(seen))
        size = len(self.panel.judges) * (1 if self.panel.prices is None else 10)
        block = [str(i) for i in range(size)]
        seed = int(np.random.default_rng([self.seed, 4, number // size]).integers(2**31))
        rotation = self.panel.schedule(block, seed=seed if self.panel.rotation != "single" else self.seed)
        return rotation.judges_for(number % size)


class Turns:
    """Deals the judges of one scorer, in every run and log it scores.

    Args:
        panel: the judges.
        name: of the scorer in logs.
        seed: of the rotation.
    """

    def __init__(self, panel: Panel, *, name: str, seed: int = 0) -> None:
        self.panel = replace(panel, owner=self)
        self.seed = seed
        self._name = name
        self.clustered = False
        """Whether the scorers declare clusters of items."""
        self._passes: dict[object, Pass] = {}
        self._locks: dict[object, anyio.Lock] = {}

    async def next(self, state: TaskState) -> tuple[Pass | None, tuple[int, ...]]:
        """Who scores this state, and the pass to tell; no pass where a budget deals and counts."""
        given = Turn.of(self)
        if given is not None:
            return None, (given,)
        run, log = current_run.get(), held_by_caller(EvalLog)
        key = _key(run, log)
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._passes:
                self._passes[key] = await self._begin(run, log)
                if run is None and log is not None:
                    weakref.finalize(log, self._forget, key)
        current = self._passes[key]
        category = str((state.metadata or {}).get("category", ""))
        return current, current.judges(str(state.sample_id), state.epoch, category)

    @property
    def current(self) -> Pass | None:
        """The pass in whose context this is called; None if nothing was scored yet."""
        run = current_run.get()
        return self._passes.get(_key(run, None if run is not None else held_by_caller(EvalLog)))

    def told(self) -> dict[str, Any]:
        """What the judges of the pass in whose context this is called did so far; nothing before it began."""
        current = self.current
        return {} if current is None else {"panel": current.report()}

    def asked_for(self) -> dict[str, Any]:
        """What the user asked for."""
        return {**panel_asked_for(self.panel), "seed": self.seed}

    async def _begin(self, run: Run | None, log: EvalLog | None) -> Pass:
        if run is not None:
            found = Pass(self.panel, self.seed, Cells.of_run(run), self.clustered)
            await self._take_over(found, run)
            return found
        cells = Cells([], {}, {}, "") if log is None else await Cells.of_log(log)
        return Pass(self.panel, self.seed, cells, self.clustered)

    async def _take_over(self, found: Pass, run: Run) -> None:
        """What an earlier attempt of this run already read: the host has put it into the log."""
        if not run.log_location:
            return
        with suppress(*_UNREADABLE):
            for summary in await read_eval_log_sample_summaries_async(run.log_location):
                score = (summary.scores or {}).get(self._name)
                if score is not None:
                    for judge, value in read_by(score, self.panel.judges).items():
                        found.tell(str(summary.id), summary.epoch, judge, value)

    def _forget(self, key: object) -> None:
        self._passes.pop(key, None)
        self._locks.pop(key, None)


def read_by(score: Score, judges: Sequence[str]) -> dict[int, float]:
    """Readings in a score, by position of the judge; nan where a reading failed."""
    entry = (score.metadata or {}).get(METADATA)
    readings = readings_of(entry, number_of(score)) if isinstance(entry, Mapping) else {}
    return {judges.index(name): read for name, read in readings.items() if name in judges}


def number_of(score: Score) -> float:
    """Its value; nan if it is unscored, or several values."""
    try:
        return score_to_float(score, "scorer", strict=True)
    except InvalidInputError:
        return float("nan")


def _key(run: Run | None, log: EvalLog | None) -> object:
    return run.spec.eval_id if run is not None else None if log is None else id(log)
