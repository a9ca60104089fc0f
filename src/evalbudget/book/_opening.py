"""Where a book is: begun, opened, or looked into."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from evalbudget._version import __version__
from evalbudget.book._statements import BEGUN, BEGUN_BESIDE, CAME_BACK, IN_VAIN
from evalbudget.book._tables import (
    ABOUT,
    CALLS,
    CELLS,
    LAYOUT,
    META,
    NO_CELL,
    PASSES,
    ROUNDS,
    WITHDRAWN,
    WORKERS,
)
from evalbudget.book._workers import MEMORY
from evalbudget.budget import Budget, Unit
from evalbudget.cells import CAME
from evalbudget.errors import BudgetError
from evalbudget.sampler import Sampler
from evalbudget.store import Address, Database, Layout, Terms

_COUNTS = dict.fromkeys(("rounds", "passes", "withdrawn", "calls", "changes"), 0)
_IN_USE = "in use"
"""Key in a book, as long as an attempt that began it anew may pay something."""
_LACKS = "lacks"
"""Key in a book that does not have all that was paid: how many calls may not be in it."""
_TERMS = select(META.c.value).where(META.c.key == "terms")
_NOTHING = {"spent": 0.0, "held": 0.0, **_COUNTS, "stopped": None}


def opened(
    where: Address | Database,
    sampler: Sampler,
    budget: Budget,
    terms: Terms,
    clock: Callable[[], float] = time.time,
    *,
    layout: Layout = LAYOUT,
) -> Database:
    """A book, begun if nothing is there.

    Raises:
        BudgetError: nothing is there, and the budget is below what the sampler needs.
        StoreError: something else is there, or it is of another purchase.
        StoreDownError: it cannot be reached.
    """
    if isinstance(where, Database):
        db = where
    else:
        db = _begun_or_found(where, sampler, budget, terms, clock, layout)
    try:
        with db.write() as connection:
            if db is where and connection.scalar(_TERMS) is None:
                _check_least(sampler, budget)
                connection.execute(insert(META), {"key": "terms", "value": terms.as_json()})
            _check(connection, terms, db.address)
            if connection.execute(select(ABOUT)).one_or_none() is None:
                connection.execute(insert(ABOUT), {"id": 1, "cap": budget.amount, **_NOTHING})
    except BaseException:
        if db is not where:
            db.close()
        raise
    return db


def _begun_or_found(
    where: Address,
    sampler: Sampler,
    budget: Budget,
    terms: Terms,
    clock: Callable[[], float],
    layout: Layout,
) -> Database:
    meta = {"terms": terms.as_json()}
    in_memory = where.path == MEMORY
    if in_memory or not Database.exists(where, layout):
        _check_least(sampler, budget)
        if in_memory:
            return Database.in_memory(layout, meta, clock)
        try:
            return Database.create(where, layout, meta, clock)
        except FileExistsError:  # somebody else was quicker
            pass
    return Database.open(where, layout, clock)


def _check_least(sampler: Sampler, budget: Budget) -> None:
    least = sampler.minimum_readings
    if budget.unit is Unit.SCORES and budget.amount < least:
        raise BudgetError(
            f"budget of {budget} is below the {least} that {sampler.name} needs before it can choose; "
            f"give {least} or more"
        )


def _check(connection: Connection, terms: Terms, where: Address) -> None:
    terms.check(connection.scalar(_TERMS) or "", where)


def terms_of(sampler: Sampler, about: Mapping[str, Any]) -> Terms:
    """What all who fill a book have in common."""
    return Terms(__version__, sampler.design.fingerprint, {**sampler.config, **about})


class Told(NamedTuple):
    """What is in a book.

    Attributes:
        readings: how many scores.
        cost: of all calls that came back, in units of the budget.
        workers: what those are known as that ever worked on it.
        spent: of the budget, calls that were lost included, and those under way at their most.
        cap: the budget.
    """

    readings: int = 0
    cost: float = 0.0
    workers: frozenset[str] = frozenset()
    spent: float = 0.0
    cap: float = 0.0


def told_in(where: Address | Database) -> Told:
    """What is in a book, whoever's it is; nothing where there is none.

    Raises:
        StoreError: it is none.
        StoreDownError: it cannot be reached.
    """
    if isinstance(where, Address):
        if not Database.exists(where, LAYOUT):
            return Told()
        with closing(Database.open(where, LAYOUT)) as db:
            return told_in(db)
    with where.read() as connection:
        readings = connection.scalar(select(func.count()).where(CELLS.c.state == CAME)) or 0
        cost = connection.scalar(select(func.sum(CELLS.c.cost))) or 0.0
        workers = connection.scalars(select(WORKERS.c.known_as)).all()
        asked = select(ABOUT.c.spent + ABOUT.c.held, ABOUT.c.cap)
        about = connection.execute(asked).one_or_none() or (0.0, 0.0)
        return Told(int(readings), float(cost), frozenset(map(str, workers)), *map(float, about))


def begin_anew(db: Database, paid: Mapping[str, float], lacks: int | None = None) -> None:
    """Forget what is in a book, but that so much was paid, by the reason, for no cell.

    Args:
        db: that has it.
        paid: by the reason.
        lacks: as of :func:`keep_lacking`.
    """
    with db.write() as connection:
        for table in (ABOUT, WORKERS, ROUNDS, PASSES, WITHDRAWN, CELLS, CALLS):
            connection.execute(delete(table))
        connection.execute(delete(META).where(META.c.key.in_(["terms", _IN_USE])))
        _keep_lacking(connection, lacks)
        connection.execute(insert(META), {"key": _IN_USE, "value": "yes"})
        for call, (reason, cost) in enumerate(paid.items()):
            row = {"call": call, "cell": NO_CELL, "attempt": 0, "worker": 0, "most": cost, "cost": cost}
            connection.execute(insert(CALLS), row | {"error": reason, "begun": cost})
        about = {**_NOTHING, "id": 1, "cap": 0.0, "spent": sum(paid.values()), "calls": len(paid)}
        connection.execute(insert(ABOUT), about)
    db.gather()


def keep_lacking(db: Database, lacks: int | None) -> None:
    """So many calls were paid that may not be in a book; None: all are in it."""
    with db.write() as connection:
        _keep_lacking(connection, lacks)


def _keep_lacking(connection: Connection, lacks: int | None) -> None:
    connection.execute(delete(META).where(META.c.key == _LACKS))
    if lacks is not None:
        connection.execute(insert(META), {"key": _LACKS, "value": str(lacks)})


def lacking_in(db: Database) -> int | None:
    """What :func:`keep_lacking` was told."""
    with db.read() as connection:
        found = connection.scalar(select(META.c.value).where(META.c.key == _LACKS))
        return None if found is None else int(found)


def end_well(db: Database) -> None:
    """All that was paid since a book was begun anew is in it."""
    with db.write() as connection:
        connection.execute(delete(META).where(META.c.key == _IN_USE))


def was_killed(db: Database) -> bool:
    """Whether nobody called :func:`end_well` since a book was begun anew: its latest is beside its file."""
    with db.read() as connection:
        return connection.scalar(select(META.c.value).where(META.c.key == _IN_USE)) is not None


def paid_in(db: Database, *, came: str, begun: str) -> dict[str, float]:
    """What the calls of a book cost, by the reason; of what is put aside, as far as it has begun.

    Args:
        db: that has it.
        came: the reason to pay what brought a score.
        begun: that to pay what failed, or is under way, as far as its host has begun it.

    Raises:
        StoreError: it is damaged.
    """
    with db.read() as connection:
        paid = {str(why): float(cost) for why, cost in connection.execute(BEGUN_BESIDE)}
        for why, query in ((came, CAME_BACK), (begun, IN_VAIN), (begun, BEGUN)):
            paid[why] = paid.get(why, 0.0) + float(connection.scalar(query) or 0.0)
    return paid


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
        _check(connection, terms_of(sampler, about or {}), where)
        found = connection.execute(select(ABOUT.c.spent, ABOUT.c.held)).one_or_none()
        return 0.0 if found is None else float(found.spent + found.held)
