"""What was planned, who has which cell, what calls cost: buying and sharing are queries of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from evalbudget.book._copy import Copy
from evalbudget.book._known import Known
from evalbudget.book._opening import opened, terms_of
from evalbudget.book._statements import IS_TOLD, LOST, TAKEN_BY, TOO_LATE
from evalbudget.book._tables import CALLS, CELLS
from evalbudget.book._workers import MEMORY, Workers
from evalbudget.budget import Budget, shown_amount
from evalbudget.cells import CAME, CLOSED, OPEN, TAKEN, Cells, Planned, Stop, Wait
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import EvalbudgetError, SamplerError, StoreDownError, StoreError
from evalbudget.sampler import Allocation, Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Address

T = TypeVar("T")

log = shown_logger(__name__)

USED_UP = "budget used up"
"""Why nothing more is asked, where nothing else ended it."""
_SLACK = 1e-9


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
        self._where = where or Address(path=MEMORY)
        self._guard = threading.RLock()
        self._untold: list[Reading] = []
        self._mine: dict[int, tuple[int, float]] = {}  # cell and highest cost of calls that this worker has
        self._is_sure = True  # whether what was written last is known to be written, or not to be
        self._planned_at = -1, -1  # rounds and settled tries when nothing could be planned
        self._stop: str | None = None
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
            for reading in came:
                self._check(reading)
            self._untold.extend(came)
            found: dict[int, tuple[int, float]] = {}
            try:
                while True:
                    rounds = self._take_turn(found, n)
                    if len(found) >= n or not self._plan(rounds):
                        break
            except BaseException:
                self._is_sure = False  # what was claimed before is handed out by the next one
                raise
            self._mine |= found
            return [self._request(call, cell) for call, (cell, _) in found.items()]

    def _take_turn(self, found: dict[int, tuple[int, float]], n: int) -> int:
        """Tell what is untold, and claim what is missing of n; how many rounds there are."""

        def act(connection: Connection) -> dict[int, tuple[int, float]]:
            for reading in self._untold:
                self._take_in(connection, reading)
            return {} if self._about["stopped"] else self._claim(connection, n - len(found), found)

        claimed = self._turn(act)
        for reading in self._untold:
            self._mine.pop(reading.request.id, None)
        self._untold.clear()
        found |= claimed
        return len(self._known.notes)

    def stop(self, reason: str) -> None:
        """Hand out nothing more, to whichever worker; what is under way may still come back."""
        self._turn(lambda _: self._about.update(stopped=reason))

    def close(self, *, patience: float | None = None) -> None:
        """Leave; what this worker has under way counts at its highest cost, and may be asked by others.

        Args:
            patience: seconds to wait for a book that cannot be reached; None as long as ever.
        """
        with self._guard:
            if patience is not None:
                self._db.patience = patience
            self._workers.close()
            try:
                self._turn(lambda connection: self._bury(connection, [self._workers.me]))
            except EvalbudgetError as ex:  # others find out
                log.warning("a worker could not sign off: %s", ex)
            finally:
                self._db.close()

    # what is known, as of the last look

    @property
    def spent(self) -> float:
        """By calls that came back, and those that were lost, at their highest cost."""
        return float(self._about["spent"])

    @property
    def finished(self) -> bool:
        """Nothing is under way, and nothing more will be asked."""
        if self._known.under_way:
            return False
        return bool(self._about["stopped"] or self._stop) or not self._affords_any or self._is_too_dear

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return str(self._about["stopped"] or self._stop or USED_UP)

    def held(self, request: Request) -> float:
        """The highest cost that is held for a call of this worker."""
        return self._mine[request.id][1]

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
        with self._guard, self._db.read() as connection:
            rows = connection.execute(
                select(CALLS).where(CALLS.c.cost.is_not(None)).order_by(CALLS.c.call)
            ).all()
            last = dict(
                connection.execute(select(CELLS.c.cell, CELLS.c.call).where(CELLS.c.state == CAME)).all()
            )
        found = []
        for row in rows:
            value = self._known.of("value", row.cell) if last.get(row.cell) == row.call else None
            found.append(Reading(self._request(row.call, row.cell), value, row.cost, row.error))
        return tuple(found)

    # a turn

    def _turn(self, act: Callable[[Connection], T]) -> T:
        """Do something under the book's lock, knowing what others did; written in whole or not at all."""
        with self._guard:
            while True:
                entered = False
                try:
                    with self._db.write() as connection:
                        entered = True
                        self._copy.look(connection)
                        self._bury(connection, self._workers.gone(connection))
                        found = act(connection)
                        self._copy.write(connection)
                    return found
                except BaseException as ex:  # nobody knows how far it got: begin anew, and look
                    self._copy, self._is_sure = Copy(self.sampler, self._where), False
                    if not entered or not isinstance(ex, StoreDownError):
                        raise

    @property
    def _known(self) -> Known:
        return self._copy.known

    @property
    def _about(self) -> dict[str, Any]:
        return self._copy.about

    # claiming

    @property
    def _free(self) -> float:
        return float(self.budget.amount - self._about["spent"] - self._about["held"])

    @property
    def _affords_any(self) -> bool:
        return (0.0 if callable(self._most) else self._most) <= self._free + _SLACK and self._free > _SLACK

    def _cost(self, cell: int) -> float:
        return self._most(self._known.cell(cell)) if callable(self._most) else self._most

    def _claim(self, connection: Connection, n: int, had: Container[int]) -> dict[int, tuple[int, float]]:
        """Cells and highest costs of up to n calls, by their numbers; ``had`` are those of this trade."""
        found: dict[int, tuple[int, float]] = {}
        if not self._is_sure:  # handed out in a turn whose end was not known
            rows = connection.execute(TAKEN_BY, {"whose": self._workers.me}).all()
            found = {
                row.call: (row.cell, row.most)
                for row in rows
                if row.call not in self._mine and row.call not in had
            }
            self._is_sure = True
        for hopeless in self._known.hopeless():
            self._copy.change(hopeless, CLOSED, self._workers.me, self._known.of("call", hopeless))
        while len(found) < n:
            cell = self._known.take(lambda number: self._cost(number) <= self._free + _SLACK)
            self._is_too_dear = cell is None and self._known.waits
            if cell is None:
                break
            most = self._cost(cell)
            found[self._copy.call(cell, self._workers.me, most)] = cell, most
        return found

    def _request(self, call: int, cell: int) -> Request:
        drawn = self._known.of("propensity", cell)
        return Request(
            call,
            self._known.cell(cell),
            None if math.isnan(drawn) else drawn,
            self._known.of("phase", cell) if self.sampler.allocation is Allocation.PHASED else None,
        )

    def _plan(self, rounds: int) -> bool:
        """Plan the next round, outside of the lock; whether there is one now, by whomever."""
        known = self._known
        if known.waits or not self._affords_any or self._about["stopped"] is not None:
            return False
        if self.sampler.waits_for_all and known.under_way:
            return False
        if self._planned_at == (rounds, known.settled):
            return False  # nothing is new since it said to wait, or to stop
        last = known.notes[-1] if known.notes else None
        planned = self.sampler.decide(self.cells(), last)
        self._stop = planned.reason if isinstance(planned, Stop) else None
        if isinstance(planned, Planned):
            if not planned.item.size and planned.note == last:
                raise SamplerError(
                    f"sampler {self.sampler.name!r} planned an empty round twice; it must wait or stop"
                )
            text = self._copy.text_of(planned)

            def begin(connection: Connection) -> None:
                if self._about["rounds"] == rounds:  # nobody else has
                    self._copy.begin(connection, planned, text)

            self._turn(begin)
            return True
        if isinstance(planned, Wait) and not known.under_way:
            raise SamplerError(
                f"sampler {self.sampler.name!r} waits with nothing under way; it must plan or stop"
            )
        self._planned_at = rounds, known.settled
        return False

    # what comes back

    def _check(self, reading: Reading) -> None:
        self.sampler.check(reading)
        call = reading.request.id
        if call not in self._mine or self._known.cell(self._mine[call][0]) != reading.request.cell:
            raise SamplerError(
                f"a reading of request {call} ({reading.request.cell}), which this worker does not have; "
                "tell each request that trade() returned exactly once"
            )

    def _take_in(self, connection: Connection, reading: Reading) -> None:
        call = reading.request.id
        cell, most = self._mine[call]
        if not self._is_sure and connection.scalar(IS_TOLD, {"which": call}) is not None:
            return
        if self._known.of("call", cell) != call:  # it was taken for dead, and somebody else has the cell
            self._about["spent"] += reading.cost - most
            self._copy.settle(call, reading.cost, TOO_LATE)
            return
        if self._known.of("state", cell) == TAKEN:
            self._about["held"] -= most
            paid = 0.0
        else:  # it was taken for dead, and counted at the most
            paid = most
        self._about["spent"] -= paid
        self._settle(cell, call, reading.cost, reading.value, reading.error, before=paid)

    def _settle(
        self,
        cell: int,
        call: int,
        cost: float,
        value: float | None,
        error: str | None,
        *,
        before: float = 0.0,
    ) -> None:
        """A call came back, or never will; ``before`` is what was counted for it already."""
        self._about["spent"] += cost
        self._copy.settle(call, cost, error and self._db.storable(error))
        state = OPEN if value is None else CAME
        self._copy.change(cell, state, self._workers.me, call, value=value, paid=cost - before)
        if not self._known.under_way:
            self._about["held"] = 0.0  # what rounding left

    def _bury(self, connection: Connection, workers: Sequence[int]) -> None:
        """What these have under way counts at its highest cost, and is asked again."""
        for worker in workers:
            lost = connection.execute(TAKEN_BY, {"whose": worker}).all()
            if lost and worker != self._workers.me:
                log.warning(
                    "a worker is gone; %d calls that it had count as spent, and are asked again", len(lost)
                )
            for row in lost:
                self._about["held"] -= row.most
                self._settle(row.cell, row.call, row.most, None, LOST)
            self._workers.sign_off(connection, worker)

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
