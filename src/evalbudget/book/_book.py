"""What was planned, who has which cell, what calls cost: buying and sharing are queries of it."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import count
from threading import get_ident
from typing import Any, Protocol, TypeVar

import numpy as np
from sqlalchemy import Connection

from evalbudget.book._calls import Called, beside_in, calls_in, known_calls
from evalbudget.book._copy import Copy
from evalbudget.book._known import ADOPTED, Known
from evalbudget.book._opening import opened, terms_of
from evalbudget.book._statements import BESIDE, CUT_OFF, IS_TOLD, LOST
from evalbudget.book._tables import ALONE, LAYOUT
from evalbudget.book._turn import Claim, Turn
from evalbudget.book._waiting import Left
from evalbudget.book._workers import MEMORY, Workers
from evalbudget.budget import USED_UP, Budget, shown_amount
from evalbudget.cells import CLOSED, Cells, Planned, Stop, Wait
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import (
    BudgetError,
    EvalbudgetError,
    InvalidInputError,
    SamplerError,
    StoreDownError,
    StoreError,
)
from evalbudget.sampler import Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Address

T = TypeVar("T")
Place = tuple[int, int, int]
"""Model, item and phase."""

log = shown_logger(__name__)

_SLACK = 1e-9
_OF_DAMAGE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class Part(Protocol):
    """What stands beside a book in its store, and takes part in its turns."""

    def take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others did; anew, where nobody knows how far the last turn got."""

    def bury(self, turn: Turn, worker: int) -> None:
        """A worker is gone."""

    def write(self, turn: Turn) -> None:
        """At the end of a turn."""


