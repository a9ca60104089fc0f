"""The bill of a race that several processes share: every call is a row beside the race's book."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from sqlalchemy import bindparam, func, select, update

from evalbudget.book import Book
from evalbudget.book._tables import WORKERS
from evalbudget.budget import Budget
from evalbudget.prices import Tariff
from evalbudget.run import Bill, Hold
from evalbudget.run._bill import Follows
from evalbudget.run._bill_rows import BillRows, Turn, amount
from evalbudget.run._sums import LOST
from evalbudget.store._sql import change, rows

_LOOK = 0.25  # seconds between two looks at what others did, of a call that does not fit

_ROOM_OF_OTHERS = select(func.coalesce(func.sum(WORKERS.c.room), 0.0).label("room")).where(
    WORKERS.c.worker != bindparam("me"), WORKERS.c.until > 0.0
)
_KEEP_ROOM = update(WORKERS).where(WORKERS.c.worker == bindparam("who")).values(room=bindparam("kept"))


class SharedBill(Bill):
    """Keeps a cap on what the calls of several processes cost, those under way at any of them included.

    A call is in the store before it is sent. What it cost goes there with whatever its process does next:
    until then it counts at the most that it can cost. Room for calls that are still to follow is kept from
    others, too; that of a process which is gone is free.

    Args:
        cap: in US dollars or tokens.
        tariff: what calls cost here; the others need it of no model that only this process asks.
        risk: as of a :class:`~evalbudget.run.Bill`.
    """

    def __init__(self, cap: Budget, tariff: Tariff, *, risk: float = 0.0) -> None:
        super().__init__(cap, tariff, risk=risk)
        self._book: Book
        self._own: dict[str, float] = {}  # what samples of this process cost
        self._copy: Bill | None = None
        self._look_again = 0.0
        self._room_told = math.nan  # nobody knows whether it was

    def share(self, book: Book) -> None:
        """Stand beside this book from now on; calls that an earlier process of its name left are lost."""
        self._book = book
        self.keep(BillRows(book))
        book.add(self)
        book.once(lambda turn: self.begin(turn, LOST))

    # what this process does

    def look(self) -> None:
        """Take in what other processes did, a few times a second at most."""
        if not self._book.is_told or time.monotonic() >= self._look_again:
            self._look_again = time.monotonic() + _LOOK
            self._book.refresh()

    def of_sample(self, sample: str) -> float:
        """What ended calls of a sample cost so far, also those of which the others do not know yet."""
        own = self._own.get(sample)
        return super().of_sample(sample) if own is None else own

    def copy_to(self, own: Bill) -> None:
        """From now on each call of this process is recorded where this bill is, too, once it has ended."""
        self._copy = own

    def close(self) -> None:
        """Let the copy go; what is under way counts as lost when this process is known to be gone."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def _has_ended(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        with self._lock:
            self._own[hold.sample] = self._own.get(hold.sample, 0.0) + cost
        if self._copy is not None:
            self._copy.add(hold, cost, why, tokens)

    def _put_aside(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        looked = self._book.is_told and time.monotonic() < self._look_again
        if looked and not self._locked_look(model, calls, role, follows):
            return []  # as it was a moment ago
        held = super()._put_aside(model, calls, role, follows)
        if not held:
            self._look_again = time.monotonic() + _LOOK
        return held

    def _locked_look(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        with self._lock:
            return self._would_hold(model, calls, role, follows)

    # in a turn

    def take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others did; anew, where nobody knows how far the last turn got."""
        if anew:
            self._room_told = math.nan
        super().take_in(turn, anew=anew)
        (found,) = rows(turn.connection, _ROOM_OF_OTHERS, {"me": turn.me})
        self.room_of_others = amount(found.room)

    def write(self, turn: Turn) -> None:
        """What this process keeps for calls that are to follow."""
        room = self.room
        if room != self._room_told:
            self._room_told = room
            change(turn.connection, _KEEP_ROOM, {"who": turn.me, "kept": room})

    def bury(self, turn: Turn, worker: int) -> None:
        """A process is gone: what it had under way counts at the most that it can cost."""
        self._lose(turn, worker, LOST)
