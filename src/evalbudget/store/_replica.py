"""What a worker keeps of something shared: it repeats the steps of all workers, and adds its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import Connection

from evalbudget.errors import StoreDownError
from evalbudget.store._step_log import Step, StepLog

T = TypeVar("T")

_MANY = 16
"""Steps missed at some turn from which it pays to repeat most of them before the store is taken."""


class Replica(ABC):
    """Something that all workers change, each in its turn.

    An author writes :meth:`_apply` (what a step changes, whoever made it), :meth:`_restart` (as before the
    first step) and :meth:`_before_turn` (what is to be done once nothing is missed any more), and changes
    things with ``self._turn(lambda: self._step(step))`` alone.

    Args:
        log: of the steps.
    """

    def __init__(self, log: StepLog) -> None:
        self._log = log
        self._connection: Connection | None = None
        self._guard = RLock()  # a cancelled host may leave a thread in a turn
        self._own_calls = 0
        self._missed = 0
        self._repeats = False  # what is called now is part of a step
        self._forget()

    def _forget(self) -> None:
        self._seen = 0  # steps that were repeated
        self._new: list[Step] = []
        self._done: dict[int, Any] = {}  # own calls that are in the store, and what they gave
        self._stale = False

    @abstractmethod
    def _apply(self, step: Step) -> Any:
        """What a step changes, whoever made it."""

    @abstractmethod
    def _restart(self) -> None:
        """As before the first step."""

    @abstractmethod
    def _before_turn(self, connection: Connection) -> None:
        """With nothing missed, and nobody else at the store."""

    def _step(self, step: Step) -> Any:
        """Do something of one's own; in a turn."""
        found = self._repeat(step)
        self._new.append(step)
        return found

    def _call(self, make: Callable[[int], Step | None]) -> Any:
        """Do something of one's own once, in a turn of its own, even if the end of that turn is not known.

        Args:
            make: the step, given its number, which it must have in its body as ``call``; None to do nothing.
        """

        def once(number: int) -> Any:
            step = make(number)
            return None if step is None else self._step(step)

        with self._guard:
            self._own_calls += 1
            number = self._own_calls
            return self._turn(lambda: self._done[number] if number in self._done else once(number))

    def _repeat(self, step: Step) -> Any:
        self._repeats = True
        try:
            found = self._apply(step)
        finally:
            self._repeats = False
        self._seen += 1
        if step.worker == self._log.worker and "call" in step.body:
            self._done[step.body["call"]] = found
        return found

    def _turn(self, act: Callable[[], T]) -> T:
        """Do something while nobody else does; all of it is in the store when this returns.

        Raises:
            StoreDownError: the store cannot be reached; nothing was changed.
        """
        with self._guard:
            return act() if self._connection is not None else self._whole_turn(act)

    def _whole_turn(self, act: Callable[[], T]) -> T:
        while True:
            entered = False
            try:
                if self._stale:
                    self._forget()
                    self._restart()
                while (self._missed >= _MANY or not self._seen) and (steps := self._log.peek(self._seen)):
                    for step in steps:
                        self._repeat(step)
                    if len(steps) < _MANY:
                        break
                with self._log.turn() as connection:
                    entered, self._connection = True, connection
                    missed = self._log.missed(connection, self._seen)
                    for step in missed:
                        self._repeat(step)
                    self._before_turn(connection)
                    found = act()
                    if self._new:
                        self._log.append(connection, self._new, self._seen - len(self._new))
                self._missed = max(self._missed, len(missed))
                self._new.clear()
                return found
            except StoreDownError:
                # what was under way may be in the store or not: begin anew and look
                self._stale = True
                if not entered:
                    raise
            except BaseException:
                self._stale = True
                raise
            finally:
                self._connection = None
