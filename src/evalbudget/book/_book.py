"""What was planned, who has which cell, what calls cost: buying and sharing are queries of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from evalbudget._version import __version__
from evalbudget.book._known import Known
from evalbudget.book._notes import packed, unpacked
from evalbudget.book._tables import ABOUT, CALLS, CELLS, LAYOUT, META, ROUNDS
from evalbudget.book._workers import MEMORY, Workers
from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.cells import CAME, CLOSED, OPEN, TAKEN, Cells, Planned, Stop, Wait
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import BudgetError, EvalbudgetError, SamplerError, StoreDownError, StoreError
from evalbudget.sampler import Allocation, Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Database, Terms

T = TypeVar("T")

log = shown_logger(__name__)

LOST = "cut off: its process ended"
"""Why a call has no reply whose worker is gone."""
USED_UP = "budget used up"
"""Why nothing more is asked, where nothing else ended it."""
_SLACK = 1e-9

_ROUNDS = select(ROUNDS).where(ROUNDS.c.round >= bindparam("after")).order_by(ROUNDS.c.round)
_CHANGED = select(CELLS).where(CELLS.c.changed > bindparam("after")).order_by(CELLS.c.changed)
_TAKEN = (
    select(CELLS.c.cell, CELLS.c.call, CALLS.c.most, CALLS.c.cost)
    .join_from(CELLS, CALLS, CELLS.c.call == CALLS.c.call)
    .where(CELLS.c.state == TAKEN, CELLS.c.worker == bindparam("whose"))
)
_IS_TOLD = select(CALLS.c.cost).where(
    CALLS.c.call == bindparam("which"), CALLS.c.error.is_distinct_from(LOST)
)
_SETTLE = (
    update(CALLS)
    .where(CALLS.c.call == bindparam("which"))
    .values(cost=bindparam("paid"), error=bindparam("why"))
)
_ABOUT = ("cap", "spent", "held", "rounds", "calls", "changes", "stopped")
_KEEP = update(ABOUT).values({name: bindparam(f"new_{name}") for name in _ABOUT})


_COLUMNS = [column.name for column in CELLS.columns]


def _upsert(insert_into: Any) -> Any:
    rows = insert_into(CELLS)
    changed = {name: rows.excluded[name] for name in _COLUMNS if name != "cell"}
    return rows.on_conflict_do_update(index_elements=["cell"], set_=changed)


_UPSERT = {"sqlite": _upsert(sqlite.insert), "postgresql": _upsert(postgresql.insert)}


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
        self._restart()
        terms = _terms(sampler, about or {})
        self._db = self._opened(terms, clock)
        try:
            self._workers = self._joined(terms, lease, clock)
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
                        before = self._look(connection)
                        self._bury(connection, self._workers.gone(connection))
                        found = act(connection)
                        self._write(connection, before)
                    return found
                except StoreDownError:  # gone in the middle: begin anew, and look how far it got
                    self._restart()
                    self._is_sure = False
                    if not entered:
                        raise
                except BaseException:
                    self._restart()
                    self._is_sure = False
                    raise

    def _restart(self) -> None:
        self._known = Known(self.sampler)
        self._about: dict[str, Any] = {**dict.fromkeys(_ABOUT, 0), "stopped": None, "changes": 0}
        self._cells: dict[int, dict[str, Any]] = {}  # rows to be written at the end of a turn
        self._calls: list[dict[str, Any]] = []
        self._settled: list[dict[str, Any]] = []

    def _write(self, connection: Connection, before: Mapping[str, Any]) -> None:
        if self._calls:
            connection.execute(insert(CALLS), self._calls)
        if self._settled:
            connection.execute(_SETTLE, self._settled)
        if self._cells:
            connection.execute(_UPSERT[connection.dialect.name], list(self._cells.values()))
        if self._about != before:
            connection.execute(_KEEP, {f"new_{name}": value for name, value in self._about.items()})
        self._calls, self._settled, self._cells = [], [], {}

    def _look(self, connection: Connection) -> dict[str, Any]:
        """What others did, as columns; returns the numbers that are kept."""
        about = connection.execute(select(ABOUT)).one()
        try:
            if about.rounds > len(self._known.notes):
                for row in connection.execute(_ROUNDS, {"after": len(self._known.notes)}):
                    self._known.begin(Planned(*unpacked(row.planned, self.sampler.note_kinds)))
            if about.changes > self._about["changes"]:
                for row in connection.execute(_CHANGED, {"after": self._about["changes"]}):
                    self._set(row.cell, row.state, row.value, row.tries, row.cost, row.call)
        except (LookupError, TypeError, ValueError, AttributeError) as ex:
            raise StoreError(f"{self._where} is damaged: {ex}; restore a copy, or begin a new one") from ex
        self._about = {name: getattr(about, name) for name in _ABOUT}
        return dict(self._about)

    def _set(self, cell: int, state: int, value: float | None, tries: int, cost: float, call: int) -> None:
        if not (0 <= cell < len(self._known) and state in range(4) and tries >= (state != CLOSED)):
            raise ValueError(f"cell {cell} is in state {state} after {tries} tries")
        if (state == CAME) != (value is not None and math.isfinite(value)):
            raise ValueError(f"cell {cell} is in state {state} with the score {value}")
        self._known.set(cell, state, value, tries, cost, call)

    def _change(
        self, cell: int, state: int, call: int, *, value: float | None = None, paid: float = 0.0
    ) -> None:
        """Change a cell, here and at the end of the turn in the book."""
        self._about["changes"] += 1
        tries = self._known.of("tries", cell) + (state == TAKEN)
        cost = self._known.of("cost", cell) + paid
        self._known.set(cell, state, value, tries, cost, call)
        self._cells[cell] = {
            "cell": cell,
            "state": state,
            "worker": self._workers.me,
            "call": call,
            "tries": tries,
            "value": value,
            "cost": cost,
            "changed": self._about["changes"],
        }

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
            rows = connection.execute(_TAKEN, {"whose": self._workers.me}).all()
            found = {
                row.call: (row.cell, row.most)
                for row in rows
                if row.call not in self._mine and row.call not in had
            }
            self._is_sure = True
        for hopeless in self._known.hopeless():
            self._change(hopeless, CLOSED, self._known.of("call", hopeless))
        while len(found) < n:
            cell = self._known.take(lambda number: self._cost(number) <= self._free + _SLACK)
            self._is_too_dear = cell is None and self._known.waits
            if cell is None:
                break
            call, most = self._about["calls"], self._cost(cell)
            self._about["calls"] += 1
            self._about["held"] += most
            self._calls.append({"call": call, "cell": cell, "worker": self._workers.me, "most": most})
            self._change(cell, TAKEN, call)
            found[call] = cell, most
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
            text = packed(tuple(planned), self.sampler.note_kinds)

            def begin(connection: Connection) -> None:
                if self._about["rounds"] == rounds:  # nobody else has
                    connection.execute(insert(ROUNDS), {"round": rounds, "planned": text})
                    self._about["rounds"] += 1
                    self._known.begin(planned)

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
        if self._known.of("call", cell) != call:
            return  # this worker was taken for dead, and somebody else asked the cell again
        if not self._is_sure and connection.scalar(_IS_TOLD, {"which": call}) is not None:
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
        self._settled.append({"which": call, "paid": cost, "why": error and self._db.storable(error)})
        self._change(cell, OPEN if value is None else CAME, call, value=value, paid=cost - before)
        if not self._known.under_way:
            self._about["held"] = 0.0  # what rounding left

    def _bury(self, connection: Connection, workers: Sequence[int]) -> None:
        """What these have under way counts at its highest cost, and is asked again."""
        for worker in workers:
            lost = connection.execute(_TAKEN, {"whose": worker}).all()
            if lost and worker != self._workers.me:
                log.warning(
                    "a worker is gone; %d calls that it had count as spent, and are asked again", len(lost)
                )
            for row in lost:
                self._about["held"] -= row.most
                self._settle(row.cell, row.call, row.most, None, LOST)
            self._workers.sign_off(connection, worker)

    # opening

    def _opened(self, terms: Terms, clock: Callable[[], float]) -> Database:
        """The book, begun if nothing is there."""
        meta = {"terms": terms.as_json()}
        in_memory = self._where.path == MEMORY
        if in_memory or not Database.exists(self._where, LAYOUT):
            least = self.sampler.minimum_readings
            if self.budget.unit is Unit.SCORES and self.budget.amount < least:
                raise BudgetError(
                    f"budget of {self.budget} is below the {least} that {self.sampler.name} needs before it "
                    f"can choose; give {least} or more"
                )
            if in_memory:
                return Database.in_memory(LAYOUT, meta, clock)
            try:
                return Database.create(self._where, LAYOUT, meta, clock)
            except FileExistsError:  # somebody else was quicker
                pass
        return Database.open(self._where, LAYOUT, clock)

    def _joined(self, terms: Terms, lease: float, clock: Callable[[], float]) -> Workers:
        """As one more worker, on the terms of those that are there."""
        with self._db.write() as connection:
            kept = connection.scalar(select(META.c.value).where(META.c.key == "terms")) or ""
            terms.check(kept, self._where)
            about = connection.execute(select(ABOUT)).one_or_none()
            if about is None:
                connection.execute(insert(ABOUT), {"id": 1, "cap": self.budget.amount, **_NOTHING})
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


def spent_in(sampler: Sampler, where: Address, about: Mapping[str, Any] | None = None) -> float:
    """What the calls of a book cost, those under way at their highest cost; nothing is written.

    Args:
        sampler: that plans.
        where: the book is; nothing need be there.
        about: as whoever fills it says.

    Raises:
        StoreError: it is none, or of another purchase.
        StoreDownError: it cannot be reached.
    """
    if not Database.exists(where, LAYOUT):
        return 0.0
    with closing(Database.open(where, LAYOUT)) as db, db.read() as connection:
        kept = connection.scalar(select(META.c.value).where(META.c.key == "terms")) or ""
        _terms(sampler, about or {}).check(kept, where)
        found = connection.execute(select(ABOUT.c.spent, ABOUT.c.held)).one_or_none()
        return 0.0 if found is None else float(found.spent + found.held)


def _terms(sampler: Sampler, about: Mapping[str, Any]) -> Terms:
    return Terms(__version__, sampler.design.fingerprint, {**sampler.config, **about})


_NOTHING = {"spent": 0.0, "held": 0.0, "rounds": 0, "calls": 0, "changes": 0, "stopped": None}
