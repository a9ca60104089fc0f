"""The database under a store: opening, exclusive transactions, errors in our words."""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    Executable,
    Row,
    create_engine,
    event,
    insert,
    text,
)
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from evalbudget.errors import InvalidInputError, StoreDownError, reason
from evalbudget.secrets import mode_in, without_known
from evalbudget.shown import shown_logger
from evalbudget.store._address import Address
from evalbudget.store._layout import Layout
from evalbudget.store._meaning import cut_off_by, first_line, is_gone, told
from evalbudget.store._sql import Change, Each, compiled, conclude, execute, in_one_go

_MEMORY = Path(":memory:")
_PATIENCE = 30.0
"""Seconds to wait for another process to finish writing; writes take milliseconds."""
_SOON = 2.0
"""Seconds after which it is said that one waits; no longer than that is waited after a wait in vain."""

# a machine that is gone, or a process that hangs, must not keep the others out
_TIMEOUTS = {"connect_timeout": 10, "keepalives_idle": 20, "tcp_user_timeout": 30_000}
_PUBLIC = 0o666
"""Mode of a file that others may read, before the umask."""
_SCHEMA_EXISTS = "42P06"
_LEVEL = {True: "AUTOCOMMIT", False: "REPEATABLE READ"}
"""Whether one writes: then the transaction begins with what is sent first."""

# a machine that is switched off must not hold its claim for hours
_ALIVE = "set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false)"
_TRY = f"SELECT pg_try_advisory_lock(hashtextextended(:key, 0)), {_ALIVE}"
_RELEASE = "SELECT pg_advisory_unlock(hashtextextended(:key, 0))"
_WAIT = f"SELECT pg_advisory_lock(hashtextextended(:key, 0)), {_ALIVE}"

log = shown_logger(__name__)


