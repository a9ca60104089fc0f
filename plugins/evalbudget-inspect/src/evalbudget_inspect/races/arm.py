"""An arm of a race, and the group of tasks that race each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field

import anyio
from inspect_ai import enqueue_sample
from inspect_ai.dataset import Sample

from evalbudget.races import KnownCell, RaceConfig
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.private import get_eval_state
from evalbudget_inspect.repeats.resume import Key


@dataclass(frozen=True)
class Group:
    """Tasks that race each other when one run has them.

    Attributes:
        task: name of the task that all of them are versions of.
        labels: of each task of the group, by task name; empty where models alone race.
        config: what the user asked for.
        score: the scorer that decides, and its key if its scores are dicts.
        arguments: whatever else must be the same, for example the task's file.
    """

    task: str
    labels: Mapping[str, str]
    config: RaceConfig
    score: tuple[str, str | None]
    arguments: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Task names of the group."""
        return tuple(self.labels)

    @property
    def series(self) -> str:
        """The score that decides, as readers of logs name it."""
        name, key = self.score
        return name if key is None else f"{name}.{key}"

    @property
    def key(self) -> str:
        """What two tasks must share to be of one group."""
        return repr((sorted(self.labels.items()), self.config, self.score, self.arguments))


@dataclass
class Arm:
    """One task of the race, running with one model.

    Attributes:
        run: of inspect.
        label: of the setting; empty where models alone race.
        pool: the samples it may be asked, by id.
        known: what earlier attempts of its task answered.
        models: that its calls are known to ask.
        context: the task's, in which samples can be added to it.
        wake: set when there is something to do for its feeder.
        index: among the race's arms; -1 before it begins.
        waiting: its feeder waits, so that nothing of it is running.
        replayed: known cells that the host has not handed over yet.
    """

    run: Run
    label: str
    pool: Mapping[str, Sample]
    known: list[KnownCell]
    models: Sequence[str] = ()
    context: Context = field(default_factory=copy_context)
    wake: anyio.Event = field(default_factory=anyio.Event)
    index: int = -1
    waiting: bool = False
    given: bool = False
    replayed: set[Key] = field(default_factory=set)

    @property
    def identity(self) -> tuple[str, str]:
        """Setting and model."""
        return self.label, self.run.spec.model

    def give(self, key: Key) -> None:
        """Have the host run a cell."""
        self.context.run(enqueue_sample, self.pool[key[0]].model_copy(deep=True), epoch=key[1])
        self.given = True
        self.wake.set()

    def failed_before(self, key: Key) -> bool:
        """Whether a known cell has no score."""
        return any(cell.key == key and cell.value is None for cell in self.known)

    @property
    def is_over(self) -> bool:
        """Whether its task has ended."""
        state = get_eval_state(self.run.spec.eval_id)
        return state is None or state.completed_at is not None
