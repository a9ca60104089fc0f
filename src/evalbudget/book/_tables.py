"""The tables of a book: rounds as they were planned, cells once they were claimed, and every call."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text

from evalbudget.errors import JournalError
from evalbudget.store import Layout

_TABLES = MetaData()

META = Table("meta", _TABLES, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

ABOUT = Table(
    "about",
    _TABLES,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("cap", Float, nullable=False),
    Column("spent", Float, nullable=False),
    Column("held", Float, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("passes", Integer, nullable=False),
    Column("withdrawn", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("changes", Integer, nullable=False),
    Column("stopped", Text),
)
"""One row: what would have to be summed."""

WORKERS = Table(
    "workers",
    _TABLES,
    Column("worker", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("known_as", Text, nullable=False),
    Column("shown_as", Text, nullable=False),
    Column("until", Float, nullable=False),
    Column("told", Integer, nullable=False),
    Column("room", Float, nullable=False),
)
"""``name`` tells its process, ``known_as`` who it is: the same when it goes on in another process,
``shown_as`` what people are told, ``told`` the number of what it told last that tells by nothing else whether
it is in the book, ``room`` what it keeps of a budget in money for calls that are still to follow."""

ROUNDS = Table(
    "rounds",
    _TABLES,
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("planned", Text, nullable=False),
    Column("note", Text),
)
"""``note`` is what the next plan must know; of the last round alone."""

PASSES = Table(
    "passes",
    _TABLES,
    Column("pass", Integer, primary_key=True, autoincrement=False),
    Column("cells", Text, nullable=False),
)
"""Of rounds that wait for all: cells that were handed out once all of the pass before had come back."""

WITHDRAWN = Table(
    "withdrawn",
    _TABLES,
    Column("model", Integer, primary_key=True, autoincrement=False),
    Column("asked", Integer, nullable=False),
    Column("why", Text, nullable=False),
)
"""Models that are asked nothing more, since how many requests in all."""

CELLS = Table(
    "cells",
    _TABLES,
    Column("cell", Integer, primary_key=True, autoincrement=False),
    Column("state", Integer, nullable=False),
    Column("worker", Integer, nullable=False),
    Column("call", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("passed", Integer, nullable=False),
    Column("value", Float),
    Column("cost", Float, nullable=False),
    Column("changed", Integer, nullable=False),
    Index("cells_by_change", "changed"),
    Index("cells_by_state", "state", "worker"),
)
"""``call`` and ``attempt`` are those of the last try; of one that was never sent only the attempt, which the
next one takes: something may be known of it, if only half an answer. ``passed`` is the pass in which a try
came back, ``changed`` a number given under the lock."""

CALLS = Table(
    "calls",
    _TABLES,
    Column("call", Integer, primary_key=True, autoincrement=False),
    Column("cell", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Integer, nullable=False),
    Column("most", Float, nullable=False),
    Column("cost", Float),
    Column("error", Text),
    Column("begun", Float, nullable=False),
    Index("calls_by_cell", "cell"),
    Index("calls_by_worker", "worker"),
)
"""The bill; a call without a cost is under way. ``attempt`` counts the calls of a model's item, from 0. What
was paid for no cell has ``NO_CELL``. ``begun`` is what a call under way may be billed by now, where hosts say
when they begin what they were handed."""

NO_CELL = -1

PAID_CALLS = Table(
    "paid_calls",
    _TABLES,
    Column("call", Integer, primary_key=True, autoincrement=False),
    Column("worker", Integer, nullable=False),
    Column("model", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sample", Text, nullable=False),
    Column("most", Float, nullable=False),
    Column("bound", Float, nullable=False),
    Column("reached", Float, nullable=False),
    Column("cost", Float),
    Column("why", Text),
    Column("tokens", BigInteger),
    Column("changed", Integer, nullable=False),
)
"""The bill of a budget in money or tokens, call by call; those without a cost are under way. ``reached`` is
what its sample had spent and reserved, with it; ``changed`` a number given under the lock. The unit is in
``meta``."""

_SHARED = MetaData()
for _each in _TABLES.sorted_tables:
    _each.to_metadata(_SHARED)
# who shares a bill looks again and again
Index("paid_calls_by_change", _SHARED.tables["paid_calls"].c.changed)

ARMS = Table(
    "arms",
    _SHARED,
    Column("arm", Text, primary_key=True),
    Column("worker", Integer, nullable=False),
    Column("came_with", Text, nullable=False),
    Column("left_out", Text, nullable=False),
)
"""Who takes part in a race whose arms run in several processes: what each came with, and what of that is not
used."""

SO_FAR = Table(
    "so_far",
    _SHARED,
    Column("arm", Text, primary_key=True),
    Column("told", Text, nullable=False),
    Column("changed", Integer, nullable=False),
)
"""What each of them has cost and brought, once the race has begun."""

LAYOUT = Layout("book", _SHARED, 1, 0x65766270, grows_only=("meta",), is_busy=True)
ALONE = replace(LAYOUT, tables=_TABLES, for_one=True)
"""Without what processes that race share, in a file that one worker at a time has, or in memory."""
BESIDE_LOGS = replace(ALONE, grows_only=(), is_private=False)
"""The same, of a run whose host goes on with it: the book is begun anew, keeps what was paid, and is for all
who may read the logs."""
BILL = replace(
    ALONE,
    grows_only=(),
    kind="bill",
    application_id=0x6576626D,
    error=JournalError,
    remedy="restore a copy, or begin anew in another folder",
)
"""A file of its own whose only rows are those of a bill."""
