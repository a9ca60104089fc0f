"""What a book is asked and told, in SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Table, bindparam, exists, func, insert, literal_column, null, select, update
from sqlalchemy.dialects import postgresql, sqlite

from evalbudget.book._copy import NUMBERS, Kept
from evalbudget.book._tables import ABOUT, CALLS, CELLS, NO_CELL, PASSES, ROUNDS, WITHDRAWN, WORKERS
from evalbudget.cells import CAME, TAKEN
from evalbudget.store._sql import Each, given_rows

LOST = "cut off: its process ended"
"""Why a call has no reply whose worker is gone."""
CUT_OFF = "under way when the run was broken off"
"""The same, of a worker that goes on and knows no more."""
NEVER_SENT = "never sent"
"""Why a call cost nothing that was handed out when its worker had gone."""
TOO_LATE = "came back when another had its cell: paid, and not read"
"""Why a reply of a worker that was taken for dead is no score."""

HOW_IT_STANDS = select(ABOUT)
BEGIN_ROUND, BEGIN_PASS, WITHDRAW = (insert(table) for table in (ROUNDS, PASSES, WITHDRAWN))
FORGET_NOTE = update(ROUNDS).where(ROUNDS.c.round == bindparam("before")).values(note=null())
MISSED_ROUNDS = select(ROUNDS).where(ROUNDS.c.round >= bindparam("after")).order_by(ROUNDS.c.round)
MISSED_PASSES = (
    select(PASSES.c.cells).where(PASSES.c["pass"] >= bindparam("after")).order_by(PASSES.c["pass"])
)
ALL_WITHDRAWN = select(WITHDRAWN).order_by(WITHDRAWN.c.asked)
CHANGED = (
    select(CELLS.c.cell, *(CELLS.c[name] for name in Kept._fields))
    .where(CELLS.c.changed > bindparam("after"))
    .order_by(CELLS.c.changed)
)
TAKEN_BY = (
    select(CELLS.c.cell, CELLS.c.call, CALLS.c.attempt, CALLS.c.most)
    .join_from(CELLS, CALLS, CELLS.c.call == CALLS.c.call)
    .where(CELLS.c.state == TAKEN, CELLS.c.worker == bindparam("whose"))
    .order_by(CELLS.c.call)
)
LOST_BY = (
    select(CALLS.c.cell, CALLS.c.call, CALLS.c.attempt, CALLS.c.most)
    .where(CALLS.c.worker == bindparam("whose"), CALLS.c.error == LOST, CALLS.c.cell != NO_CELL)
    .order_by(CALLS.c.call)
)
A_CALL = select(CALLS).where(CALLS.c.call == bindparam("which"))
SETTLED = (
    select(CALLS)
    .where(CALLS.c.cost.is_not(None), CALLS.c.cell != NO_CELL, CALLS.c.error.is_distinct_from(NEVER_SENT))
    .order_by(CALLS.c.call)
)
_HAS_SCORE = exists().where(CELLS.c.cell == CALLS.c.cell, CELLS.c.call == CALLS.c.call, CELLS.c.state == CAME)
WITHOUT_SCORE = (
    select(
        CALLS.c.error,
        (CALLS.c.cost > 0.0).label("was_paid"),
        func.count().label("calls"),
        func.min(CALLS.c.call).label("first"),
    )
    .where(CALLS.c.cost.is_not(None), CALLS.c.cell != NO_CELL, CALLS.c.error.is_distinct_from(NEVER_SENT))
    .where(~_HAS_SCORE)
    .group_by(CALLS.c.error, literal_column("was_paid"))
    .order_by("first")
)
NAMES = select(WORKERS.c.worker, WORKERS.c.shown_as)
ALL_BESIDE = (
    select(CALLS.c.error, func.sum(CALLS.c.cost)).where(CALLS.c.cell == NO_CELL).group_by(CALLS.c.error)
)
BEGUN_BESIDE = (
    select(CALLS.c.error, func.sum(CALLS.c.begun)).where(CALLS.c.cell == NO_CELL).group_by(CALLS.c.error)
)
"""The same, without what is put aside and has not begun."""
WHOSE = select(CELLS.c.worker).where(CELLS.c.cell == bindparam("which"))
BESIDE = select(func.coalesce(func.sum(CALLS.c.cost), 0.0)).where(
    CALLS.c.worker == bindparam("whose"), CALLS.c.cell == NO_CELL
)
IS_TOLD = select(CALLS.c.cost).where(
    CALLS.c.call == bindparam("which"), CALLS.c.cost.is_not(None), CALLS.c.error.is_distinct_from(LOST)
)
_BEGUN = given_rows(CALLS, {"which": "call", "by_now": "begun"})
BEGIN_CALL = Each(
    update(CALLS).where(CALLS.c.call == bindparam("which")).values(begun=bindparam("by_now")),
    update(CALLS).where(CALLS.c.call == _BEGUN.c.which).values(begun=_BEGUN.c.by_now),
)
_PAID = given_rows(CALLS, {"which": "call", "paid": "cost", "why": "error"})
SETTLE = Each(
    update(CALLS)
    .where(CALLS.c.call == bindparam("which"))
    .values(cost=bindparam("paid"), error=bindparam("why")),
    update(CALLS).where(CALLS.c.call == _PAID.c.which).values(cost=_PAID.c.paid, error=_PAID.c.why),
)
_SETTLED_COST = select(func.sum(CALLS.c.cost)).where(CALLS.c.cell != NO_CELL)
CAME_BACK = _SETTLED_COST.where(CALLS.c.error.is_(None))
"""What calls cost that brought a score."""
IN_VAIN = _SETTLED_COST.where(CALLS.c.error.is_not(None))
"""What those cost that have ended and brought none."""
BEGUN = select(func.sum(CALLS.c.begun)).where(CALLS.c.cost.is_(None))
"""What those under way may be billed by now."""
KEEP = update(ABOUT).values({name: bindparam(f"new_{name}") for name in NUMBERS})


def _inserts(table: Table, insert_into: Any) -> tuple[Any, Any]:
    """Of one row, and of several."""
    names = [column.name for column in table.columns]
    given = given_rows(table, dict(zip(names, names, strict=True)))
    return insert_into(table), insert_into(table).from_select(names, select(*given.c))


def _replacing(into: Any) -> Any:
    """Where a cell stands there already, what is new of it."""
    changed = {column.name: into.excluded[column.name] for column in CELLS.columns if column.name != "cell"}
    return into.on_conflict_do_update(index_elements=["cell"], set_=changed)


CALL = Each(*_inserts(CALLS, insert))
UPSERT = Each(
    _replacing(_inserts(CELLS, sqlite.insert)[0]), _replacing(_inserts(CELLS, postgresql.insert)[1])
)
