"""Bills whose calls are rows of a database that one process at a time has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from evalbudget.book._tables import BILL
from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError
from evalbudget.prices import Tariff
from evalbudget.run._bill import Bill
from evalbudget.run._bill_rows import OF_DAMAGE, BillRows, damaged, unit_of
from evalbudget.run._own_file import file_of_own
from evalbudget.run._sums import CUT_OFF, Sums
from evalbudget.store import Address, Database, Layout, looked_into

T = TypeVar("T")


def bill_on_file(path: Path, cap: Budget, tariff: Tariff, *, risk: float = 0.0) -> Bill:
    """Begin a bill in a file of its own, or go on with one; what was under way when it was left is spent.

    Args:
        path: of the file.
        cap: in US dollars or tokens.
        tariff: what calls cost.
        risk: as of a :class:`~evalbudget.run.Bill`.

    Raises:
        HeldError: another process writes it.
        JournalError: the file is no bill or damaged.
        BudgetError: it is in another unit.
    """
    with ExitStack() as opened:
        db = opened.enter_context(file_of_own(path, BILL))
        bill = bill_in(db, cap, tariff, risk=risk)
        bill.opened.push(opened.pop_all())
    return bill


def bill_in(
    db: Database | Callable[[], Database],
    cap: Budget,
    tariff: Tariff,
    *,
    risk: float = 0.0,
    waits: bool = False,
) -> Bill:
    """The same, among other things of the only process that has them.

    Args:
        db: that has the tables; or what opens one, which is closed with the bill.
        cap: as above.
        tariff: as above.
        risk: as above.
        waits: until the first call, since the database is yet to be begun.

    Raises:
        JournalError: what stands there is damaged.
        BudgetError: it is in another unit.
    """
    bill = Bill(cap, tariff, risk=risk)
    turns = _OwnTurns(bill, db)
    bill.keep(BillRows(turns))
    try:
        if not waits:
            turns.once(lambda _: None)
    except BaseException:
        bill.opened.close()
        raise
    return bill


class _Turn(NamedTuple):
    connection: Connection
    where: Address
    me: int = 0


class _OwnTurns:
    """At a database that no other process has: each is a transaction."""

    def __init__(self, bill: Bill, db: Database | Callable[[], Database]) -> None:
        self._bill, self._db = bill, db
        self._guard = RLock()
        self._is_begun, self._is_sure = False, False

    def once(self, act: Callable[[Any], T]) -> T:
        with self._guard:
            if not isinstance(self._db, Database):
                self._db = self._bill.opened.enter_context(closing(self._db()))
            sure, self._is_sure = self._is_sure, False  # until all of it is written
            with self._db.write() as connection:
                turn = _Turn(connection, self._db.address)
                if not sure:
                    self._look(turn, self._db)
                found = act(turn)
            self._is_sure = self._is_begun = True
            return found

    def later(self, act: Callable[[Any], object]) -> None:
        self.once(act)

    def _look(self, turn: _Turn, db: Database) -> None:
        try:
            self._bill.take_in(turn, anew=True)
            if not self._is_begun:
                self._bill.begin(turn, CUT_OFF)
        except BudgetError as ex:
            raise BudgetError(f"{db.address}: {ex}") from None
        except OF_DAMAGE as ex:
            raise damaged(db.address, ex) from ex


def spent_on(path: Path, layout: Layout = BILL) -> tuple[Unit, dict[str, float]]:
    """What the calls of a bill in a file cost, those under way at the most; nothing is written.

    Args:
        path: of the file.
        layout: of what is in it, beside the bill or not.

    Returns:
        Its unit, and costs by sample; those of no sample have an empty name. Nothing was paid in scores.

    Raises:
        JournalError: or what the layout names: the file is none such, is damaged, or cannot be read.
    """
    with looked_into(path, layout) as db:
        return spent_in(db) or (Unit.SCORES, {})


def spent_in(db: Database) -> tuple[Unit, dict[str, float]] | None:
    """The same, of the bill in a database; None if there is none.

    Raises:
        JournalError: it is damaged.
    """
    unit = unit_in(db)
    if unit is None:
        return None
    sums = Sums(0.0)
    with db.read() as connection, _readable(db):
        for _, hold, end in BillRows.changed(connection, 0):
            sums.take(hold, end)
    return unit, sums.of_samples


def unit_in(db: Database) -> Unit | None:
    """Of the bill in a database; None if there is none.

    Raises:
        JournalError: it is damaged.
    """
    with db.read() as connection, _readable(db):
        return unit_of(connection)


@contextmanager
def _readable(db: Database) -> Iterator[None]:
    try:
        yield
    except OF_DAMAGE as ex:
        raise damaged(db.address, ex) from ex
