"""A book's statements on their way to the driver: past SQLAlchemy for SQLite, in a fraction of the time."""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import OperationalError
from sqlalchemy.sql import ClauseElement

Given = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What a statement is about; several for one that is carried out for each of them."""


def rows(connection: Connection, statement: Any, given: Mapping[str, Any] | None = None) -> list[Any]:
    """What a query finds, with the columns as attributes.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    if connection.dialect.name != "sqlite":
        return list(connection.execute(statement, given or {}).all())
    text, row = _compiled(statement)
    try:
        return list(map(row._make, _driver(connection).execute(text, given or {})))
    except sqlite3.Error as ex:
        raise OperationalError(text, None, ex) from ex


def change(connection: Connection, statement: Any, given: Given) -> None:
    """Have a statement carried out.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(statement, given)
        return
    text, _ = _compiled(statement)
    many = [given] if isinstance(given, Mapping) else given
    try:
        _driver(connection).executemany(text, many)
    except sqlite3.Error as ex:
        raise OperationalError(text, None, ex) from ex


def _driver(connection: Connection) -> sqlite3.Connection:
    driver: Any = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


@cache
def _compiled(statement: ClauseElement) -> tuple[str, Any]:
    """As SQLite's driver takes it, and what a row of it is."""
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"))
    assert not any(value is not None for value in compiled.params.values())  # which would be lost
    names = [column.keyname for column in getattr(compiled, "_result_columns", ())]
    return str(compiled), namedtuple("Row", names, rename=True)