class Database:
    """One connection, usable from several threads; other processes may have theirs.

    Use :meth:`create` or :meth:`open`.

    Attributes:
        address: of the store.
        layout: of its tables.
        clock: seconds since 1970, of this process.
        patience: seconds to wait for a server that cannot be reached, since that was first found.
        connections: how often it was connected to.
    """

    patience = 60.0
    connections = 0

    def __init__(self, address: Address, layout: Layout, engine: Engine, clock: Callable[[], float]) -> None:
        self.address = address
        self.layout = layout
        self.clock = clock
        self._engine = engine
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._file: sqlite3.Connection | None = None  # the same, as the driver has it; None for a server
        self._gone_since: float | None = None
        self._is_quick = False  # the connection, for a file that is written often
        self._is_over = False  # for one process, whose threads may come too late
        self._waited_in_vain = False  # for another process that writes

    @classmethod
    def create(
        cls, address: Address, layout: Layout, meta: Mapping[str, str], clock: Callable[[], float] = time.time
    ) -> Database:
        """A new store.

        Args:
            address: where; nothing of that name may be there.
            layout: its tables.
            meta: what is known of it from the beginning.
            clock: seconds since 1970.

        Raises:
            FileExistsError: something of that name is there.
            StoreError: it cannot be written.
            StoreDownError: the database cannot be reached.
        """
        if address.path is not None:
            _create_file(address.path, layout, meta, clock)
            return cls.open(address, layout, clock)
        db = cls(address, layout, _engine(address), clock)
        try:
            with db.write() as connection:
                connection.exec_driver_sql(f'CREATE SCHEMA "{address.name}"')
                db._fill(connection, meta)
                db._sign(connection, layout.version)
        except BaseException:
            db.close()
            raise
        return db

    @classmethod
    def in_memory(
        cls, layout: Layout, meta: Mapping[str, str], clock: Callable[[], float] = time.time
    ) -> Database:
        """A new store that goes with its process.

        Args:
            layout: its tables.
            meta: what is known of it from the beginning.
            clock: seconds since 1970.
        """
        address = Address(path=_MEMORY)
        db = cls(address, layout, _kept_engine(address), clock)
        with db.write() as connection:
            db._fill(connection, meta)
        return db

    @classmethod
    def exists(cls, address: Address, layout: Layout) -> bool:
        """Whether something of that name is there, such a store or not.

        Raises:
            StoreDownError: the database cannot be reached.
        """
        if address.path is not None:
            return address.path.exists()
        with closing(cls(address, layout, _engine(address), time.time)) as db:
            return db._comment() is not None

    @classmethod
    @contextmanager
    def alone(cls, address: Address, layout: Layout, purpose: str, *, wait: bool = False) -> Iterator[None]:
        """Keep others with the same purpose away from a schema, which need not exist yet.

        The claim ends with the process, however that ends. It is lost where the server is started anew.

        Args:
            address: of a schema; beside files there are locks.
            layout: of its tables.
            purpose: one word.
            wait: until nobody else has it.

        Raises:
            BlockingIOError: somebody else has it.
            StoreDownError: the database cannot be reached.
        """
        with closing(cls(address, layout, _engine(address), time.time)) as db:
            with db._our_errors():
                connection = db._begun(writes=False, enters=False)
                key = f"evalbudget {purpose} {address.name}"
                taken = connection.execute(text(_WAIT if wait else _TRY), {"key": key}).scalar_one()
                connection.commit()
            if taken is False:
                raise BlockingIOError(f"{address} is held by another process")
            try:
                yield
            finally:
                with suppress(SQLAlchemyError):  # the server may be gone, and lets go a moment after us
                    connection.execute(text(_RELEASE), {"key": key})
                    connection.commit()

    @classmethod
    def open(cls, address: Address, layout: Layout, clock: Callable[[], float] = time.time) -> Database:
        """An existing store.

        Raises:
            StoreError: it does not exist, is of another kind, or another version wrote it.
        """
        path = address.path
        if path is not None and not path.is_file():
            raise layout.error(f"{layout.kind} {path} {_why_no_file(path, layout)}")
        db = cls(address, layout, _engine(address), clock)
        try:
            kind, version = db._kind_and_version()
            if kind != layout.kind:
                what = "a database" if path is not None else "there"
                raise layout.error(f"{address} is {what}, but no {layout.kind}{layout.advice}")
            if version != layout.version:
                raise layout.error(
                    f"{address} has format {version}; this version of evalbudget reads format "
                    f"{layout.version}. Install the version that wrote it"
                )
        except BaseException:
            db.close()
            raise
        return db

    def write(
        self, *, waits: bool = True, first: Callable[[Connection], object] | None = None
    ) -> AbstractContextManager[Connection]:
        """All or nothing, one writer at a time; on disk when it ends.

        Of a busy file it is with the system by then: a process that is killed loses nothing, a machine that
        loses power may lose the last moments.

        Args:
            waits: for whoever writes now; a server needs none of that to change a row that nobody else does.
            first: asks what has to be known; what it sends past SQLAlchemy goes to a server together with the
                request to be the one who writes.

        Raises:
            StoreDownError: the database is gone, or went away meanwhile.
            StoreError: it cannot be written.
        """
        return self._transaction(writes=True, waits=waits, first=first)

    def conclude(self, connection: Connection, changes: Sequence[Change]) -> None:
        """The last of what is written.

        Raises:
            DBAPIError: as SQLAlchemy does.
        """
        if self._file is None:
            conclude(connection, changes)
            return
        for statement, given in changes:
            one = statement.one if isinstance(statement, Each) else statement
            _carry_out(self._file, compiled(one, "sqlite").text, given)

    def read(self) -> AbstractContextManager[Connection]:
        """Several queries that see the same moment."""
        return self._transaction(writes=False)

    def rows(self, query: Executable) -> Sequence[Row[*tuple[Any, ...]]]:
        """What a query finds."""
        with self.read() as connection:
            return connection.execute(query).all()

    def now(self, connection: Connection) -> float:
        """Seconds since 1970 by the one clock that all who use the store share."""
        if self.address.url is None:
            return self.clock()
        return float(connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")))

    def storable(self, said: str) -> str:
        """A text as the database can hold it, without secrets that models and servers repeat.

        What models answer may have halves of characters, and zeros.
        """
        said = str(without_known(said))
        said = said.encode(errors="replace").decode()
        return said if self.address.url is None else said.replace("\0", "\N{REPLACEMENT CHARACTER}")

    def gather(self) -> None:
        """What stands beside a file becomes part of it; whatever is written from now on stands beside it."""
        with self._lock, self._our_errors():
            if self._is_quick and self._file is not None:
                _carry_out(self._file, "PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let the database go; what stands beside a file for one process becomes part of it."""
        with self._lock:
            self._is_over = self.layout.for_one
            try:
                if self._is_over and self._is_quick and self._file is not None:
                    with suppress(SQLAlchemyError):  # it stays beside it, and is found there
                        self._end("ROLLBACK")
                        _carry_out(self._file, "PRAGMA journal_mode = DELETE")
            finally:
                self._let_go()

    # bookkeeping

    @contextmanager
    def _transaction(
        self,
        *,
        writes: bool,
        enters: bool = True,
        waits: bool = True,
        first: Callable[[Connection], object] | None = None,
    ) -> Iterator[Connection]:
        with self._lock, self._our_errors():
            if self._connection is not None and self._is_within:
                if first is not None:
                    first(self._connection)
                yield self._connection  # to somebody who is in the middle
                return
            try:
                connection = self._begun(writes=writes, enters=enters, waits=waits, first=first)
                try:
                    yield connection
                except BaseException:
                    self._take_back(connection)
                    raise
                self._commit(connection)
            except BaseException:
                if self._is_left:  # it would keep others out
                    self._drop()
                raise

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
            self._end("COMMIT")
        except BaseException:
            self._drop()
            raise

    def _take_back(self, connection: Connection) -> None:
        """Nothing of the transaction was; one that cannot be told so, since it was cut off, is let go."""
        if not connection.invalidated:
            connection.rollback()
            self._end("ROLLBACK")

    @property
    def _is_within(self) -> bool:
        """Whether a transaction has begun."""
        if self._file is not None:
            return self._file.in_transaction
        return self._connection is not None and self._connection.in_transaction()

    @property
    def _is_left(self) -> bool:
        """Whether anything of a transaction is, also one that was cut off while it ended."""
        return self._is_within or (
            self._connection is not None and self._connection.get_transaction() is not None
        )

    def _end(self, how: str) -> None:
        """Of a file, end what SQLAlchemy knows nothing of."""
        if self._file is not None and self._file.in_transaction:
            _carry_out(self._file, how)

    def _begun(
        self,
        *,
        writes: bool,
        enters: bool,
        waits: bool = True,
        first: Callable[[Connection], object] | None = None,
    ) -> Connection:
        """A transaction; waits for a database that cannot be reached, since nothing was begun."""
        pause = 0.0
        while True:
            try:
                connection = self._begin_once(writes=writes)
                if self._file is not None:
                    if first is not None:
                        first(connection)
                elif enters:
                    self._enter(connection, writes=writes, waits=waits, first=first)
            except DBAPIError as ex:
                self._drop()
                if self.address.url is None or not is_gone(ex) or self._is_patience_over(ex):
                    raise
                time.sleep(pause)
                pause = min(1.0, 2.0 * pause + 0.05)
            except BaseException:  # what has begun would keep others out
                self._drop()
                raise
            else:
                self._gone_since = None
                return connection

    def _begin_once(self, *, writes: bool) -> Connection:
        if self._is_over:
            raise self.layout.error(f"{self.address} cannot be written: it was closed")
        if self._connection is None:
            self._connection = self._engine.connect()
            driver = self._connection.connection.driver_connection
            self._file = driver if isinstance(driver, sqlite3.Connection) else None
            self.connections += 1
            if self._file is not None:
                self._set_up(self._file)
        is_ours = self.layout.for_one and self._is_quick
        if writes and self.layout.is_busy and self._file is not None and not self._is_quick:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):  # not within a transaction
                _carry_out(self._file, f"PRAGMA {pragma}")
            self._is_quick = True
        if self._file is not None:  # where a snapshot needs no lock
            if writes and not is_ours:
                self._lock_file(self._file)
            else:
                _carry_out(self._file, "BEGIN IMMEDIATE" if writes else "BEGIN")
            return self._connection
        # all queries of a snapshot must be of one moment
        connection = self._connection.execution_options(isolation_level=_LEVEL[writes])
        connection.begin()
        return connection

    def _set_up(self, file: sqlite3.Connection) -> None:
        """Only now: what has touched the file keeps it locked until it is let go, so Ctrl-C must find it.

        A rollback journal keeps everything in the one file, which people copy and send around; with FULL a
        record is on the disk before whoever made it is told so.
        """
        if self.layout.for_one:  # its own memory in place of a shared one; before anything reads the file
            _carry_out(file, "PRAGMA locking_mode = EXCLUSIVE")
        for pragma in ("synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
            _carry_out(file, f"PRAGMA {pragma}")

    def _lock_file(self, file: sqlite3.Connection) -> None:
        try:
            _begin_to_write(file, min(_SOON, _PATIENCE))
        except OperationalError as ex:
            if "locked" not in str(ex.orig) or self._waited_in_vain:
                raise
            log.warning(
                "%s is kept locked by another process; waiting for it, %g s at most", self.address, _PATIENCE
            )
            self._waited_in_vain = True
            _begin_to_write(file, max(0.0, _PATIENCE - _SOON))
        self._waited_in_vain = False

    def _is_patience_over(self, ex: DBAPIError) -> bool:
        now = time.monotonic()
        if self._gone_since is None:
            self._gone_since = now
            log.warning(
                "%s cannot be reached (%s); trying again for %g s",
                *(self.address, first_line(str(ex.orig)), self.patience),
            )
        return now - self._gone_since > self.patience

    def _drop(self) -> None:
        if self._connection is not None and self.address.path == _MEMORY:  # it is the database
            self._connection.rollback()
            self._end("ROLLBACK")
        else:
            self._let_go()

    def _let_go(self) -> None:
        """Of the connection."""
        gone, file = self._connection, self._file
        try:
            self._connection, self._file, self._is_quick = None, None, False  # first: Ctrl-C may come again
            if gone is not None:
                gone.invalidate()
                gone.close()
        finally:
            if file is not None:
                file.close()

    def _enter(
        self,
        connection: Connection,
        *,
        writes: bool,
        waits: bool,
        first: Callable[[Connection], object] | None,
    ) -> None:
        """Take a server's schema for this transaction, then ask what has to be known first.

        To write, that waits until nobody else does.
        """
        lock = (
            f", set_config('lock_timeout', '{_PATIENCE:g}s', true), "
            f"set_config('idle_in_transaction_session_timeout', '{2 * _PATIENCE:g}s', true), "
            "pg_advisory_xact_lock(hashtextextended('evalbudget ' || %(name)s, 0))"
        )
        enter = f"SELECT set_config('search_path', %(name)s, true){lock if writes and waits else ''}"
        with in_one_go(connection):
            if writes:
                execute(connection, "BEGIN ISOLATION LEVEL READ COMMITTED")
            execute(connection, enter, {"name": self.address.name})
            if first is not None:
                first(connection)

    def _fill(self, connection: Connection, meta: Mapping[str, str]) -> None:
        self.layout.make(connection)
        rows = [{"key": key, "value": value} for key, value in meta.items()]
        connection.execute(insert(self.layout.tables.tables["meta"]), rows)

    def _sign(self, connection: Connection, version: int) -> None:
        """Say in the schema what it is."""
        said = f"evalbudget {self.layout.kind} {version}"
        connection.exec_driver_sql(f"COMMENT ON SCHEMA \"{self.address.name}\" IS '{said}'")

    def _comment(self) -> str | None:
        """What the schema says of itself; None if there is none."""
        query = text("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :name")
        with self._transaction(writes=False, enters=False) as connection:
            said = connection.execute(query, {"name": self.address.name}).all()
        return str(said[0][0]) if said else None

    def _kind_and_version(self) -> tuple[str, int]:
        if self.address.url is None:
            with self.read() as connection:
                if connection.exec_driver_sql("PRAGMA application_id").scalar() != self.layout.application_id:
                    return "", 0
                return self.layout.kind, int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
        said = self._comment()
        if said is None:
            raise self.layout.error(
                f"{self.layout.kind} {self.address} does not exist; the run that fills it creates it"
            )
        kind, _, version = said.removeprefix("evalbudget ").rpartition(" ")
        return (kind, int(version)) if version.isdigit() else ("", 0)

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as ex:
            if self.address.url is not None and is_gone(ex):
                self._drop()
                reason = first_line(str(ex.orig))
                raise StoreDownError(
                    f"{self.address} cannot be reached: {reason}; see that its server runs, and the address"
                ) from ex
            if getattr(ex.orig, "sqlstate", None) == _SCHEMA_EXISTS:
                raise FileExistsError(str(self.address)) from None
            raise self._error(str(ex.orig)) from ex
        except AssertionError as ex:  # SQLAlchemy's, where its commit was cut off
            raise cut_off_by(ex) from None
        except UnicodeDecodeError as ex:  # of a message of SQLite's, which quotes what is damaged
            raise self._error("malformed, its schema is not UTF-8") from ex

    def _error(self, said: str) -> Exception:
        return self.layout.error(told(self.address, self.layout, said, _PATIENCE))


def _why_no_file(path: Path, layout: Layout) -> str:
    if path.is_dir():
        return "is a folder; name a file"
    if path.is_symlink() and not path.exists():
        return f"is a link to what is gone{layout.advice or '; put it back'}"
    return "does not exist; the run that fills it creates it"


def _create_file(path: Path, layout: Layout, meta: Mapping[str, str], clock: Callable[[], float]) -> None:
    if why := Address(path=path).why_unusable:
        raise layout.error(why)
    # made beside it and then given its name: a process that dies here leaves no half-made store
    begun = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    address = Address(path=begun)
    try:
        begun.touch(mode_in(path.parent) if layout.is_private else _PUBLIC, exist_ok=False)
        db = Database(address, layout, _engine(address), clock)
        try:
            with db.write() as connection:
                db._fill(connection, meta)
                connection.exec_driver_sql(f"PRAGMA application_id = {layout.application_id}")
                connection.exec_driver_sql(f"PRAGMA user_version = {layout.version}")
        finally:
            db.close()
        _name(begun, path)
    except OSError as ex:
        if isinstance(ex, FileExistsError):
            raise
        raise layout.error(f"{path} cannot be written: {reason(ex)}") from ex
    finally:
        begun.unlink(missing_ok=True)


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


def _engine(address: Address) -> Engine:
    return _kept_engine(address.resolved)


@lru_cache(maxsize=16)  # it knows the queries that it has compiled; connections it keeps none
def _kept_engine(address: Address) -> Engine:
    if address.url is not None:
        if find_spec("psycopg") is None:
            raise InvalidInputError(
                f"{address} needs a driver for PostgreSQL: pip install 'evalbudget[postgresql]'"
            )
        return create_engine(address.url, poolclass=NullPool, connect_args=_TIMEOUTS)
    engine = create_engine(
        URL.create("sqlite", database=str(address.path)),
        poolclass=NullPool,
        connect_args={"timeout": _PATIENCE, "check_same_thread": False, "cached_statements": 64},
    )
    event.listen(engine, "connect", _begin_nothing)
    event.listen(engine, "handle_error", _stay)
    return engine


def _begin_nothing(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions are begun above


def _stay(context: ExceptionContext) -> None:
    """Ctrl-C in the midst of a statement ends its transaction, not the connection: other threads go on."""
    if not isinstance(context.original_exception, sqlite3.Error):
        context.is_disconnect = False


def _begin_to_write(file: sqlite3.Connection, patience: float) -> None:
    """Keep others from writing; wait so many seconds for one that does."""
    _carry_out(file, f"PRAGMA busy_timeout = {1000 * patience:.0f}")
    try:
        _carry_out(file, "BEGIN IMMEDIATE")
    finally:
        _carry_out(file, f"PRAGMA busy_timeout = {1000 * _PATIENCE:.0f}")


def _carry_out(
    file: sqlite3.Connection, command: str, given: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Once, or for each of these; past SQLAlchemy, which would begin a transaction first and takes longer."""
    try:
        if given is None:
            file.execute(command)
        else:
            file.executemany(command, given)
    except sqlite3.Error as ex:
        raise OperationalError(command, None, ex) from ex