class Book:
    """One purchase by one or several processes: rounds of one sampler, read cell by cell.

    What is spent and held never exceeds the budget. A round is planned once, by whoever needs it first, and
    everybody hands out its cells in its order. Nothing is repeated: a worker that joins reads the columns.

    Args:
        sampler: that plans; every worker gives one like it.
        budget: what may be spent in all.
        where: a path, or ``postgresql://user@host/database#name``; begun if nothing is there. None: in
            memory.
        most: the highest cost of one call, or of a call for a given cell, whose ``epoch`` counts the calls of
            its model and item here; 0 for one whose answer is there.
        at_once: how many cells may be under way, of all workers.
        about: what else must be the same for all workers, such as the task; JSON values.
        known_as: what this worker is called. Under the name of one that ended, it goes on with what that had
            under way: :attr:`held` and :attr:`lost`. None: as nobody before.
        shown_as: what :meth:`calls` call it, if not that.
        alone: no other worker has it at the same time; the caller sees to that.
        defers: what is told waits for the next turn, so that nothing but that waits for the store. Turns may
            then be taken in another thread; :meth:`steady` keeps them from changing anything.
        stays_stopped: nothing more is handed out to whoever comes after a :meth:`stop`, either.
        lease: seconds without a sign of life after which a worker on another machine is taken to be dead;
            what it has under way counts at its highest cost then, and is asked again.
        clock: seconds since 1970; of use for files only, a server has its own.

    Raises:
        StoreError: something else is there, or a book of another sampler, seed, design, task or version, or
            of another budget while others are at work.
        StoreDownError: it cannot be reached.
        BudgetError: the budget is below what the sampler needs.
        InvalidInputError: the address cannot be read.
    """

    def __init__(
        self,
        sampler: Sampler,
        budget: Budget,
        where: Address | None = None,
        *,
        most: float | Callable[[Cell], float] = 1.0,
        at_once: Callable[[], float] = lambda: math.inf,
        about: Mapping[str, Any] | None = None,
        known_as: str | None = None,
        shown_as: str | None = None,
        alone: bool = False,
        defers: bool = False,
        stays_stopped: bool = False,
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sampler, self.budget, self._most, self._at_once = sampler, budget, most, at_once
        if not callable(most) and not (math.isfinite(most) and most > 0.0):
            raise BudgetError(f"the highest cost of a call is {most:g}; give a finite cost above zero")
        self.where = where or Address(path=MEMORY)
        self._guard = threading.RLock()  # one turn at a time
        self._state = threading.RLock()  # held while what is known changes, and for no longer
        self._thread: int | None = None  # that takes a turn
        self._now: Turn
        self.parts: list[Part] = []
        self.has_answers = False
        """Whether the caller has answers that cost nothing: their cells are handed out whatever is left."""
        self._defers, self._stays_stopped = defers, stays_stopped
        self._later: deque[tuple[int, Callable[[Turn], object]]] = deque()
        self._is_away = False  # the store was, when it was wanted last
        self._looked_at: object = None
        self._untold: list[Reading] = []
        self._mine: dict[int, Claim] = {}  # calls that this worker has
        self._lost: dict[int, Claim] = {}  # that an earlier one of its name had, and that count as lost
        self._ahead: Counter[Place] = Counter()  # adopted beyond what was planned
        self._is_sure = True  # whether what was written last is known to be written, or not to be
        self._is_stale = False  # the copy has what may not be in the book
        self._has_left = False
        # rounds, passes, models withdrawn, and whether any call could be paid, when nothing could be planned
        self._planned_at: tuple[object, ...] = ()
        self._until = 0  # tries that must have come back before it is worth planning again
        self._stop: str | None = None
        self._spent = 0.0
        self._copy = Copy(sampler, self.where)
        self._db = opened(
            self.where,
            sampler,
            budget,
            terms_of(sampler, about or {}),
            clock,
            layout=ALONE if alone or where is None else LAYOUT,
        )
        try:
            self._workers = self._joined(known_as, shown_as, 0.0 if alone else lease, clock)
            self._numbers = count(self._workers.told + 1)
        except BaseException:
            self._db.close()
            raise

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
                    self._take_turn(found, n)
                    has_enough = not callable(n) and len(found) >= n
                    if has_enough or not self._plan():
                        break
            except BaseException:
                self._is_sure = False  # what was claimed before is handed out by the next one
                raise
            self._mine |= found
            return [claim.request for claim in found.values()]

    def adopt(self, planned: Planned, most: Sequence[float], attempts: Sequence[int]) -> Sequence[Request]:
        """Cells that somebody else chose are under way; of a book in memory, before anything is handed out.

        They take the place of what the sampler plans of the same items in that phase.

        Args:
            planned: they; the note is not read.
            most: the highest cost of each, which is held whether the budget pays for it or not.
            attempts: which call of its model and item each is, from 0; later ones go on from the highest.

        Returns:
            A request for each, in order.

        Raises:
            InvalidInputError: the book is in a file or on a server, or has planned something.
        """
        if self.where.path != MEMORY or any(note is not None for note in self._known.notes):
            raise InvalidInputError(
                f"{self.where}: cells are adopted by a book in memory, before it plans; begin a new one"
            )
        adopted = planned._replace(note=ADOPTED)
        text = self._copy.text_of(adopted)

        def act(turn: Turn) -> list[Claim]:
            first = len(self._known)
            self._copy.begin(turn.connection, adopted, text)
            calls = enumerate(zip(most, attempts, strict=True), first)
            return [turn.call(cell, cost, attempt) for cell, (cost, attempt) in calls]

        claims = self._turn(act)
        self._mine |= {claim.request.id: claim for claim in claims}
        self._ahead.update(self._place(claim.cell) for claim in claims)
        return [claim.request for claim in claims]

    def _place(self, cell: int) -> Place:
        model, item, phase = (self._known.of(name, cell) for name in ("model", "item", "phase"))
        return model, item, phase

    def _take_turn(self, found: dict[int, Claim], n: int | Callable[[int], int]) -> None:
        """Claim what is missing of n."""

        def act(turn: Turn) -> dict[int, Claim]:
            claimed: dict[int, Claim] = {}
            if n and not self._is_sure:  # handed out in a turn whose end was not known
                had = self._mine.keys() | found.keys()
                claimed = {call: claim for call, claim in turn.taken().items() if call not in had}
            if self._about["stopped"] is None:
                self._claim(turn, claimed, n, found)
            return claimed

        found |= self._turn(act)
        self._is_sure = self._is_sure or bool(n)

    def tell(self, came: Sequence[Reading]) -> None:
        """These came back; it is in the book after the next turn.

        Raises:
            SamplerError: one is of a request that this worker does not have.
        """
        with self._state:
            self._check(came)
            self._untold.extend(came)

    def refresh(self) -> None:
        """Tell what is untold, and take in what others did.

        Raises:
            StoreDownError: the book could not be reached.
        """
        self._turn(lambda _: None)

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

    def _do(self, act: Callable[[Turn], None]) -> None:
        """Now, or in the next turn where that may take its time."""
        if self._defers and self._thread != get_ident():
            self.later(act)
        else:
            self._turn(act)

    def score_again(self, readings: Sequence[Reading]) -> None:
        """Calls that came back have other scores than they had: what was planned stands, nothing is paid.

        Args:
            readings: of calls of :meth:`calls`; their costs count for nothing.

        Raises:
            InvalidInputError: the sampler cannot reckon with a score.
        """
        for reading in readings:
            self.sampler.check(reading)
        self._turn(lambda turn: turn.score_again(readings))
        self._is_stale = True  # counts of what was read and what failed

    def give_back(self, requests: Sequence[Request]) -> None:
        """These were never sent: they cost nothing, and others may be given them."""
        self._do(lambda turn: turn.give_back([request.id for request in requests]))
        self._forget(requests)

    def lose(self, requests: Sequence[Request]) -> None:
        """Nobody will know whether these were answered: each counts at its most, and is asked again."""
        self._turn(lambda turn: turn.lose([request.id for request in requests], CUT_OFF))
        self._forget(requests)

    def _forget(self, requests: Sequence[Request]) -> None:
        for request in requests:
            self._mine.pop(request.id, None)
            self._lost.pop(request.id, None)

    def pays(self, cost: float, why: str) -> bool:
        """Pay for what is of no cell; False, and nothing paid, where that exceeds what is left."""

        def act(turn: Turn) -> bool:
            fits = cost <= self.free + _SLACK
            if fits:
                turn.pay(cost, why)
            return fits

        return self.once(act)

    def pay(self, cost: float, why: str, *, out_of: Sequence[Request] = ()) -> Sequence[Request]:
        """Pay for what is of no cell, if need be out of what is held for these, the last first.

        Returns:
            Those that remain; the others are given back.
        """
        if self._defers:
            self._do(lambda turn: turn.pay(cost, why))
            return out_of

        def act(turn: Turn) -> list[Request]:
            left = list(out_of)
            while left and cost > self.free + _SLACK:
                turn.give_back([left.pop().id])
            turn.pay(cost, why)
            return left

        left = self.once(act)
        self._forget(out_of[len(left) :])
        return left

    def withdraw(self, model: int, why: str) -> None:
        """Ask a model nothing more; what is under way of it may still come back."""
        self._do(lambda turn: turn.withdraw(model, why))

    def stop(self, reason: str) -> None:
        """Hand out nothing more, to whichever worker; what is under way may still come back."""
        self._do(lambda _: self._about.update(stopped=self._db.storable(reason)))

    def close(self, came: Sequence[Reading] = (), *, keeps: bool = False) -> None:
        """Leave; what this worker has under way counts at its highest cost, and may be asked by others.

        A store that could not be reached is not waited for again.

        Args:
            came: answers that were not told yet.
            keeps: what is under way stays with this worker, who will go on under its name.
        """
        with self._guard:
            self.tell(came)
            if self._is_away:
                self._db.patience = 0.0
            self._workers.close()
            try:
                self._turn(partial(self._leave, keeps=keeps))
            except EvalbudgetError as ex:  # others find out
                log.warning("a worker could not sign off: %s", ex)
            finally:
                self._has_left = True
                self._db.close()

    # what is known, as of the last look

    @property
    def spent(self) -> float:
        """By calls that came back, and those that were lost, at their highest cost."""
        return self._spent

    @property
    def finished(self) -> bool:
        """Nothing is under way, and nothing more will be asked."""
        if self._is_stale or self._known.under_way or self._untold:
            return False
        stopped = self._about["stopped"] is not None or self._stop is not None
        return stopped or not self._affords_any or self.is_short

    @property
    def is_short(self) -> bool:
        """Whether the cell that comes next cannot be paid, as long as what is under way is not cheaper."""
        first = self._known.first()
        return first is not None and not self._may(first)

    @property
    def stopped(self) -> bool:
        """Whether nothing more is handed out, whatever the sampler wants."""
        return self._about["stopped"] is not None

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return str(self._about["stopped"] or self._stop or USED_UP)

    def most(self, request: Request) -> float:
        """The highest cost that is held for a call of this worker, or counts for one that it lost."""
        return self._had(request.id).most

    def attempt(self, request: Request) -> int:
        """Which call of its model and item this one of this worker is, from 0."""
        return self._had(request.id).attempt

    @property
    def held(self) -> tuple[Request, ...]:
        """What this worker has under way."""
        return tuple(claim.request for claim in self._mine.values())

    @property
    def lost(self) -> tuple[Request, ...]:
        """What an earlier worker of its name had and counts as lost; a reading of it can still be told."""
        return tuple(claim.request for claim in self._lost.values())

    @property
    def free(self) -> float:
        """Of the budget, neither spent nor held; below 0 where what is held was promised by a larger one."""
        cap = min(self.budget.amount, self._about["cap"])  # whoever came later may have less
        return float(cap - self._about["spent"] - self._about["held"])

    @property
    def goes_on(self) -> bool:
        """Whether there was a worker of this name before."""
        return self._workers.goes_on

    @property
    def paid_beside(self) -> float:
        """By this worker, also under its name before, for what is of no cell."""
        with self._guard, self._db.read() as connection:
            return float(connection.scalar(BESIDE, {"whose": self._workers.me}) or 0.0)

    @property
    def closed(self) -> tuple[Cell, ...]:
        """What is given up, as the sampler's ``closes_as`` names it."""
        cells = self.cells()
        shut = set()
        if self.sampler.waits_for_all:
            found = np.flatnonzero(cells.state == CLOSED).tolist()
            shut = {self.sampler.closes_as(self._known.cell(n)) for n in found}
        return tuple(sorted(shut | cells.given_up))

    @property
    def untold(self) -> Sequence[Reading]:
        """What came back and is not in the book, since it could not be reached."""
        return tuple(self._untold)

    def cells(self) -> Cells:
        """Every cell that rounds asked for; a view that must not be kept."""
        return self._known.cells()

    @property
    def is_told(self) -> bool:
        """Whether nothing is left for the next turn."""
        return not self._later and not self._untold

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return self._state if self._defers else self._guard

    def look(self) -> None:
        """Let the sampler see how it stands, for whoever asks it what is proved."""
        with self._state:
            now = tuple(self._about[name] for name in ("rounds", "passes", "withdrawn", "changes"))
            if now != self._looked_at:
                self.sampler.look(self.cells(), self._known.notes[-1] if self._known.notes else None)
                self._looked_at = now

    def readings(self) -> tuple[Reading, ...]:
        """Every call that came back or was lost, with a score or without, in the order of asking."""
        return tuple(called.reading for called in self.calls())

    def calls(self) -> tuple[Called, ...]:
        """The same, with who made them; what was never sent is left out. Others may write meanwhile."""
        with self._reading() as connection:
            self._copy.look(connection)
            self._spent = float(self._about["spent"])
            return calls_in(self._copy, connection)

    def known_calls(self) -> tuple[Called, ...]:
        """Those with a score, as of the last look, by whomever: where the book cannot be reached."""
        with self._guard:
            return known_calls(self._copy)

    def beside(self) -> Mapping[str, float]:
        """What was paid for no cell, by all workers, by the reason."""
        with self._reading() as connection:
            return beside_in(connection)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A moment of the book, whether this worker has left it or not."""
        with self._guard:
            try:
                if self._is_stale:
                    self._look_anew()
                with self._db.read() as connection:
                    yield connection
            finally:
                if self._has_left:
                    self._db.close()

    # a turn

    def _turn(self, act: Callable[[Turn], T]) -> T:
        """Do something under the book's lock, knowing what others did; written in whole or not at all."""
        with self._guard:
            while self._thread is None:
                entered, anew = False, self._is_stale or not self._known.notes
                try:
                    if anew:
                        self._look_anew()
                    with self._db.write() as connection:
                        entered, self._is_stale = True, True  # until all of it is written
                        with self._state:
                            found, told = self._whole_turn(connection, act, anew=anew)
                except BaseException as ex:
                    self._is_sure = self._is_sure and not entered
                    if not entered or not isinstance(ex, StoreDownError):
                        self._is_away = isinstance(ex, StoreDownError)
                        raise
                else:
                    with self._state:
                        self._is_stale, self._is_away = False, False
                        self._spent = float(self._about["spent"])
                        self._has_told(*told)
                    return found
            return act(self._now)  # in the middle of one

    def _whole_turn(
        self, connection: Connection, act: Callable[[Turn], T], *, anew: bool
    ) -> tuple[T, tuple[int, int]]:
        """What came of it; and how much was told in it."""
        self._thread = get_ident()
        try:
            self._copy.look(connection)
            self._now = turn = Turn(self._copy, connection, self._workers.me, self._db.storable)
            try:
                for part in self.parts:
                    part.take_in(turn, anew=anew)
            except _OF_DAMAGE as ex:
                raise self._copy.damaged(ex) from ex
            self._bury(turn)
            told = len(self._later), len(self._untold)
            self._hand_over(turn)
            found = act(turn)
            for part in self.parts:
                part.write(turn)
            self._copy.write(connection)
        finally:
            self._thread = None
        return found, told

    def _look_anew(self) -> None:
        """Nobody knows how far the last turn got: read the book again, while others may write."""
        while True:
            fresh, entered = Copy(self.sampler, self.where), False
            try:
                with self._db.read() as connection:
                    entered = True
                    fresh.look(connection)
                break
            except StoreDownError:
                if not entered:  # one that goes in the middle may be back soon
                    raise
        with self._state:
            self._copy, self._looked_at = fresh, None

    @property
    def _known(self) -> Known:
        return self._copy.known

    @property
    def _about(self) -> dict[str, Any]:
        return self._copy.about

    # claiming

    @property
    def _affords_any(self) -> bool:
        least = 0.0 if callable(self._most) else self._most
        return self.has_answers or (least <= self.free + _SLACK and self.free > _SLACK)

    def _cost(self, cell: int) -> float:
        most = self._most
        if callable(most):
            most = most(self._known.cell(cell)._replace(epoch=self._known.next_attempt(cell)))
        if not (math.isfinite(most) and (most > 0.0 or (self.has_answers and most == 0.0))):
            raise BudgetError(f"the highest cost of a call is {most:g}; give a finite cost above zero")
        return most

    def _may(self, cell: int) -> bool:
        most = self._cost(cell)
        return not most or (most <= self.free + _SLACK and self._known.under_way + 1 <= self._at_once())

    def _had(self, call: int) -> Claim:
        return self._mine[call] if call in self._mine else self._lost[call]

    def _claim(
        self, turn: Turn, new: dict[int, Claim], n: int | Callable[[int], int], found: Mapping[int, Claim]
    ) -> None:
        """Add calls until there are n, of each model or in all."""

        def call(cell: int) -> None:
            claim = turn.call(cell, self._cost(cell))
            new[claim.request.id] = claim

        if callable(n):
            wanted = n
            had = Counter(c.request.cell.model for each in (found, new) for c in each.values() if c.most)
            left = Left(self.free + _SLACK, self._at_once() - self._known.under_way)
            for cell in self._known.take_by_model(lambda m: wanted(m) - had[m], self._cost, left):
                call(cell)
            return
        while len(new) + len(found) < n and (first := self._known.take(self._may)) is not None:
            call(first)

    def _plan(self) -> bool:
        """Plan what comes next, outside of the lock; whether there is something now, by whomever."""
        known, can_go_on = self._known, self._affords_any
        at = *(self._about[name] for name in ("rounds", "passes", "withdrawn")), can_go_on
        if known.waits or self._about["stopped"] is not None or not (can_go_on or self.sampler.waits_for_all):
            return False
        if self._planned_at == at and known.settled < self._until:
            return False
        if self.sampler.waits_for_all and (known.under_way or (known.notes and self._begin_pass(at[1]))):
            return not known.under_way
        last = known.notes[-1] if known.notes else None
        with self._state:
            planned, self._looked_at = self.sampler.decide(self.cells(), last), None
            self._stop = planned.reason if isinstance(planned, Stop) else None
        if isinstance(planned, Planned) and can_go_on:
            self._begin(planned, last, at[0])
            return True
        if isinstance(planned, Wait) and not known.under_way:
            raise SamplerError(
                f"sampler {self.sampler.name!r} waits with nothing under way; it must plan or stop"
            )
        self._planned_at = at
        self._until = max(planned.until if isinstance(planned, Wait) else 0, known.settled + 1)
        return False

    def _begin(self, planned: Planned, last: Any, rounds: int) -> None:
        if not planned.item.size and planned.note == last:
            raise SamplerError(
                f"sampler {self.sampler.name!r} planned an empty round twice; it must wait or stop"
            )
        ahead = self._ahead
        if ahead:
            planned, ahead = self._without_adopted(planned)
        text = self._copy.text_of(planned)

        def begin(turn: Turn) -> None:
            if self._about["rounds"] == rounds:  # nobody else has
                self._copy.begin(turn.connection, planned, text)

        self._turn(begin)
        self._ahead = ahead

    def _without_adopted(self, planned: Planned) -> tuple[Planned, Counter[Place]]:
        """What is left to ask of a round, and what was adopted beyond it."""
        ahead = self._ahead.copy()
        kept = np.ones(planned.item.size, np.bool_)
        for number, (model, item) in enumerate(zip(planned.model, planned.item, strict=True)):
            place = int(model), int(item), planned.phase
            kept[number] = ahead[place] <= 0
            ahead[place] -= not kept[number]
        drawn = None if planned.propensity is None else planned.propensity[kept]
        left = planned._replace(model=planned.model[kept], item=planned.item[kept], propensity=drawn)
        return left, ahead

    def _begin_pass(self, passes: int) -> bool:
        """Put the next pass of the round together; whether there is one."""
        with self._state:
            close, ask = self.sampler.next_pass(self.cells())
        if not close.size and not ask.size:
            return False

        def begin(turn: Turn) -> None:
            if self._about["passes"] == passes:  # nobody else has
                for cell in close.tolist():
                    self._copy.change(cell, self._workers.me, state=CLOSED)
                self._copy.begin_pass(turn.connection, ask)

        self._turn(begin)
        return True

    # what comes back

    def _check(self, came: Sequence[Reading]) -> None:
        told = {reading.request.id for reading in self._untold}
        for reading in came:
            self.sampler.check(reading)
            call = reading.request.id
            has = call in self._mine or call in self._lost
            if call in told or not has or self._had(call).request != reading.request:
                raise SamplerError(
                    f"a reading of request {call} ({reading.request.cell}), which this worker does not have; "
                    "tell each request that trade() returned exactly once"
                )
            told.add(call)

    def _hand_over(self, turn: Turn) -> None:
        """What was told or left since the last turn."""
        done = self._workers.told_in(turn.connection) if self._later else 0
        for number, act in self._later:
            if number > done:
                act(turn)
        if self._later:
            self._workers.tell(turn.connection, self._later[-1][0])
        for reading in self._untold:
            told = None if self._is_sure else turn.connection.scalar(IS_TOLD, {"which": reading.request.id})
            if told is None:
                claim = self._had(reading.request.id)
                turn.take_in(claim, reading)
                if reading.value is None and self._ahead[place := self._place(claim.cell)] > 0:
                    self._ahead[place] -= 1  # another was asked in its place
                    self._copy.change(claim.cell, self._workers.me, state=CLOSED)

    def _has_told(self, n_later: int, n_readings: int) -> None:
        for _ in range(n_later):
            self._later.popleft()
        for reading in self._untold[:n_readings]:
            self._mine.pop(reading.request.id, None)
            self._lost.pop(reading.request.id, None)
        del self._untold[:n_readings]

    def _bury(self, turn: Turn) -> None:
        """Workers that are gone."""
        for worker in self._workers.gone(turn.connection):
            for part in self.parts:
                part.bury(turn, worker)
            lost = turn.bury(worker)
            if lost:
                log.warning("a worker is gone; %d calls of it count as spent, and are asked again", lost)
            self._workers.sign_off(turn.connection, worker)

    def _leave(self, turn: Turn, *, keeps: bool) -> None:
        """Let go of what is under way."""
        if keeps:
            return
        left = list(turn.taken())
        turn.lose([call for call in left if call in self._mine], LOST)
        turn.give_back([call for call in left if call not in self._mine])
        self._workers.sign_off(turn.connection, self._workers.me)

    # opening

    def _joined(
        self, known_as: str | None, shown_as: str | None, lease: float, clock: Callable[[], float]
    ) -> Workers:
        """As one more worker, or one that goes on, with the budget of those that are there."""
        workers = self._workers = Workers(self._db, self.where, known_as, shown_as, lease, clock)
        try:
            self._turn(self._agree)
            if workers.goes_on:
                self._turn(self._inherit)
        except BaseException:
            workers.close()
            with suppress(EvalbudgetError), self._db.write() as connection:
                workers.undo(connection)
            raise
        return workers

    def _inherit(self, turn: Turn) -> None:
        """What an earlier worker of this name had."""
        self._mine, self._lost = turn.taken(), turn.lost()

    def _agree(self, turn: Turn) -> None:
        """Others at work must have the same budget; where there are none, this one counts."""
        cap, others = self._about["cap"], self._workers.others(turn.connection)
        if others and cap != self.budget.amount:
            raise StoreError(
                f"{self.where} is being filled with a budget of {shown_amount(cap, self.budget.unit)}, and "
                f"this one is {self.budget}; give every worker the same, or wait until those have ended"
            )
        self._about["cap"] = self.budget.amount
        if not others and not self._stays_stopped:
            self._about["stopped"] = None  # whoever goes on asks again
