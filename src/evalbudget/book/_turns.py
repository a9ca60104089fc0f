"""A worker's turns at a book: under its lock, knowing what others did, written in whole or not at all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import count
from threading import get_ident
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from evalbudget.book._adopted import Adopted
from evalbudget.book._copy import Copy
from evalbudget.book._others import asks, look
from evalbudget.book._turn import Claim, Till, Turn, texts_of
from evalbudget.book._workers import Workers
from evalbudget.cells import Planned, Stop, Wait
from evalbudget.design import Reading, Request
from evalbudget.errors import SamplerError, StoreDownError
from evalbudget.sampler import Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Database
from evalbudget.store._sql import Asked

T = TypeVar("T")

log = shown_logger(__name__)

_OF_DAMAGE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class Part(Protocol):
    """What stands beside a book in its store, and takes part in its turns."""

    def take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others did; anew, where nobody knows how far the last turn got."""

    def bury(self, turn: Turn, worker: int) -> None:
        """A worker is gone."""

    def write(self, turn: Turn) -> None:
        """At the end of a turn."""


class Turns:
    """What a worker knows of a book, what it has under way, and what it does next time it has the lock.

    Args:
        sampler: whose rounds they are.
        db: the book's.
        workers: this one among them.
        till: what may be spent.
        defers: what is told waits for the next turn.

    Attributes:
        sampler: whose rounds they are.
        where: the book is.
        spent: by calls that came back, and those that were lost, at their highest cost; as of the last turn.
    """

    def __init__(self, sampler: Sampler, db: Database, workers: Workers, till: Till, *, defers: bool) -> None:
        self.sampler, self.where = sampler, db.address
        self._db, self._workers, self._till, self._defers = db, workers, till, defers
        self._parts: list[Part] = []  # that take part in its turns
        self._mine: dict[int, Claim] = {}  # calls that this worker has
        self._lost: dict[int, Claim] = {}  # that an earlier one of its name had, and that count as lost
        self._adopted = Adopted()  # cells that the sampler did not plan yet
        self._untold: list[tuple[Claim, Reading]] = []  # what came back and is not in the book
        self.spent = 0.0
        self._is_sure = True  # whether what was written last is known to be written, or not to be
        self._is_stale = False  # whether the copy has what may not be in the book
        self._is_away = False  # whether the store was, when it was wanted last
        self._copy = Copy(sampler, self.where)
        self._guard = threading.RLock()
        """One turn at a time."""
        self._state = threading.RLock()
        """Held while what is known changes, and for no longer."""
        self._thread: int | None = None  # that takes a turn
        self._now: Turn
        self._asked: Asked
        self._later: deque[tuple[int, Callable[[Turn], object]]] = deque()
        self._numbers = count(workers.told + 1)
        self._why: str | None = None  # the sampler asks nothing more
        # rounds, passes, models withdrawn, and whether any call could be paid, when nothing could be planned
        self._planned_at: tuple[object, ...] = ()
        self._until = 0  # tries that must have come back before it is worth planning again
        self._looked_at: object = None

    # what the caller does

    def trade(self, came: Sequence[Reading], n: int | Callable[[int], int]) -> Sequence[Request]:
        """Take in what came back, and hand out up to n cells, as far as they can be paid.

        Args:
            came: answers to requests that this worker was given.
            n: how many it can work on; or how many of each model, below 0 for those that it does not ask,
                where rounds wait for all. Then the cells of other models stay paid for until somebody asks
                them, and those that cost nothing do not count.

        Returns:
            Requests. None, while :attr:`finished` is false, means wait for what is under way.

        Raises:
            StoreDownError: the book could not be reached; what came is kept for the next call.
            SamplerError: a reading of a request that this worker does not have, or a sampler that neither
                plans nor stops.
        """
        with self._guard:
            self.tell(came)
            found: dict[int, Claim] = {}
            try:
                while True:
                    found |= self._take(partial(Turn.claim, n=n, found=found, mine=self._mine))
                    self._is_sure = self._is_sure or bool(n)
                    has_enough = not callable(n) and len(found) >= n
                    if has_enough or not self._plan():
                        break
            except BaseException:
                self._is_sure = False  # what was claimed before is handed out by the next one
                raise
            self._mine |= found
            return [claim.request for claim in found.values()]

    def tell(self, came: Sequence[Reading]) -> None:
        """These came back; it is in the book after the next turn.

        Raises:
            SamplerError: one is of a request that this worker does not have.
        """
        with self._state:
            told = {reading.request.id for _, reading in self._untold}
            new = []
            for reading in came:
                call = reading.request.id
                claim = self._mine.get(call) or self._lost.get(call)
                if call in told or claim is None or claim.request != reading.request:
                    raise SamplerError(
                        f"a reading of request {call} ({reading.request.cell}), which this worker does not "
                        "have; tell each request that trade() returned exactly once"
                    )
                told.add(call)
                self.sampler.check(reading)
                new.append((claim, reading))
            self._untold.extend(new)

    def refresh(self) -> None:
        """Tell what is untold, and take in what others did.

        Raises:
            StoreDownError: the book could not be reached.
        """
        self._take(lambda _: None)

    def later(self, act: Callable[[Turn], object]) -> None:
        """Do this in the next turn, once, even if the end of that turn is not known."""
        with self._state:
            self._later.append((next(self._numbers), act))

    def once(self, act: Callable[[Turn], T]) -> T:
        """The same, now."""
        found: list[T] = []
        with self._guard:
            if self._thread is not None:  # in the middle of a turn
                return act(self._now)
            with self._state:
                self.later(lambda turn: found.append(act(turn)))
                mine = self._later[-1]
            try:
                self.refresh()
            except BaseException:
                with self._state, suppress(ValueError):
                    self._later.remove(mine)
                raise
        return found[-1]  # one before it was of a turn that was not written

    def _do(self, act: Callable[[Turn], None]) -> None:
        """Now, or in the next turn where that may take its time."""
        if self._defers and self._thread != get_ident():
            self.later(act)
        else:
            self._take(act)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is told and paid within the block is in the book all at once, at its end."""
        with self._guard:
            defers, self._defers = self._defers, True
            try:
                yield
            finally:
                self._defers = defers
            self.refresh()

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return self._state if self._defers else self._guard

    def add(self, part: Part) -> None:
        """This stands beside the book in its store, and takes part in its turns."""
        self._parts.append(part)

    @property
    def is_told(self) -> bool:
        """Whether nothing is left for the next turn."""
        return not self._later and not self._untold

    @property
    def untold(self) -> Sequence[Reading]:
        """What came back and is not in the book, since it could not be reached."""
        return tuple(reading for _, reading in self._untold)

    def most(self, request: Request) -> float:
        """The highest cost that is held for a call of this worker, or counts for one that it lost."""
        return self._had(request).most

    def attempt(self, request: Request) -> int:
        """Which call of its model and item this one of this worker is, from 0."""
        return self._had(request).attempt

    def _had(self, request: Request) -> Claim:
        """A call of this worker's, or of an earlier one of its name."""
        return self._mine[request.id] if request.id in self._mine else self._lost[request.id]

    def _forget(self, requests: Sequence[Request]) -> None:
        """Nothing will be told of these."""
        for request in requests:
            self._mine.pop(request.id, None)
            self._lost.pop(request.id, None)

    # a turn

    def _take(self, act: Callable[[Turn], T]) -> T:
        """Do something under the book's lock; in the middle of a turn, in that one.

        Raises:
            StoreDownError: the book could not be reached.
        """
        with self._guard:
            while self._thread is None:
                entered, anew = False, self._is_stale or not self._copy.n_rounds
                try:
                    if anew:
                        self._look_anew()
                    first = None if self.where.url is None else self._ask
                    with self._db.write(first=first) as connection:
                        entered, self._is_stale = True, True  # until all of it is written
                        with self._state:
                            found, told = self._whole(connection, act, anew=anew)
                    with self._state:
                        self._is_away = False
                        self.spent = float(self._copy.about["spent"])
                        self._has_told(*told)
                        self._is_stale = False
                    return found
                except BaseException as ex:
                    self._is_sure = self._is_sure and not entered
                    if not entered or not isinstance(ex, StoreDownError):
                        self._is_away = isinstance(ex, StoreDownError)
                        raise
            return act(self._now)

    def _ask(self, connection: Connection) -> None:
        """What is known to be asked in any turn; a server is sent it at once."""
        self._asked = Asked(connection, (*asks(self._copy), *self._workers.asks()))

    def _queries(self, connection: Connection) -> Asked:
        return Asked(connection) if self.where.url is None else self._asked

    def _whole(
        self, connection: Connection, act: Callable[[Turn], T], *, anew: bool
    ) -> tuple[T, tuple[int, int]]:
        """What came of it; and how much was told in it."""
        is_news = anew or not self._workers.is_alone
        try:
            self._thread = get_ident()
            if is_news:
                look(self._copy, self._queries(connection))
            given = connection, self._workers.me, self._till
            self._now = turn = Turn(self._copy, self._db, *given, is_sure=self._is_sure)
            self._take_in(turn, anew=anew)
            if is_news:
                self._bury(turn)
            told = len(self._later), len(self._untold)
            if self._later:
                self._hand_over(turn)
            for claim, reading in self._untold:
                if turn.came_before(claim.request.id):
                    continue
                turn.take_in(claim, reading)
                if reading.value is None and self._adopted.gives_way(self._copy, claim.cell):
                    turn.close(claim.cell)
            found = act(turn)
            for part in self._parts:
                part.write(turn)
            turn.write()
        finally:
            self._thread = None
        return found, told

    def _take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others wrote."""
        try:
            for part in self._parts:
                part.take_in(turn, anew=anew)
        except _OF_DAMAGE as ex:
            raise self._copy.damaged(ex) from ex

    def _look_anew(self) -> None:
        """Nobody knows how far the last turn got: read the book again, while others may write."""
        while True:
            fresh, entered = Copy(self.sampler, self.where), False
            try:
                with self._db.read() as connection:
                    entered = True
                    look(fresh, Asked(connection))
                break
            except StoreDownError:
                if not entered:  # one that goes in the middle may be back soon
                    raise
        with self._state:
            self._copy = fresh

    def _bury(self, turn: Turn) -> None:
        """Workers that are gone."""
        for worker in self._workers.gone(turn.connection, self._queries(turn.connection)):
            for part in self._parts:
                part.bury(turn, worker)
            lost = turn.bury(worker)
            if lost:
                log.warning("a worker is gone; %d calls of it count as spent, and are asked again", lost)
            self._workers.sign_off(turn.connection, worker)

    def _hand_over(self, turn: Turn) -> None:
        """What was left since the last turn."""
        done = self._workers.told_in(self._queries(turn.connection))
        for number, act in self._later:
            if number > done:
                act(turn)
        self._workers.tell(turn.connection, self._later[-1][0])

    def _has_told(self, n_later: int, n_readings: int) -> None:
        for _ in range(n_later):
            self._later.popleft()
        self._forget([claim.request for claim, _ in self._untold[:n_readings]])
        del self._untold[:n_readings]

    # rounds

    def _plan(self) -> bool:
        """Plan what comes next, outside of the lock; whether there is something now, by whomever."""
        copy, sampler = self._copy, self.sampler
        can_go_on = self._till.affords_any(copy)
        at = *(copy.about[name] for name in ("rounds", "passes", "withdrawn")), can_go_on
        if (
            copy.waiting.first() is not None
            or copy.about["stopped"] is not None
            or not (can_go_on or sampler.waits_for_all)
        ):
            return False
        if self._planned_at == at and copy.settled < self._until:
            return False
        if sampler.waits_for_all and (copy.under_way or (copy.n_rounds and self._begin_pass(at[1]))):
            return not copy.under_way
        with self._state:
            planned, self._looked_at = sampler.decide(copy.cells(), copy.note), None
            self._why = planned.reason if isinstance(planned, Stop) else None
        if isinstance(planned, Planned) and can_go_on:
            if not planned.item.size and planned.note == copy.note:
                raise SamplerError(
                    f"sampler {sampler.name!r} planned an empty round twice; it must wait or stop"
                )
            self._begin(planned, at[0])
            return True
        if isinstance(planned, Wait) and not copy.under_way:
            raise SamplerError(f"sampler {sampler.name!r} waits with nothing under way; it must plan or stop")
        self._planned_at = at
        self._until = max(planned.until if isinstance(planned, Wait) else 0, copy.settled + 1)
        return False

    def _begin(self, planned: Planned, rounds: int) -> None:
        planned, adopted = self._adopted.without(planned)
        texts = texts_of(self.sampler, planned)

        def begin(turn: Turn) -> None:
            if turn.about["rounds"] == rounds:  # nobody else has
                turn.begin(planned, texts)

        self._take(begin)
        self._adopted = adopted

    def _begin_pass(self, passes: int) -> bool:
        """Put the next pass of the round together; whether there is one."""
        with self._state:
            close, ask = self.sampler.next_pass(self._copy.cells())
        if not close.size and not ask.size:
            return False

        def begin(turn: Turn) -> None:
            if turn.about["passes"] == passes:  # nobody else has
                for cell in close.tolist():
                    turn.close(cell)
                turn.begin_pass(ask)

        self._take(begin)
        return True
