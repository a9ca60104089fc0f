"""The tables of a book: rounds as they were planned, cells once they were claimed, and every call."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, MetaData, Table, Text

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
    Column("until", Float, nullable=False),
)

ROUNDS = Table(
    "rounds",
    _TABLES,
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("planned", Text, nullable=False),
)

PASSES = Table(
    "passes",
    _TABLES,
    Column("pass", Integer, primary_key=True, autoincrement=False),
    Column("cells", Text, nullable=False),
)
"""Of rounds that wait for all: cells that were handed out once all of the pass before had come back."""

CELLS = Table(
    "cells",
    _TABLES,
    Column("cell", Integer, primary_key=True, autoincrement=False),
    Column("state", Integer, nullable=False),
    Column("worker", Integer, nullable=False),
    Column("call", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("passed", Integer, nullable=False),
    Column("value", Float),
    Column("cost", Float, nullable=False),
    Column("changed", Integer, nullable=False),
    Index("cells_by_change", "changed"),
    Index("cells_by_state", "state", "worker"),
)
"""``call`` is that of the last try, ``passed`` the pass in which a try came back, ``changed`` a number given
under the lock."""

CALLS = Table(
    "calls",
    _TABLES,
    Column("call", Integer, primary_key=True, autoincrement=False),
    Column("cell", Integer, nullable=False),
    Column("worker", Integer, nullable=False),
    Column("most", Float, nullable=False),
    Column("cost", Float),
    Column("error", Text),
    Index("calls_by_cell", "cell"),
)
"""The bill; a call without a cost is under way."""

LAYOUT = Layout("book", _TABLES, 1, 0x65766270, grows_only=("meta",), is_busy=True)
