"""What a worker keeps of something shared: it repeats the steps of all workers, and adds its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from threading import RLock, get_ident
from typing import Any, TypeVar

from sqlalchemy import Connection

from evalbudget.errors import EvalbudgetError, ReplayError, StoreDownError, StoreError
from evalbudget.store._step_log import Step, StepLog

T = TypeVar("T")

_OF_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, EvalbudgetError, LookupError, RecursionError),
    *(TypeError, ValueError),
)
"""What repeating a step raises whose body is none; whatever else a plugin raises keeps its own type."""

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
        self._guard = RLock()  # one turn at a time; a cancelled host may leave a thread in one
        self._state = RLock()  # held while what is kept changes, and hardly ever for longer than that takes
        self._numbers = count(1)
        self._outbox: deque[tuple[int, Step, Callable[[], None]]] = deque()
        self._missed = 0
        self._is_away = False  # the store was, when it was wanted last
        self._repeater: int | None = None  # the thread in which a step is repeated
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

    def _after_turn(self) -> None:  # noqa: B027  # most have nothing to do
        """Once all of it is in the store."""

    def _step(self, step: Step) -> Any:
        """Do something of one's own; in a turn."""
        found = self._repeat(step)
        self._new.append(step)
        return found

    def _call(self, make: Callable[[int], Step | None]) -> Any:
        """Do something of one's own once, in a turn of its own, even if the end of that turn is not known.

        Args:
            make: the step, given its number, which it must have in its body as ``call``; None for nothing.
        """
        number = next(self._numbers)

        def act() -> Any:
            if number in self._done:
                return self._done[number]
            step = make(number)
            return None if step is None else self._step(step)

        return self._turn(act)

    def _later(self, make: Callable[[int], Step], then: Callable[[], None] = lambda: None) -> None:
        """The same in the next turn, whoever takes it, in the order in which it was said.

        Args:
            make: as in :meth:`_call`.
            then: called once it is in the store.
        """
        number = next(self._numbers)
        self._outbox.append((number, make(number), then))

    @property
    def _repeats(self) -> bool:
        """Whether what is called now is part of a step."""
        return self._repeater == get_ident()

    def _repeat(self, step: Step) -> Any:
        self._repeater = get_ident()
        try:
            found = self._apply(step)
        finally:
            self._repeater = None
        self._seen += 1
        if step.worker == self._log.worker and "call" in step.body:
            self._done[step.body["call"]] = found
        return found

    def _repeat_all(self, steps: Sequence[Step]) -> None:
        """What stands in the store, which its workers could do, and which somebody else may have written."""
        for step in steps:
            try:
                self._repeat(step)
            except (ReplayError, StoreError):
                raise
            except _OF_DAMAGE as ex:
                raise StoreError(
                    f"{self._log.address}: step {self._seen}, {step.kind}, cannot be repeated "
                    f"({type(ex).__name__}: {ex}). It is damaged, or a plugin of this process fails on it: "
                    "restore a copy, or go on where the plugin works"
                ) from ex

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
                self._catch_up()
                with self._log.turn() as connection:
                    entered, self._connection = True, connection
                    missed = self._log.missed(connection, self._seen)
                    with self._state:
                        self._repeat_all(missed)
                        self._before_turn(connection)
                        sent = self._hand_over()
                        found = act()
                    if self._new:
                        self._log.append(connection, self._new, self._seen - len(self._new))
                self._missed = max(self._missed, len(missed))
                self._new.clear()
                self._is_away = False
                with self._state:
                    for _ in range(sent):
                        self._outbox.popleft()[2]()
                    self._after_turn()
                return found
            except StoreDownError:
                # what was under way may be in the store or not: begin anew and look
                self._stale = True
                if not entered:
                    self._is_away = True
                    raise
            except BaseException:
                self._stale = True
                raise
            finally:
                self._connection = None

    def _catch_up(self) -> None:
        """Repeat most of what was missed while others may add more."""
        while self._stale or self._missed >= _MANY or not self._seen:
            steps = self._log.peek(0 if self._stale else self._seen)
            with self._state:
                if self._stale:
                    self._forget()
                    self._restart()
                self._repeat_all(steps)
            if len(steps) < _MANY:
                break

    def _hand_over(self) -> int:
        """Do what was left for this turn; how much that is."""
        left = tuple(self._outbox)
        for number, step, _ in left:
            if number not in self._done:
                self._step(step)
        return len(left)
