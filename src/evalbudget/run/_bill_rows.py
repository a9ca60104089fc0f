"""The rows of a bill: what is said of them in SQL, and what they cannot be.

A call is a row before it is sent, and what it cost stands in that row once it is known. One that a kill cut
off has no cost, and counts at the most that it can cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, insert, select, update

from evalbudget.book._tables import BILL, META, PAID_CALLS
from evalbudget.budget import Unit
from evalbudget.errors import JournalError
from evalbudget.run._sums import Hold, kept_name
from evalbudget.store import Address
from evalbudget.store._sql import change, rows

T = TypeVar("T")

_UNIT = "bill"
"""Key in the table ``meta``."""
_MOST_TOKENS = 2**63 - 1
"""That a row can say."""
_NAMES, _HELD = ("model", "sample", "role"), ("most", "bound", "reached", "worker")
_ENDS = ("cost", "why", "tokens")
_UNIT_OF = select(META.c.value).where(META.c.key == _UNIT)
_SIGN, _BEGIN = insert(META), insert(PAID_CALLS)
_CHANGED = select(PAID_CALLS).where(PAID_CALLS.c.changed > bindparam("after")).order_by(PAID_CALLS.c.changed)
_END = (
    update(PAID_CALLS)
    .where(PAID_CALLS.c.call == bindparam("which"))
    .values({name: bindparam(f"new_{name}") for name in (*_ENDS, "changed")})
)
OF_DAMAGE = (ArithmeticError, LookupError, TypeError, ValueError)


class Turn(Protocol):
    """At a database, in which this is all that is done."""

    @property
    def connection(self) -> Connection:
        """That has the lock."""

    @property
    def me(self) -> int:
        """Number of this process."""

    @property
    def where(self) -> Address:
        """The database is."""


class Turns(Protocol):
    """Who gives them."""

    def once(self, act: Callable[[Any], T]) -> T:
        """Do this now, in whole or not at all."""

    def later(self, act: Callable[[Any], object]) -> None:
        """Do this once, in the next turn at the latest."""


class BillRows:
    """Of one bill.

    Args:
        turns: in which they are written.

    Attributes:
        turns: as given.
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def sign(self, turn: Turn, unit: Unit) -> Unit:
        """The unit of the bill; this one, if nothing stands there."""
        known = unit_of(turn.connection)
        if known is None:
            change(turn.connection, _SIGN, {"key": _UNIT, "value": unit.value})
        return known or unit

    def begin(self, turn: Turn, hold: Hold, changed: int) -> None:
        """A call is about to be sent."""
        row = {name: getattr(hold, name) for name in _HELD} | dict.fromkeys(_ENDS)
        row |= {name: kept_name(getattr(hold, name)) for name in _NAMES}
        change(turn.connection, _BEGIN, row | {"call": hold.number, "changed": changed})

    def end(self, turn: Turn, number: int, cost: float, why: str, tokens: int, changed: int) -> None:
        """It has ended.

        Raises:
            JournalError: its row is gone.
        """
        new = {"cost": cost, "why": why, "tokens": min(int(tokens), _MOST_TOKENS), "changed": changed}
        given = {"which": number, **{f"new_{name}": value for name, value in new.items()}}
        if change(turn.connection, _END, given).rowcount != 1:
            raise damaged(turn.where, f"call {number}, which is under way, is no longer in it")

    @staticmethod
    def changed(
        connection: Connection, after: int
    ) -> Iterator[tuple[int, Hold, tuple[float, str, int] | None]]:
        """Calls that were changed after that: number of the change, the call, and how it ended.

        Raises:
            ArithmeticError, LookupError, TypeError, ValueError: a row is damaged.
        """
        for row in rows(connection, _CHANGED, {"after": after}):
            model, sample, role = (str(getattr(row, name)) for name in _NAMES)
            most, bound, reached = (amount(getattr(row, name)) for name in ("most", "bound", "reached"))
            hold = Hold(int(row.call), model, most, bound, sample, role, reached, int(row.worker))
            end = None if row.cost is None else (amount(row.cost), str(row.why), int(row.tokens))
            yield int(row.changed), hold, end


def unit_of(connection: Connection) -> Unit | None:
    """Of the bill in a database; None if there is none.

    Raises:
        ValueError: it is damaged.
    """
    row = next(iter(rows(connection, _UNIT_OF)), None)
    return None if row is None else Unit(row.value)


def damaged(where: Address, why: object) -> JournalError:
    """What is said of a bill that cannot be read."""
    return JournalError(f"the bill in {where} is damaged: {why}; {BILL.remedy}")


def amount(value: Any) -> float:
    """Money or tokens.

    Raises:
        TypeError, ValueError: it is none.
    """
    found = float(value)
    if not 0.0 <= found < math.inf:
        raise ValueError(f"{value!r} is no amount")
    return found
