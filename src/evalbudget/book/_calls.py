"""What a book says of its calls, once they came back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection

from evalbudget.book._copy import Copy
from evalbudget.book._statements import ALL_BESIDE, CUT_OFF, LOST, NAMES, SETTLED, WITHOUT_SCORE
from evalbudget.cells import CAME
from evalbudget.design import Reading


class Called(NamedTuple):
    """A call that came back or was lost.

    Attributes:
        reading: of it.
        attempt: which call of its model and item it was, from 0; each has a number of its own.
        worker: what the worker is called that made it; empty where that was not looked up.
        is_lost: nobody knows whether it was answered.
    """

    reading: Reading
    attempt: int
    worker: str
    is_lost: bool


class Unread(NamedTuple):
    """Calls that brought no score, of one kind.

    Attributes:
        error: why; None where nobody said so.
        calls: how many.
        is_lost: nobody knows whether they were answered.
        was_paid: they cost something.
    """

    error: str | None
    calls: int
    is_lost: bool
    was_paid: bool


def calls_in(copy: Copy, connection: Connection) -> tuple[Called, ...]:
    """All of them, in the order of asking, as of the copy; what was never sent is left out."""
    names = {row.worker: str(row.shown_as) for row in connection.execute(NAMES)}
    rows = connection.execute(SETTLED).all()
    requests = [copy.request(row.call, row.cell) for row in rows]
    found = []
    for row, request, cell in zip(rows, requests, [copy.kept(row.cell) for row in rows], strict=True):
        value = cell.value if cell.state == CAME and cell.call == row.call else None
        reading = Reading(request, value, row.cost, row.error)
        found.append(Called(reading, row.attempt, names[row.worker], row.error in (LOST, CUT_OFF)))
    return tuple(found)


def known_calls(copy: Copy) -> tuple[Called, ...]:
    """Those that the copy has a score of, in the order of asking."""
    found = []
    for number in np.flatnonzero(copy.cells().state == CAME).tolist():
        cell = copy.kept(number)
        reading = Reading(copy.request(cell.call, number), cell.value, cell.cost)
        found.append(Called(reading, cell.attempt, "", is_lost=False))
    return tuple(sorted(found, key=lambda called: called.reading.request.id))


def unread_in(connection: Connection) -> tuple[Unread, ...]:
    """Those without a score, in the order in which each kind came first; what was never sent is left out."""
    return tuple(
        Unread(row.error, row.calls, row.error in (LOST, CUT_OFF), bool(row.was_paid))
        for row in connection.execute(WITHOUT_SCORE)
    )


def beside_in(connection: Connection) -> Mapping[str, float]:
    """What was paid for no cell, by the reason."""
    return {str(why): float(cost) for why, cost in connection.execute(ALL_BESIDE).all()}
