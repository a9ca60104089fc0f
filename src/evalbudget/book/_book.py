"""What was planned, who has which cell, what calls cost: buying and sharing are queries of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, select

from evalbudget.book._copy import Copy
from evalbudget.book._known import Known
from evalbudget.book._opening import opened, terms_of
from evalbudget.book._statements import IS_TOLD, LOST, NEVER_SENT, TAKEN_BY, TOO_LATE
from evalbudget.book._tables import CALLS
from evalbudget.book._workers import MEMORY, Workers
from evalbudget.budget import Budget, shown_amount
from evalbudget.cells import CAME, CLOSED, OPEN, TAKEN, Cells, Planned, Stop, Wait
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import BudgetError, EvalbudgetError, SamplerError, StoreDownError, StoreError
from evalbudget.sampler import Allocation, Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Address

T = TypeVar("T")

log = shown_logger(__name__)

USED_UP = "budget used up"
"""Why nothing more is asked, where nothing else ended it."""
_SLACK = 1e-9


class _Claim(NamedTuple):
    """A call that this worker was given: its cell's number, its highest cost, and what is asked."""

    cell: int
    most: float
    request: Request


class Book:
    """One purchase by one or several processes: rounds of one sampler, read cell by cell.

    What is spent and held never exceeds the budget. A round is planned once, by whoever needs it first, and
    everybody hands out its cells in its order. Nothing is repeated: a worker that joins reads the columns.

    Args:
        sampler: that plans; every worker gives one like it.
        budget: what may be spent in all.
        where: a path, or ``postgresql://user@host/database#name``; begun if nothing is there. None: in
            memory.
        most: the highest cost of one call, or of a call for a given cell.
        about: what else must be the same for all workers, such as the task; JSON values.
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
        about: Mapping[str, Any] | None = None,
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sampler, self.budget, self._most = sampler, budget, most
        if not callable(most) and not (math.isfinite(most) and most > 0.0):
            raise BudgetError(f"the highest cost of a call is {most:g}; give a finite cost above zero")
        self._where = where or Address(path=MEMORY)
        self._guard = threading.RLock()
        self._untold: list[Reading] = []
        self._mine: dict[int, _Claim] = {}  # calls that this worker has
        self._is_sure = True  # whether what was written last is known to be written, or not to be
        self._is_stale = False  # the copy has what may not be in the book
        self._planned_at = -1, -1  # rounds and passes when nothing could be planned
        self._until = 0  # tries that must have come back before it is worth planning again
        self._stop: str | None = None
        self._spent = 0.0
        self._is_too_dear = False  # the cell that comes next
        self._copy = Copy(sampler, self._where)
        self._db = opened(self._where, sampler, budget, terms_of(sampler, about or {}), clock)
        try:
            self._workers = self._joined(lease, clock)
        except BaseException:
            self._db.close()
            raise

    # what the caller does

    def trade(self, came: Sequence[Reading], n: int) -> Sequence[Request]:
        """Take in what came back, and hand out up to n cells, as far as they can be paid.

        Args:
            came: answers to requests that this worker was given.
            n: how many it can work on.

        Returns:
            Requests. None, while :attr:`finished` is false, means wait for what is under way.

        Raises:
            StoreDownError: the book could not be reached; what came is kept for the next call.
            SamplerError: a reading of a request that this worker does not have, or a sampler that neither
                plans nor stops.
        """
        with self._guard:
            self._check(came)
            self._untold.extend(came)
            found: dict[int, _Claim] = {}
            try:
                while True:
                    self._take_turn(found, n)
                    if len(found) >= n or not self._plan():
                        break
            except BaseException:
                self._is_sure = False  # what was claimed before is handed out by the next one
                raise
            self._mine |= found
            return [claim.request for claim in found.values()]

    def _take_turn(self, found: dict[int, _Claim], n: int) -> None:
        """Tell what is untold, and claim what is missing of n."""

        def act(connection: Connection) -> dict[int, _Claim]:
            for reading in self._untold:
                self._take_in(connection, reading)
            claimed = {} if self._is_sure or not n else self._unsent(connection, found)
            if self._about["stopped"] is None:
                self._claim(claimed, n - len(found))
            return claimed

        found |= self._turn(act)
        self._is_sure = self._is_sure or n > 0
        for reading in self._untold:
            self._mine.pop(reading.request.id, None)
        self._untold.clear()

    def stop(self, reason: str) -> None:
        """Hand out nothing more, to whichever worker; what is under way may still come back."""
        self._turn(lambda _: self._about.update(stopped=self._db.storable(reason)))

    def close(self, came: Sequence[Reading] = (), *, patience: float | None = None) -> None:
        """Leave; what this worker has under way counts at its highest cost, and may be asked by others.

        Args:
            came: answers that were not told yet.
            patience: seconds to wait for a book that cannot be reached; None as long as ever.
        """
        with self._guard:
            self._check(came)
            self._untold.extend(came)
            if patience is not None:
                self._db.patience = patience
            self._workers.close()
            try:
                self._turn(self._leave)
                self._untold.clear()
            except EvalbudgetError as ex:  # others find out
                log.warning("a worker could not sign off: %s", ex)
            finally:
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
        return stopped or not self._affords_any or self._is_too_dear

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return str(self._about["stopped"] or self._stop or USED_UP)

    def held(self, request: Request) -> float:
        """The highest cost that is held for a call of this worker."""
        return self._mine[request.id].most

    @property
    def untold(self) -> Sequence[Reading]:
        """What came back and is not in the book, since it could not be reached."""
        return tuple(self._untold)

    def cells(self) -> Cells:
        """Every cell that rounds asked for; a view that must not be kept."""
        return self._known.cells()

    def look(self) -> None:
        """Let the sampler see how it stands, for whoever asks it what is proved."""
        with self._guard:
            self.sampler.look(self.cells(), self._known.notes[-1] if self._known.notes else None)

    def readings(self) -> tuple[Reading, ...]:
        """Every call that came back or was lost, with a score or without, in the order of asking."""
        with self._guard:
            self._turn(lambda _: None)
            with self._db.read() as connection:
                self._copy.look(connection)
                self._spent = float(self._about["spent"])
                rows = connection.execute(
                    select(CALLS).where(CALLS.c.cost.is_not(None)).order_by(CALLS.c.call)
                ).all()
            found = []
            for row in rows:
                of = partial(self._known.of, number=row.cell)
                value = of("value") if of("state") == CAME and of("call") == row.call else None
                found.append(Reading(self._request(row.call, row.cell), value, row.cost, row.error))
            return tuple(found)

    # a turn

    def _turn(self, act: Callable[[Connection], T]) -> T:
        """Do something under the book's lock, knowing what others did; written in whole or not at all."""
        with self._guard:
            while True:
                entered = False
                try:
                    if self._is_stale or not self._known.notes:
                        self._look_anew()
                    with self._db.write() as connection:
                        entered = True
                        self._is_stale = True  # until all of it is written
                        self._copy.look(connection)
                        self._bury(connection, self._workers.gone(connection))
                        found = act(connection)
                        self._copy.write(connection)
                except BaseException as ex:
                    self._is_sure = self._is_sure and not entered
                    if not entered or not isinstance(ex, StoreDownError):
                        raise
                else:
                    self._is_stale, self._spent = False, float(self._about["spent"])
                    return found

    def _look_anew(self) -> None:
        """Nobody knows how far the last turn got: read the book again, while others may write."""
        fresh = Copy(self.sampler, self._where)
        with self._db.read() as connection:
            fresh.look(connection)
        self._copy = fresh

    @property
    def _known(self) -> Known:
        return self._copy.known

    @property
    def _about(self) -> dict[str, Any]:
        return self._copy.about

    # claiming

    @property
    def _free(self) -> float:
        cap = min(self.budget.amount, self._about["cap"])  # whoever came later may have less
        return float(cap - self._about["spent"] - self._about["held"])

    @property
    def _affords_any(self) -> bool:
        return (0.0 if callable(self._most) else self._most) <= self._free + _SLACK and self._free > _SLACK

    def _cost(self, cell: int) -> float:
        most = self._most(self._known.cell(cell)) if callable(self._most) else self._most
        if not (math.isfinite(most) and most > 0.0):
            raise BudgetError(f"the highest cost of a call is {most:g}; give a finite cost above zero")
        return most

    def _unsent(self, connection: Connection, had: Container[int]) -> dict[int, _Claim]:
        """Calls that were handed out in a turn whose end was not known; ``had`` are those of this trade."""
        rows = connection.execute(TAKEN_BY, {"whose": self._workers.me}).all()
        return {
            row.call: _Claim(row.cell, row.most, self._request(row.call, row.cell))
            for row in rows
            if row.call not in self._mine and row.call not in had
        }

    def _claim(self, found: dict[int, _Claim], n: int) -> None:
        """Add calls until there are n."""
        self._is_too_dear = False
        while len(found) < n:
            cell = self._known.take(lambda number: self._cost(number) <= self._free + _SLACK)
            self._is_too_dear = cell is None and self._known.waits
            if cell is None:
                break
            most = self._cost(cell)
            call = self._copy.call(cell, self._workers.me, most)
            found[call] = _Claim(cell, most, self._request(call, cell))

    def _request(self, call: int, cell: int) -> Request:
        drawn = self._known.of("propensity", cell)
        return Request(
            call,
            self._known.cell(cell),
            None if math.isnan(drawn) else drawn,
            self._known.of("phase", cell) if self.sampler.allocation is Allocation.PHASED else None,
        )

    def _plan(self) -> bool:
        """Plan what comes next, outside of the lock; whether there is something now, by whomever."""
        known, at = self._known, (self._about["rounds"], self._about["passes"])
        if known.waits or not self._affords_any or self._about["stopped"] is not None:
            return False
        if self._planned_at == at and known.settled < self._until:
            return False
        if self.sampler.waits_for_all and (known.under_way or (known.notes and self._begin_pass(at[1]))):
            return not known.under_way
        last = known.notes[-1] if known.notes else None
        planned = self.sampler.decide(self.cells(), last)
        self._stop = planned.reason if isinstance(planned, Stop) else None
        if isinstance(planned, Planned):
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
        text = self._copy.text_of(planned)

        def begin(connection: Connection) -> None:
            if self._about["rounds"] == rounds:  # nobody else has
                self._copy.begin(connection, planned, text)

        self._turn(begin)

    def _begin_pass(self, passes: int) -> bool:
        """Put the next pass of the round together; whether there is one."""
        close, ask = self.sampler.next_pass(self.cells())
        if not close.size and not ask.size:
            return False

        def begin(connection: Connection) -> None:
            if self._about["passes"] == passes:  # nobody else has
                for cell in close.tolist():
                    self._copy.change(cell, self._workers.me, state=CLOSED)
                self._copy.begin_pass(connection, ask)

        self._turn(begin)
        return True

    # what comes back

    def _check(self, came: Sequence[Reading]) -> None:
        told = {reading.request.id for reading in self._untold}
        for reading in came:
            self.sampler.check(reading)
            call = reading.request.id
            if call in told or call not in self._mine or self._mine[call].request != reading.request:
                raise SamplerError(
                    f"a reading of request {call} ({reading.request.cell}), which this worker does not have; "
                    "tell each request that trade() returned exactly once"
                )
            told.add(call)

    def _take_in(self, connection: Connection, reading: Reading) -> None:
        call = reading.request.id
        cell, most, _ = self._mine[call]
        of = partial(self._known.of, number=cell)
        if not self._is_sure and connection.scalar(IS_TOLD, {"which": call}) is not None:
            return
        if of("call") != call or of("state") in (CAME, CLOSED):  # taken for dead, and others have gone on
            self._about["spent"] += reading.cost - most
            self._copy.settle(call, reading.cost, TOO_LATE)
        elif of("state") == TAKEN:
            self._about["held"] -= most
            self._settle(cell, call, reading)
        else:  # taken for dead, and counted at the most
            self._about["spent"] -= most
            self._copy.change(cell, self._workers.me, lost=of("lost") - 1, cost=of("cost") - most)
            self._settle(cell, call, reading)

    def _settle(self, cell: int, call: int, reading: Reading) -> None:
        """A call came back."""
        self._about["spent"] += reading.cost
        self._copy.settle(call, reading.cost, reading.error and self._db.storable(reading.error))
        self._copy.change(
            cell,
            self._workers.me,
            state=OPEN if reading.value is None else CAME,
            value=reading.value,
            cost=self._known.of("cost", cell) + reading.cost,
            passed=self._about["passes"],
        )
        if not self._known.under_way:
            self._about["held"] = 0.0  # what rounding left

    def _lose(self, cell: int, call: int, most: float, cost: float) -> None:
        """A call is lost with whoever made it: no failure, and the cell is asked again."""
        self._about["held"] -= most
        self._about["spent"] += cost
        self._copy.settle(call, cost, LOST if cost else NEVER_SENT)
        of = partial(self._known.of, number=cell)
        self._copy.change(cell, self._workers.me, state=OPEN, lost=of("lost") + 1, cost=of("cost") + cost)

    def _bury(self, connection: Connection, workers: Sequence[int]) -> None:
        """What these have under way counts at its highest cost, and is asked again."""
        for worker in workers:
            lost = connection.execute(TAKEN_BY, {"whose": worker}).all()
            if lost:
                log.warning(
                    "a worker is gone; %d calls that it had count as spent, and are asked again", len(lost)
                )
            for row in lost:
                self._lose(row.cell, row.call, row.most, row.most)
            self._workers.sign_off(connection, worker)

    def _leave(self, connection: Connection) -> None:
        """Tell what is untold, and let go of what is under way."""
        for reading in self._untold:
            self._take_in(connection, reading)
        told = {reading.request.id for reading in self._untold}
        for row in connection.execute(TAKEN_BY, {"whose": self._workers.me}).all():
            if row.call not in told:
                self._lose(row.cell, row.call, row.most, row.most if row.call in self._mine else 0.0)
        self._workers.sign_off(connection, self._workers.me)

    # opening

    def _joined(self, lease: float, clock: Callable[[], float]) -> Workers:
        """As one more worker, with the budget of those that are there."""
        workers = self._workers = Workers(self._db, self._where, lease, clock)
        try:
            self._turn(self._agree)
        except BaseException:
            workers.close()
            with suppress(EvalbudgetError), self._db.write() as connection:
                workers.sign_off(connection, workers.me)
            raise
        return workers

    def _agree(self, connection: Connection) -> None:
        """Others at work must have the same budget; where there are none, this one counts."""
        cap, others = self._about["cap"], self._workers.others(connection)
        if others and cap != self.budget.amount:
            raise StoreError(
                f"{self._where} is being filled with a budget of {shown_amount(cap, self.budget.unit)}, and "
                f"this one is {self.budget}; give every worker the same, or wait until those have ended"
            )
        self._about["cap"] = self.budget.amount
        if not others:
            self._about["stopped"] = None  # whoever goes on asks again
