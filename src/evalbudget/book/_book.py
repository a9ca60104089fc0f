"""What was planned, who has which cell, what calls cost: buying and sharing are queries of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection

from evalbudget.book._calls import Called, Unread, beside_in, calls_in, known_calls, unread_in
from evalbudget.book._copy import ADOPTED
from evalbudget.book._opening import opened, terms_of
from evalbudget.book._others import look
from evalbudget.book._statements import BESIDE, CUT_OFF, LOST
from evalbudget.book._tables import ALONE, LAYOUT
from evalbudget.book._turn import Claim, Most, Till, Turn, texts_of
from evalbudget.book._turns import Turns
from evalbudget.book._workers import MEMORY, Workers
from evalbudget.budget import USED_UP, Budget, shown_amount
from evalbudget.cells import CLOSED, Cells, Planned
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreError
from evalbudget.sampler import Sampler
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Database
from evalbudget.store._sql import Asked

log = shown_logger(__name__)


class Book(Turns):
    """One purchase by one or several processes: rounds of one sampler, read cell by cell.

    What is spent and held never exceeds the budget. A round is planned once, by whoever needs it first, and
    everybody hands out its cells in its order. Nothing is repeated: a worker that joins reads the columns.

    Args:
        sampler: that plans; every worker gives one like it.
        budget: what may be spent in all.
        where: a path, or ``postgresql://user@host/database#name``; begun if nothing is there. None: in
            memory. Or a database of the caller's that is open and has the tables of :data:`ALONE`: no other
            worker has it at the same time; the caller sees to that.
        most: the highest cost of one call, of a call for each item, or of one for a given cell, whose
            ``epoch`` counts the calls of its model and item here; 0 for one whose answer is there.
        at_once: how many cells may be under way, of all workers; None: any number.
        about: what else must be the same for all workers, such as the task; JSON values.
        known_as: what this worker is called. Under the name of one that ended, it goes on with what that had
            under way: :attr:`held` and :attr:`lost`. None: as nobody before.
        shown_as: what :meth:`calls` call it, if not that.
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
        where: Address | Database | None = None,
        *,
        most: Most = 1.0,
        at_once: Callable[[], float] | None = None,
        about: Mapping[str, Any] | None = None,
        known_as: str | None = None,
        shown_as: str | None = None,
        defers: bool = False,
        stays_stopped: bool = False,
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        till = Till(budget, most, at_once)
        alone, self._is_callers = not isinstance(where, Address), isinstance(where, Database)
        self.budget = budget
        self._stays_stopped = stays_stopped
        self._has_left = False
        db = opened(
            *(where or Address(path=MEMORY), sampler, budget, terms_of(sampler, about or {}), clock),
            layout=ALONE if alone else LAYOUT,
        )
        try:
            workers = Workers(db, db.address, known_as, shown_as, 0.0 if alone else lease, clock)
            super().__init__(sampler, db, workers, till, defers=defers)
            self._join()
        except BaseException:
            if not self._is_callers:
                db.close()
            raise

    # what the caller does

    def adopt(
        self,
        planned: Planned,
        most: Sequence[float],
        attempts: Sequence[int],
        begun: Sequence[float] | None = None,
    ) -> Sequence[Request]:
        """Cells that somebody else chose are under way; of a book that nobody shares, before it plans.

        They take the place of what the sampler plans of the same items in that phase.

        Args:
            planned: they; the note is not read.
            most: the highest cost of each, which is held whether the budget pays for it or not.
            attempts: which call of its model and item each is, from 0; later ones go on from the highest.
            begun: what each may be billed by now; None: nothing.

        Returns:
            A request for each, in order.

        Raises:
            InvalidInputError: other workers may take part, or the book has planned something.
        """
        if not self._workers.is_alone or self._copy.n_planned:
            raise InvalidInputError(
                f"{self.where}: cells are adopted by a book that nobody shares, before it plans; begin a "
                "new one"
            )
        by_now = begun or [0.0] * len(most)
        adopted = planned._replace(note=ADOPTED)
        texts = texts_of(self.sampler, adopted)

        def act(turn: Turn) -> list[Claim]:
            first = len(self._copy)
            turn.begin(adopted, texts)
            calls = enumerate(zip(most, attempts, by_now, strict=True), first)
            return [turn.call(cell, cost, attempt, paid) for cell, (cost, attempt, paid) in calls]

        claims = self._take(act)
        self._adopted.add(self._copy, [claim.cell for claim in claims])
        self._mine |= {claim.request.id: claim for claim in claims}
        return [claim.request for claim in claims]

    def begins(self, request: Request, by_now: float) -> None:
        """The host begins what it was handed, and so much may be billed by now: see :func:`begin_anew`."""
        self._do(lambda turn: turn.begin_call(request.id, by_now))

    def score_again(self, readings: Sequence[Reading]) -> None:
        """Calls that came back have other scores than they had: what was planned stands, nothing is paid.

        Args:
            readings: of calls of :meth:`calls`; their costs count for nothing.

        Raises:
            InvalidInputError: the sampler cannot reckon with a score.
        """
        for reading in readings:
            self.sampler.check(reading)
        with self._guard:
            self._take(lambda turn: turn.score_again(readings))
            self._is_stale = True  # counts of what was read and what failed

    def give_back(self, requests: Sequence[Request]) -> None:
        """These were never sent: they cost nothing, and others may be given them."""
        self._do(lambda turn: turn.give_back([request.id for request in requests]))
        self._forget(requests)

    def lose(self, requests: Sequence[Request]) -> None:
        """Nobody will know whether these were answered: each counts at its most, and is asked again."""
        self._take(lambda turn: turn.lose([request.id for request in requests], CUT_OFF))
        self._forget(requests)

    def pays(self, cost: float, why: str) -> bool:
        """Pay for what is of no cell; False, and nothing paid, where that exceeds what is left."""

        def act(turn: Turn) -> bool:
            fits = turn.fits(cost)
            if fits:
                turn.pay(cost, why)
            return fits

        return self.once(act)

    def pay(
        self, cost: float, why: str, *, out_of: Sequence[Request] = (), begun: float | None = None
    ) -> Sequence[Request]:
        """Pay for what is of no cell, if need be out of what is held for these, the last first.

        Args:
            cost: of it.
            why: it is paid.
            out_of: the budget is held for these.
            begun: how much of it may be billed by now, where it is put aside; None: all. See :func:`paid_in`.

        Returns:
            Those that remain; the others are given back.
        """
        if self._defers:
            self._do(lambda turn: turn.pay(cost, why, begun))
            return out_of

        def act(turn: Turn) -> list[Request]:
            left = list(out_of)
            while left and not turn.fits(cost):
                turn.give_back([left.pop().id])
            turn.pay(cost, why, begun)
            return left

        left = self.once(act)
        self._forget(out_of[len(left) :])
        return left

    def withdraw(self, model: int, why: str) -> None:
        """Ask a model nothing more; what is under way of it may still come back."""
        self._do(lambda turn: turn.withdraw(model, why))

    def stop(self, reason: str) -> None:
        """Hand out nothing more, to whichever worker; what is under way may still come back."""
        self._do(lambda turn: turn.about.update(stopped=turn.storable(reason)))

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
                self._take(partial(self._leave, keeps=keeps))
            except EvalbudgetError as ex:  # others find out
                log.warning("a worker could not sign off: %s", ex)
            finally:
                if not self._is_callers:
                    self._has_left = True
                    self._db.close()

    # what is known, as of the last look

    @property
    def finished(self) -> bool:
        """Nothing is under way, and nothing more will be asked."""
        if self._is_stale or self._copy.under_way or self._untold:
            return False
        stopped = self._copy.about["stopped"] is not None or self._why is not None
        return stopped or not self._till.affords_any(self._copy) or self.is_short

    @property
    def is_short(self) -> bool:
        """Whether the cell that comes next cannot be paid, as long as what is under way is not cheaper."""
        copy, till = self._copy, self._till
        first = copy.waiting.first()
        return first is not None and not till.may(copy, till.cost(copy.asked_next(first)))

    @property
    def stopped(self) -> bool:
        """Whether nothing more is handed out, whatever the sampler wants."""
        return self._copy.about["stopped"] is not None

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return str(self._copy.about["stopped"] or self._why or USED_UP)

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
        return self._till.free(self._copy)

    @property
    def has_answers(self) -> bool:
        """Whether the caller has answers that cost nothing: their cells are handed out whatever is left."""
        return self._till.has_answers

    @has_answers.setter
    def has_answers(self, has: bool) -> None:
        self._till.has_answers = has

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
            shut = {self.sampler.closes_as(self._copy.cell(n)) for n in found}
        return tuple(sorted(shut | cells.given_up))

    def cells(self) -> Cells:
        """Every cell that rounds asked for; a view that must not be kept."""
        return self._copy.cells()

    def look(self) -> None:
        """Let the sampler see how it stands, for whoever asks it what is proved."""
        with self._state:
            counts = tuple(self._copy.about[name] for name in ("rounds", "passes", "withdrawn", "changes"))
            now = self._copy, *counts
            if now != self._looked_at:
                self.sampler.look(self._copy.cells(), self._copy.note)
                self._looked_at = now

    def readings(self) -> tuple[Reading, ...]:
        """Every call that came back or was lost, with a score or without, in the order of asking."""
        return tuple(called.reading for called in self.calls())

    def calls(self) -> tuple[Called, ...]:
        """The same, with who made them; what was never sent is left out. Others may write meanwhile."""
        with self._reading() as connection:
            return calls_in(self._copy, connection)

    def unread(self) -> tuple[Unread, ...]:
        """How many of these brought no score, by the reason; counted by the store."""
        with self._reading() as connection:
            return unread_in(connection)

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
                    look(self._copy, Asked(connection))
                    self.spent = float(self._copy.about["spent"])
                    yield connection
            finally:
                if self._has_left:
                    self._db.close()

    def _leave(self, turn: Turn, *, keeps: bool) -> None:
        """Let go of what is under way."""
        if keeps:
            return
        left = list(turn.taken())
        turn.lose([call for call in left if call in self._mine], LOST)
        turn.give_back([call for call in left if call not in self._mine])
        self._workers.sign_off(turn.connection, self._workers.me)

    # opening

    def _join(self) -> None:
        """As one more worker, or one that goes on, with the budget of those that are there."""
        workers = self._workers
        try:
            self._take(self._agree)
            if workers.goes_on:
                self._take(self._inherit)
        except BaseException:
            workers.close()
            with suppress(EvalbudgetError), self._db.write() as connection:
                workers.undo(connection)
            raise

    def _inherit(self, turn: Turn) -> None:
        """What an earlier worker of this name had."""
        self._mine, self._lost = turn.taken(), turn.lost()

    def _agree(self, turn: Turn) -> None:
        """Others at work must have the same budget; where there are none, this one counts."""
        cap, others = turn.about["cap"], self._workers.others(turn.connection)
        if others and cap != self.budget.amount:
            raise StoreError(
                f"{self.where} is being filled with a budget of {shown_amount(cap, self.budget.unit)}, and "
                f"this one is {self.budget}; give every worker the same, or wait until those have ended"
            )
        turn.about["cap"] = self.budget.amount
        if not others and not self._stays_stopped:
            turn.about["stopped"] = None  # whoever goes on asks again
