"""One generation per item, scored again and again (``--repeat judge``)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import anyio
from inspect_ai.log import EvalSample, resolve_sample_attachments
from inspect_ai.model import ChatMessage, ModelOutput
from inspect_ai.solver import TaskState

from evalbudget_inspect.host.not_run import is_refused
from evalbudget_inspect.host.private import Choices

_PATIENCE = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Kept:
    """What a scorer may look at, as the solvers left it."""

    messages: list[ChatMessage]
    output: ModelOutput
    store: dict[str, Any]
    metadata: dict[str, Any]
    choices: Choices

    @classmethod
    def of(cls, state: TaskState) -> Kept:
        """As the solvers left it."""
        kept = cls(state.messages, state.output, dict(state.store.items()), state.metadata, state.choices)
        return deepcopy(kept)

    @classmethod
    def logged(cls, sample: EvalSample) -> Kept:
        """As a log has it, which does not say how choices were shuffled and marked."""
        whole = resolve_sample_attachments(sample, "full")
        return cls(whole.messages, whole.output, dict(whole.store), dict(whole.metadata), Choices([]))

    def restore(self, state: TaskState) -> None:
        """Put the generation into another epoch's state and skip its solvers."""
        state.messages = deepcopy(self.messages)
        state.output = deepcopy(self.output)
        state.metadata = deepcopy(self.metadata)
        state.choices = deepcopy(self.choices)  # shuffled, and marked by the solver
        for key, value in self.store.items():
            state.store.set(key, deepcopy(value))
        state.completed = True


class KeptGenerations:
    """Single flight per item: whoever comes first generates, all others wait for it and score its answer.

    A generation that fails passes the turn on, so nobody waits for an epoch that will not come.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._flights: dict[str, tuple[int, anyio.Event]] = {}
        self._expected: dict[str, set[int]] = {}
        self._arrived = anyio.Event()
        self._answered: set[tuple[str, int]] = set()

    def expect(self, item: str, epoch: int) -> None:
        """The host will hand over this finished epoch of an earlier attempt's log, see :meth:`adopt`."""
        self._expected.setdefault(item, set()).add(epoch)

    async def enter(self, state: TaskState) -> None:
        """Called before the solvers: restores the kept generation, or lets this epoch generate."""
        item = str(state.sample_id)
        await self._handed_over(item, state.epoch)
        while True:
            kept = self._kept.get(item)
            if kept is not None:
                kept.restore(state)
                self._answered.add((item, state.epoch))
                return
            flight = self._flights.get(item)
            if flight is None or flight[0] == state.epoch:
                self._flights[item] = (state.epoch, anyio.Event())
                return
            await flight[1].wait()

    def keep(self, state: TaskState) -> bool:
        """Called before scoring: keeps what this epoch generated.

        Returns:
            Whether there is an answer to score: not if the epoch's time ran out while it waited for another
            one to generate.
        """
        item = str(state.sample_id)
        flight = self._flights.get(item)
        if flight is not None and flight[0] == state.epoch:
            self._kept.setdefault(item, Kept.of(state))
            self._answered.add((item, state.epoch))
            self._land(item)
        return (item, state.epoch) in self._answered

    def leave(self, state: TaskState) -> None:
        """Called when an epoch is over, whatever became of it: wakes whoever waits."""
        item = str(state.sample_id)
        self._answered.discard((item, state.epoch))
        flight = self._flights.get(item)
        if flight is not None and flight[0] == state.epoch:
            self._land(item)

    def _land(self, item: str) -> None:
        self._flights.pop(item)[1].set()

    async def _handed_over(self, item: str, epoch: int) -> None:
        expected = self._expected.get(item, set())
        expected.discard(epoch)  # it runs, so the host did not take it over: an operator invalidated it
        # a scanner may hold the hand-over up until this very sample is done: rather generate again than hang
        with anyio.move_on_after(_PATIENCE):
            while expected and item not in self._kept:
                await self._arrived.wait()

    def adopt(self, sample: EvalSample) -> None:
        """Keep the generation of a finished epoch from an earlier attempt's log.

        Not of multiple choice: the log does not say how the solver shuffled and marked the choices.
        """
        item = str(sample.id)
        self._expected.get(item, set()).discard(sample.epoch)
        self._arrived.set()
        self._arrived = anyio.Event()
        if item in self._kept or sample.error is not None or sample.choices or is_refused(sample.metadata):
            return
        self._kept[item] = Kept.logged(sample)
