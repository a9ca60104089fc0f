"""What happens to calls under the lock of a book: claimed, come back, lost, given back, paid beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from evalbudget.book._copy import Copy, check_numbers
from evalbudget.book._statements import (
    A_CALL,
    CUT_OFF,
    LOST,
    LOST_BY,
    NEVER_SENT,
    TAKEN_BY,
    TOO_LATE,
    WHOSE,
)
from evalbudget.cells import CAME, CLOSED, OPEN, TAKEN
from evalbudget.design import Reading, Request

_NO_CALL = -1
_NO_REPLY = (LOST, CUT_OFF, NEVER_SENT, TOO_LATE)


class Claim(NamedTuple):
    """A call that a worker has.

    Attributes:
        cell: number of its cell.
        most: its highest cost.
        request: what is asked.
        attempt: which call of its model and item it is, from 0.
    """

    cell: int
    most: float
    request: Request
    attempt: int


class Turn:
    """One worker's turn; written by :meth:`Copy.write` at its end, in whole or not at all.

    Args:
        copy: of the book, as of now.
        connection: that has the lock.
        me: number of the worker.
        storable: what the database can keep of a text.

    Attributes:
        connection: that has the lock.
        me: number of the worker.
        about: numbers of the book, as this turn changes them.
        storable: what the database can keep of a text.
    """

    def __init__(self, copy: Copy, connection: Connection, me: int, storable: Callable[[str], str]) -> None:
        self.connection = connection
        self._copy, self.me, self.storable = copy, me, storable
        self._known, self.about = copy.known, copy.about

    def call(self, cell: int, most: float, attempt: int | None = None) -> Claim:
        """Hand a cell out, as the next call of its model and item, or the one of this number."""
        call, attempt = self._copy.call(cell, self.me, most, attempt)
        return Claim(cell, most, self._known.request(call, cell), attempt)

    def taken(self, worker: int | None = None) -> dict[int, Claim]:
        """What this worker, or another one, has under way, by the number of the call."""
        rows = self.connection.execute(TAKEN_BY, {"whose": self.me if worker is None else worker}).all()
        tried = self._known.tried  # some may have come back in this turn
        return self._claims([r for r in rows if (tried(r.cell).state, tried(r.cell).call) == (TAKEN, r.call)])

    def lost(self) -> dict[int, Claim]:
        """What this worker had when it was taken for dead, and nobody has told of."""
        return self._claims(self.connection.execute(LOST_BY, {"whose": self.me}).all())

    def _claims(self, rows: Sequence[Any]) -> dict[int, Claim]:
        try:
            for row in rows:
                check_numbers(row, whole=("call", "cell", "attempt"), real=("most",))
                if row.attempt < 0:
                    raise ValueError(f"call {row.call} is number {row.attempt} of its item")
        except ValueError as ex:
            raise self._copy.damaged(ex) from ex
        return {
            row.call: Claim(row.cell, row.most, self._known.request(row.call, row.cell), row.attempt)
            for row in rows
        }

    def withdraw(self, model: int, why: str) -> None:
        """Ask a model nothing more."""
        if model not in self._known.why_withdrawn:
            self._copy.withdraw(model, self.storable(why))

    def pay(self, cost: float, why: str) -> None:
        """Pay for what is of no cell."""
        self._copy.pay(self.me, cost, self.storable(why))

    # what becomes of calls

    def take_in(self, claim: Claim, reading: Reading) -> None:
        """A call came back."""
        call, most = reading.request.id, claim.most
        was = self._known.tried(claim.cell)
        if was.call != call or was.state in (CAME, CLOSED):  # taken for dead, and others have gone on
            self.about["spent"] += reading.cost - most
            self._copy.settle(call, reading.cost, TOO_LATE)
            self._change_of_others(claim.cell, cost=was.cost + reading.cost - most)
            return
        if was.state == TAKEN:
            self.about["held"] -= most
        else:  # taken for dead, and counted at the most
            self.about["spent"] -= most
            was = was._replace(lost=was.lost - 1, cost=was.cost - most)
        self.about["spent"] += reading.cost
        self._copy.settle(call, reading.cost, reading.error and self.storable(reading.error))
        self._copy.change(
            claim.cell,
            self.me,
            state=OPEN if reading.value is None else CAME,
            value=reading.value,
            lost=was.lost,
            cost=was.cost + reading.cost,
            passed=self.about["passes"],
        )

    def score_again(self, readings: Sequence[Reading]) -> None:
        """Calls that came back have other scores than they had, or one, or none."""
        for reading in readings:
            call, row = reading.request.id, self._row(reading.request.id)
            was = self._known.tried(row.cell)
            if row.cost is None or row.error in _NO_REPLY:
                continue
            if was.call != call or was.state not in (OPEN, CAME):  # asked again meanwhile
                continue
            self._copy.settle(call, row.cost, reading.error and self.storable(reading.error))
            self._copy.change(
                row.cell, self.me, state=OPEN if reading.value is None else CAME, value=reading.value
            )

    def bury(self, worker: int) -> int:
        """A worker is gone: what it has under way counts at the most, and is asked again; how many calls."""
        lost = self.taken(worker)
        for call in lost:
            self._lose(self._row(call), LOST)
        return len(lost)

    def lose(self, calls: Sequence[int], why: str) -> None:
        """Nobody knows whether these were answered: they count at the most, and are asked again."""
        for call in calls:
            row = self._row(call)
            if row.cost is None:
                self._lose(row, why)
            elif row.error == LOST:
                self._copy.settle(call, row.cost, why)

    def _lose(self, row: Any, why: str) -> None:
        self.about["held"] -= row.most
        self.about["spent"] += row.most
        self._copy.settle(row.call, row.most, why)
        was = self._known.tried(row.cell)
        self._copy.change(row.cell, self.me, state=OPEN, lost=was.lost + 1, cost=was.cost + row.most)

    def give_back(self, calls: Sequence[int]) -> None:
        """They were never sent: it is as if they had not been handed out, also where they count as lost."""
        for call in calls:
            row = self._row(call)
            was_lost = row.error == LOST
            if row.cost is not None and not was_lost:  # in a turn whose end was not known
                continue
            was = self._known.tried(row.cell)
            self.about["spent" if was_lost else "held"] -= row.most
            self._copy.settle(call, 0.0, NEVER_SENT)
            new: dict[str, Any] = {"tries": was.tries - 1}
            if was_lost:
                new |= {"lost": was.lost - 1, "cost": was.cost - row.most}
            if was.call == call and was.state in (OPEN, TAKEN):
                self._copy.change(row.cell, self.me, state=OPEN, call=_NO_CALL, **new)
            else:  # others had it since
                self._change_of_others(row.cell, **new)

    def _row(self, call: int) -> Any:
        return self.connection.execute(A_CALL, {"which": call}).one()

    def _change_of_others(self, cell: int, **new: Any) -> None:
        """Change what is counted of a cell, and leave it with whoever has it."""
        self._copy.change(cell, int(self.connection.scalar(WHOSE, {"which": cell}) or 0), **new)
