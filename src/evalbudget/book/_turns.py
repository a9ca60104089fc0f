"""A worker's turns at a book: under its lock, knowing what others did, written in whole or not at all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from threading import get_ident
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from evalbudget.book._adopted import Adopted
from evalbudget.book._copy import Copy
from evalbudget.book._statements import IS_TOLD
from evalbudget.book._turn import Claim, Turn
from evalbudget.book._workers import Workers
from evalbudget.cells import CLOSED
from evalbudget.design import Reading, Request
from evalbudget.errors import SamplerError, StoreDownError
from evalbudget.sampler import Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Database
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
        where: the book is.
        db: the book's.
        workers: this one among them.
        defers: what is told waits for the next turn.

    Attributes:
        sampler: whose rounds they are.
        where: the book is.
        db: the book's.
        workers: this one among them.
        parts: what takes part in its turns.
        mine: calls that this worker has.
        lost: that an earlier one of its name had, and that count as lost.
        copy: of the book.
        known: its cells and rounds.
        about: what of it would have to be summed.
        adopted: cells that the sampler did not plan yet.
        untold: what came back and is not in the book.
        spent: as of the last turn that was written.
        defers: what is told waits for the next turn.
        is_sure: whether what was written last is known to be written, or not to be.
        is_stale: the copy has what may not be in the book.
        is_away: the store was, when it was wanted last.
    """

    def __init__(
        self, sampler: Sampler, where: Address, db: Database, workers: Workers, *, defers: bool
    ) -> None:
        self.sampler, self.where, self.db, self.workers, self.defers = sampler, where, db, workers, defers
        self.parts: list[Part] = []
        self.mine: dict[int, Claim] = {}
        self.lost: dict[int, Claim] = {}
        self.adopted = Adopted()
        self.untold: list[Reading] = []
        self.spent = 0.0
        self.is_sure, self.is_stale, self.is_away = True, False, False
        self._use(Copy(sampler, where))
        self.guard = threading.RLock()
        """One turn at a time."""
        self.state = threading.RLock()
        """Held while what is known changes, and for no longer."""
        self._is_on_server = where.url is not None
        self._thread: int | None = None  # that takes a turn
        self._now: Turn
        self._asked: Asked
        self._later: deque[tuple[int, Callable[[Turn], object]]] = deque()
        self._numbers = count(workers.told + 1)

    def _use(self, copy: Copy) -> None:
        """This is what is known from now on."""
        self.copy, self.known, self.about = copy, copy.known, copy.about

    # what waits for a turn

    def tell(self, came: Sequence[Reading]) -> None:
        """These came back; it is in the book after the next turn."""
        with self.state:
            self._check(came)
            self.untold.extend(came)

    def _check(self, came: Sequence[Reading]) -> None:
        told = {reading.request.id for reading in self.untold}
        for reading in came:
            self.sampler.check(reading)
            call = reading.request.id
            has = call in self.mine or call in self.lost
            if call in told or not has or self.had(call).request != reading.request:
                raise SamplerError(
                    f"a reading of request {call} ({reading.request.cell}), which this worker does not have; "
                    "tell each request that trade() returned exactly once"
                )
            told.add(call)

    def had(self, call: int) -> Claim:
        """A call of this worker's, or of an earlier one of its name."""
        return self.mine[call] if call in self.mine else self.lost[call]

    def forget(self, requests: Sequence[Request]) -> None:
        """Nothing will be told of these."""
        for request in requests:
            self.mine.pop(request.id, None)
            self.lost.pop(request.id, None)

    def later(self, act: Callable[[Turn], object]) -> None:
        """Do this in the next turn, once, even if the end of that turn is not known."""
        with self.state:
            self._later.append((next(self._numbers), act))

    @property
    def is_told(self) -> bool:
        """Whether nothing is left for the next turn."""
        return not self._later and not self.untold

    def once(self, act: Callable[[Turn], T]) -> T:
        """The same, now."""
        found: list[T] = []
        with self.guard:
            if self._thread is not None:  # in the middle of a turn
                return act(self._now)
            with self.state:
                self.later(lambda turn: found.append(act(turn)))
                mine = self._later[-1]
            try:
                self.take(lambda _: None)
            except BaseException:
                with self.state, suppress(ValueError):
                    self._later.remove(mine)
                raise
        return found[-1]  # one before it was of a turn that was not written

    def do(self, act: Callable[[Turn], None]) -> None:
        """Now, or in the next turn where that may take its time."""
        if self.defers and self._thread != get_ident():
            self.later(act)
        else:
            self.take(act)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is told and paid within the block is in the book all at once, at its end."""
        with self.guard:
            defers, self.defers = self.defers, True
            try:
                yield
            finally:
                self.defers = defers
            self.take(lambda _: None)

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return self.state if self.defers else self.guard

    # a turn

    def take(self, act: Callable[[Turn], T]) -> T:
        """Do something under the book's lock; in the middle of a turn, in that one.

        Raises:
            StoreDownError: the book could not be reached.
        """
        with self.guard:
            while self._thread is None:
                entered, anew = False, self.is_stale or not self.known.n_rounds
                try:
                    if anew:
                        self.look_anew()
                    with self.db.write(first=self._ask if self._is_on_server else None) as connection:
                        entered, self.is_stale = True, True  # until all of it is written
                        with self.state:
                            found, told = self._whole(connection, act, anew=anew)
                    with self.state:
                        self.is_away = False
                        self.spent = float(self.about["spent"])
                        self._has_told(*told)
                        self.is_stale = False
                    return found
                except BaseException as ex:
                    self.is_sure = self.is_sure and not entered
                    if not entered or not isinstance(ex, StoreDownError):
                        self.is_away = isinstance(ex, StoreDownError)
                        raise
            return act(self._now)

    def _ask(self, connection: Connection) -> None:
        """What is known to be asked in any turn; a server is sent it at once."""
        self._asked = Asked(connection, (*self.copy.asks(), *self.workers.asks()))

    def _queries(self, connection: Connection) -> Asked:
        return self._asked if self._is_on_server else Asked(connection)

    def _whole(
        self, connection: Connection, act: Callable[[Turn], T], *, anew: bool
    ) -> tuple[T, tuple[int, int]]:
        """What came of it; and how much was told in it."""
        self._thread = get_ident()
        is_news = anew or not self.workers.is_alone
        try:
            if is_news:
                self.copy.look(self._queries(connection))
            self._now = turn = Turn(self.copy, connection, self.workers.me, self.db.storable)
            try:
                for part in self.parts:
                    part.take_in(turn, anew=anew)
            except _OF_DAMAGE as ex:
                raise self.copy.damaged(ex) from ex
            if is_news:
                self._bury(turn)
            told = len(self._later), len(self.untold)
            self._hand_over(turn)
            found = act(turn)
            for part in self.parts:
                part.write(turn)
            self.copy.write(connection)
        finally:
            self._thread = None
        return found, told

    def look_anew(self) -> None:
        """Nobody knows how far the last turn got: read the book again, while others may write."""
        while True:
            fresh, entered = Copy(self.sampler, self.where), False
            try:
                with self.db.read() as connection:
                    entered = True
                    fresh.look(Asked(connection))
                break
            except StoreDownError:
                if not entered:  # one that goes in the middle may be back soon
                    raise
        with self.state:
            self._use(fresh)

    def _bury(self, turn: Turn) -> None:
        """Workers that are gone."""
        for worker in self.workers.gone(turn.connection, self._queries(turn.connection)):
            for part in self.parts:
                part.bury(turn, worker)
            lost = turn.bury(worker)
            if lost:
                log.warning("a worker is gone; %d calls of it count as spent, and are asked again", lost)
            self.workers.sign_off(turn.connection, worker)

    def _hand_over(self, turn: Turn) -> None:
        """What was told or left since the last turn."""
        done = self.workers.told_in(self._queries(turn.connection)) if self._later else 0
        for number, act in self._later:
            if number > done:
                act(turn)
        if self._later:
            self.workers.tell(turn.connection, self._later[-1][0])
        for reading in self.untold:
            told = None if self.is_sure else turn.connection.scalar(IS_TOLD, {"which": reading.request.id})
            if told is None:
                claim = self.had(reading.request.id)
                turn.take_in(claim, reading)
                if reading.value is None and self.adopted.gives_way(self.known, claim.cell):
                    self.copy.change(claim.cell, self.workers.me, state=CLOSED)

    def _has_told(self, n_later: int, n_readings: int) -> None:
        for _ in range(n_later):
            self._later.popleft()
        self.forget([reading.request for reading in self.untold[:n_readings]])
        del self.untold[:n_readings]
