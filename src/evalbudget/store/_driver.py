"""Past SQLAlchemy to the driver of a database, in a fraction of the time; errors are SQLAlchemy's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def is_file(connection: Connection) -> bool:
    """Whether it is SQLite's, in memory or not."""
    return connection.dialect.name == "sqlite"


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


def execute_each(connection: Connection, text: str, given: Sequence[Mapping[str, Any]]) -> None:
    """Have SQLite carry out a statement for each of these.

    Raises:
        DBAPIError: as SQLAlchemy does.
    """
    driver = _driver(connection)
    try:
        driver.executemany(text, given)
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
