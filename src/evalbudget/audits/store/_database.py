"""The SQLite file under an audit store: opening, transactions, errors in our words."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalbudget.audits.store._schema import APPLICATION_ID, SCHEMA, UPGRADES, VERSION
from evalbudget.errors import AuditStoreError

_PATIENCE = 30.0
"""Seconds to wait for another process to finish writing; writes take milliseconds."""


class Database:
    """One connection, usable from several threads; other processes may have theirs.

    Attributes:
        path: of the file.
        clock: seconds since 1970.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self.path = path
        self.clock = clock
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def create(cls, path: Path, meta: dict[str, str], clock: Callable[[], float]) -> Database:
        """A new file with empty tables.

        Raises:
            AuditStoreError: the file exists or cannot be written.
        """
        if not path.parent.is_dir():
            raise AuditStoreError(f"{path}: the folder {path.parent} does not exist; create it first")
        # made beside it and then given its name: a process that dies here leaves no half-made store
        begun = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            db = cls(begun, _connect(begun), clock)
            try:
                with db.write() as cursor:
                    for statement in _statements(SCHEMA):
                        cursor.execute(statement)
                    cursor.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                    cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    cursor.execute(f"PRAGMA user_version = {VERSION}")
            finally:
                db.close()
            _name(begun, path)
        except FileExistsError:
            raise AuditStoreError(
                f"{path} exists; continue it with AuditStore.open, or choose another path"
            ) from None
        except OSError as ex:
            raise AuditStoreError(f"{path} cannot be written: {ex.strerror}") from ex
        finally:
            begun.unlink(missing_ok=True)
        return cls.open(path, clock)

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float]) -> Database:
        """An existing file.

        Raises:
            AuditStoreError: it does not exist, is no audit store, or another version wrote it.
        """
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise AuditStoreError(f"audit store {path} {what}; the run that draws items creates it")
        db = cls(path, _connect(path), clock)
        try:
            application, version = (
                db.rows(f"PRAGMA {name}")[0][0] for name in ("application_id", "user_version")
            )
            if application != APPLICATION_ID:
                raise AuditStoreError(f"{path} is a database, but not an audit store")
            if version in UPGRADES:
                db._upgrade()
            elif version != VERSION:
                raise AuditStoreError(
                    f"{path} has format {version}; this version of evalbudget reads format {VERSION}. "
                    "Install the version that wrote it"
                )
        except BaseException:
            db.close()
            raise
        return db

    def _upgrade(self) -> None:
        """Add what earlier versions had not; people were paid for the labels in it."""
        with self.write() as cursor:
            while (version := cursor.execute("PRAGMA user_version").fetchone()[0]) in UPGRADES:
                for statement in _statements(UPGRADES[version]):
                    cursor.execute(statement)
                cursor.execute(f"PRAGMA user_version = {version + 1}")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Cursor]:
        """All or nothing; on disk when it ends."""
        with self._lock, self._our_errors():
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Cursor]:
        """Several queries that see the same moment."""
        with self._lock, self._our_errors():
            cursor = self._connection.cursor()
            inside = self._connection.in_transaction
            if not inside:
                cursor.execute("BEGIN")
            try:
                yield cursor
            finally:
                if not inside:
                    self._connection.rollback()

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        with self._lock, self._our_errors():
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as ex:
            text = str(ex)
            if "not a database" in text or "malformed" in text:
                raise AuditStoreError(f"{self.path} is not an audit store, or damaged: {text}") from ex
            if "locked" in text:
                raise AuditStoreError(
                    f"{self.path} has been kept locked by another process for {_PATIENCE:g} s; end it, then "
                    "try again"
                ) from ex
            if "readonly" in text:
                raise AuditStoreError(f"{self.path} cannot be written; copy it to where it can") from ex
            if "full" in text or "disk I/O" in text:
                raise AuditStoreError(
                    f"{self.path} cannot be written: {text}. Make room, then go on: what was recorded before "
                    "is in it"
                ) from ex
            raise AuditStoreError(f"{self.path}: {text}") from ex


def _name(begun: Path, path: Path) -> None:
    """Rename, but never onto a file that exists."""
    try:
        path.hardlink_to(begun)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        begun.rename(path)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            # A rollback journal keeps everything in the one file, which people copy and send around; with
            # FULL a label is on the disk before its labeller is told so.
            for pragma in ("synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as ex:
        raise AuditStoreError(f"audit store {path} cannot be opened: {ex}") from ex
    return connection


def _statements(script: str) -> Iterator[str]:
    """One by one: ``executescript`` would end the transaction."""
    begun = ""
    for line in script.splitlines(keepends=True):
        begun += line
        if sqlite3.complete_statement(begun):
            yield begun
            begun = ""


def storable(text: str) -> str:
    """As UTF-8 can hold it; what a model answers may have halves of characters."""
    return text.encode(errors="replace").decode()
