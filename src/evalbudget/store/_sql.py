"""Past SQLAlchemy to the driver of a database, in a fraction of the time; errors are SQLAlchemy's."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, URL, Connection, Table, bindparam, func
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement

_DIALECTS = {
    "sqlite": sqlite.dialect(paramstyle="named"),
    "postgresql": URL.create("postgresql+psycopg").get_dialect()(),
}
_ALL = "all_"
"""Before the name of a column that is given as an array."""


class Query(NamedTuple):
    """What is asked.

    Attributes:
        statement: of SQLAlchemy.
        given: its parameters.
    """

    statement: Any
    given: Mapping[str, Any] = {}


class Each(NamedTuple):
    """What is done with each of several rows.

    Attributes:
        one: with a row; for SQLite, which has it at hand.
        all: with the rows of :func:`given_rows`; for a server, which is told once.
    """

    one: Any
    all: Any


Change = tuple[Any, Sequence[Mapping[str, Any]]]
"""A statement, and the parameters of each time that it is carried out; of :class:`Each`, the rows."""


def given_rows(table: Table, names: Mapping[str, str]) -> Any:
    """Rows that are given as arrays; by name, the column of the table that each is like."""
    arrays = [bindparam(f"{_ALL}{name}", type_=ARRAY(table.c[like].type)) for name, like in names.items()]
    return func.unnest(*arrays).table_valued(*names, name="given").render_derived(name="given")


class Asked:
    """Queries of one transaction; a server is sent some of them at its beginning.

    Args:
        connection: that has it.
        ahead: what will be asked, of a server. What it answers is there after the block of
            :func:`in_one_go` that this is within.
    """

    def __init__(self, connection: Connection, ahead: Sequence[Query] = ()) -> None:
        self._connection = connection
        self._sent: dict[Any, tuple[Mapping[str, Any], Any]] = {}
        self._found: dict[Any, list[Any]] = {}
        for query in ahead:
            self._sent[query.statement] = query.given, execute(connection, *_sent(connection, *query))

    def rows(self, statement: Any, given: Mapping[str, Any] | None = None) -> list[Any]:
        """What a query finds, as :func:`rows`."""
        sent, cursor = self._sent.get(statement, (None, None))
        if sent != (given or {}):
            return rows(self._connection, statement, given)
        if statement not in self._found:
            self._found[statement] = _rows(self._connection, statement, cursor)
        return self._found[statement]


def execute(connection: Connection, text: str, given: Mapping[str, Any] | None = None) -> Any:
    """A cursor that has carried out a statement.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    driver = _driver(connection)
    try:
        return driver.execute(text, given or {})
    except _errors(connection) as ex:
        raise _ours(connection, text, ex) from ex


@contextmanager
def in_one_go(connection: Connection) -> Iterator[None]:
    """What a server is asked within the block is sent at once, and answered at once.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    driver = _driver(connection)
    try:
        with driver.pipeline():
            yield
    except _errors(connection) as ex:
        raise _ours(connection, "", ex) from ex


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _errors(connection: Connection) -> Any:
    return connection.dialect.loaded_dbapi.Error


def _ours(connection: Connection, text: str, ex: Exception) -> Exception:
    dialect = connection.dialect
    is_lost = dialect.is_disconnect(ex, connection.connection, None)  # type: ignore[arg-type]
    if is_lost:
        connection.invalidate(ex)
    return DBAPIError.instance(
        text, None, ex, dialect.loaded_dbapi.Error, connection_invalidated=is_lost, dialect=dialect
    )


def rows(connection: Connection, statement: Any, given: Mapping[str, Any] | None = None) -> list[Any]:
    """What a query finds, with the columns as attributes.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    cursor = execute(connection, *_sent(connection, statement, given or {}))
    return _rows(connection, statement, cursor)


def change(connection: Connection, statement: Any, given: Mapping[str, Any]) -> Any:
    """Have a statement carried out; a cursor that has done so.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    return execute(connection, *_sent(connection, statement, given))


def conclude(connection: Connection, changes: Sequence[Change]) -> None:
    """The last of a server's transaction: all of it and the end are sent at once.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    with in_one_go(connection):
        for statement, given in changes:
            if isinstance(statement, Each):
                arrays = {f"{_ALL}{name}": _array([row[name] for row in given]) for name in given[0]}
                change(connection, statement.all, arrays)
            else:
                for each in given:
                    change(connection, statement, each)
        execute(connection, "COMMIT")  # SQLAlchemy finds nothing left to do


def _sent(connection: Connection, statement: Any, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    text, _, fixed = compiled(statement, connection.dialect.name)
    return text, {**fixed, **given} if fixed else given


def _array(column: list[Any]) -> list[Any]:
    """Of one kind, as the driver wants them."""
    if {int, float} <= set(map(type, column)):
        return [None if value is None else float(value) for value in column]
    return column


def _rows(connection: Connection, statement: Any, cursor: Any) -> list[Any]:
    make = compiled(statement, connection.dialect.name).row._make
    return list(map(make, cursor.fetchall()))


class _Compiled(NamedTuple):
    text: str
    row: Any
    fixed: Mapping[str, Any]


@cache
def compiled(statement: ClauseElement, dialect: str) -> _Compiled:
    """As the driver takes it, what a row of it is, and the parameters that are always the same."""
    made = statement.compile(dialect=_DIALECTS[dialect])
    fixed = {name: value for name, value in made.params.items() if value is not None}
    names = [column.keyname for column in getattr(made, "_result_columns", ())]
    return _Compiled(str(made), namedtuple("Row", names, rename=True), fixed)
