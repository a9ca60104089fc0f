"""One generation per item, scored again and again (``--repeat judge``)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import anyio
from inspect_ai.log import EvalSample, resolve_sample_attachments
from inspect_ai.model import ChatMessage, ModelOutput
from inspect_ai.solver import TaskState

_PATIENCE = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Kept:
    """What a scorer may look at, as the solvers left it."""

    messages: list[ChatMessage]
    output: ModelOutput
    store: dict[str, Any]
    metadata: dict[str, Any]

    def restore(self, state: TaskState) -> None:
        """Put the generation into another epoch's state and skip its solvers."""
        state.messages = deepcopy(self.messages)
        state.output = deepcopy(self.output)
        state.metadata = deepcopy(self.metadata)
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
                return
            flight = self._flights.get(item)
            if flight is None or flight[0] == state.epoch:
                self._flights[item] = (state.epoch, anyio.Event())
                return
            await flight[1].wait()

    async def keep(self, state: TaskState) -> None:
        """Called before scoring: keeps what this epoch generated."""
        item = str(state.sample_id)
        if item not in self._kept:
            self._kept[item] = deepcopy(
                Kept(state.messages, state.output, dict(state.store.items()), state.metadata)
            )
        self.leave(state)

    def leave(self, state: TaskState) -> None:
        """Called when an epoch is over, whatever became of it: wakes whoever waits."""
        item = str(state.sample_id)
        flight = self._flights.get(item)
        if flight is not None and flight[0] == state.epoch:
            del self._flights[item]
            flight[1].set()

    async def _handed_over(self, item: str, epoch: int) -> None:
        expected = self._expected.get(item, set())
        expected.discard(epoch)  # it runs, so the host did not take it over: an operator invalidated it
        # a scanner may hold the hand-over up until this very sample is done: rather generate again than hang
        with anyio.move_on_after(_PATIENCE):
            while expected and item not in self._kept:
                await self._arrived.wait()

    def adopt(self, sample: EvalSample) -> None:
        """Keep the generation of a finished epoch from an earlier attempt's log."""
        item = str(sample.id)
        self._expected.get(item, set()).discard(sample.epoch)
        self._arrived.set()
        self._arrived = anyio.Event()
        if item in self._kept or sample.error is not None:
            return
        whole = resolve_sample_attachments(sample, "full")
        self._kept[item] = Kept(whole.messages, whole.output, dict(whole.store), dict(whole.metadata))
