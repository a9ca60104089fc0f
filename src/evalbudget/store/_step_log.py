"""What workers did, one step after the other: all of them repeat the steps in this order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
    bindparam,
    func,
    insert,
    select,
    update,
)

from evalbudget.errors import EvalbudgetError, StoreDownError, StoreError
from evalbudget.shown import shown_logger
from evalbudget.store._address import Address
from evalbudget.store._database import Database
from evalbudget.store._layout import Layout
from evalbudget.store._terms import Terms
from evalbudget.untrusted import parsed_json

log = shown_logger(__name__)

_TABLES = MetaData()

_META = Table("meta", _TABLES, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

_WORKERS = Table(
    "workers",
    _TABLES,
    Column("worker", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("until", Float, nullable=False),
)

_STEPS = Table(
    "steps",
    _TABLES,
    Column("step", Integer, CheckConstraint("step >= 0"), primary_key=True, autoincrement=False),
    Column("worker", Integer, ForeignKey(_WORKERS.c.worker), nullable=False),
    Column("kind", Text, CheckConstraint("kind <> ''"), nullable=False),
    Column("request", Integer),
    Column("cost", Float, nullable=False),
    Column("body", Text, nullable=False),
)
for _kind in ("ask", "tell"):
    _only = _STEPS.c.kind == _kind
    Index(f"one_{_kind}", _STEPS.c.request, unique=True, postgresql_where=_only, sqlite_where=_only)

_LAYOUT = Layout("shared run", _TABLES, 1, 0x65766273, grows_only=("meta", "steps"))

_MISSED = select(_STEPS).where(_STEPS.c.step >= bindparam("after")).order_by(_STEPS.c.step)
_APPEND = insert(_STEPS)
_SILENT = select(_WORKERS.c.worker).where(_WORKERS.c.until < bindparam("now"))
_REPLACED = select(func.count()).where(
    _WORKERS.c.name == bindparam("name"), _WORKERS.c.worker > bindparam("me")
)
_SIGN = update(_WORKERS).where(_WORKERS.c.worker == bindparam("me")).values(until=bindparam("then"))


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a worker did.

    Attributes:
        worker: its number.
        kind: of step; of one request there is at most one ``ask`` and one ``tell``.
        request: number of the request; None where it is about none.
        cost: that goes with it.
        body: what else there is to say; JSON values.
    """

    worker: int
    kind: str
    request: int | None = None
    cost: float = 0.0
    body: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_row(cls, row: Row[Any]) -> Step:
        """As it stands in the store.

        Raises:
            TypeError, ValueError: it is none.
        """
        return cls(row.worker, row.kind, row.request, float(row.cost), parsed_json(row.body))

    def as_row(self, number: int) -> dict[str, Any]:
        """As it stands in the store."""
        return {
            "step": number,
            "worker": self.worker,
            "kind": str(self.kind),
            "request": self.request,
            "cost": float(self.cost),
            "body": json.dumps(self.body, default=_plain, allow_nan=False),
        }


class StepLog:
    """One worker's way to the steps that it shares with others.

    A background thread renews the worker's lease, so that a long call is not taken for a dead worker.

    Args:
        where: the store; begun if nothing is there.
        terms: that all workers have in common.
        name: of the worker; an earlier one of the same name is taken to be dead.
        lease: seconds without a sign of life after which others take over what a worker has under way.
        clock: seconds since 1970; of use for files only, a server has its own.

    Attributes:
        worker: number of this worker.
        replaced: numbers of earlier workers of the same name.

    Raises:
        StoreError: the store holds something else, or belongs to workers on other terms.
        StoreDownError: it cannot be reached.
    """

    def __init__(
        self, where: Address, terms: Terms, name: str, lease: float, clock: Callable[[], float]
    ) -> None:
        self._lease = lease
        self._where = where
        self._clock = clock
        self._name = name
        self._db = _opened(where, terms, clock)
        try:
            with self._db.write() as connection:
                terms.check(
                    connection.scalar(select(_META.c.value).where(_META.c.key == "terms")) or "", where
                )
                now = self._db.now(connection)
                before = select(_WORKERS.c.worker).where(_WORKERS.c.name == name)
                self.replaced = frozenset(connection.scalars(before))
                last = connection.scalar(select(func.max(_WORKERS.c.worker)))
                self.worker = 0 if last is None else last + 1
                connection.execute(
                    insert(_WORKERS), {"worker": self.worker, "name": name, "until": now + lease}
                )
        except BaseException:
            self._db.close()
            raise
        self._watched = 0, 0.0  # this connection, since when
        self._look_again = 0.0
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="evalbudget lease", daemon=True)
        self._heart.start()

    @property
    def address(self) -> Address:
        """Of the store."""
        return self._where

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        """Nobody else reads or writes steps meanwhile."""
        waited = time.monotonic()
        with self._db.write() as connection:
            if time.monotonic() - waited > self._lease / 6.0:
                self._watched = -1, 0.0  # meanwhile others may have been kept from giving signs of life, too
            yield connection

    def peek(self, after: int) -> list[Step]:
        """Steps from this number on, while others may add more.

        Raises:
            StoreDownError: the store cannot be reached.
        """
        while True:
            entered = False
            try:
                with self._db.read() as connection:
                    entered = True
                    return self.missed(connection, after)
            except StoreDownError:  # a server that goes in the middle may be back soon
                if not entered:
                    raise

    def missed(self, connection: Connection, after: int) -> list[Step]:
        """Steps from this number on.

        Raises:
            StoreError: something else wrote them.
        """
        rows = connection.execute(_MISSED, {"after": after}).all()
        try:
            if [row.step for row in rows] != list(range(after, after + len(rows))):  # some would count twice
                raise ValueError(f"of its steps from {after} on one is missing")
            return [Step.of_row(row) for row in rows]
        except (TypeError, ValueError) as ex:
            raise StoreError(f"{self._where} is damaged: {ex}; restore a copy, or begin a new store") from ex

    def append(self, connection: Connection, steps: Sequence[Step], first: int) -> None:
        """Add steps, numbered from ``first``."""
        connection.execute(_APPEND, [step.as_row(first + place) for place, step in enumerate(steps)])

    def silent(self, connection: Connection) -> list[int]:
        """Workers that left, or gave no sign of life for as long as this one could have seen it.

        Looked up a few times in every lease; none in between.

        Raises:
            StoreError: another process goes by this one's name now.
        """
        if time.monotonic() < self._look_again:
            return []
        if connection.scalar(_REPLACED, {"me": self.worker, "name": self._name}):
            raise StoreError(
                f"{self._where}: another process goes by the name {self._name} now; this one ends, so that "
                "nothing is bought twice"
            )
        self._look_again = time.monotonic() + min(1.0, self._lease / 6.0)
        now = self._db.now(connection)
        if self._watched[0] != self._db.connections:  # while the server was away nobody could give one
            self._watched = self._db.connections, now
        limit = now if now - self._watched[1] > self._lease else 1.0
        return [int(worker) for (worker,) in connection.execute(_SILENT, {"now": limit})]

    def names(self, workers: Collection[int]) -> tuple[str, ...]:
        """That these workers go by, each once."""
        named = select(_WORKERS.c.name).where(_WORKERS.c.worker.in_(workers)).order_by(_WORKERS.c.worker)
        with self._db.read() as connection:
            return tuple(dict.fromkeys(connection.scalars(named)))

    def close(self, *, signs_off: bool, patience: float | None = None) -> None:
        """Let the store go.

        Args:
            signs_off: whether others are to know at once that this worker is gone, not when its lease ends.
            patience: seconds to wait for a store that cannot be reached; None as long as ever.
        """
        if patience is not None:
            self._db.patience = patience
        self._over.set()
        self._heart.join()
        try:
            if signs_off:
                with self._db.write() as connection:
                    connection.execute(_SIGN, {"me": self.worker, "then": 0.0})
        except EvalbudgetError as ex:  # the lease runs out
            log.warning("worker %d could not sign off: %s", self.worker, ex)
        finally:
            self._db.close()

    def _beat(self) -> None:
        db: Database | None = None
        while not self._over.wait(self._lease / 3.0):
            try:
                if db is None:
                    db = Database.open(self._where, _LAYOUT, self._clock)
                    db.patience = 0.0
                with db.write(waits=False) as connection:
                    connection.execute(_SIGN, {"me": self.worker, "then": db.now(connection) + self._lease})
            except Exception as ex:  # whatever it is: the next one may work
                log.info("no sign of life could be given: %s", ex)
                if db is not None:
                    db.close()
                    db = None
        if db is not None:
            db.close()


def _opened(where: Address, terms: Terms, clock: Callable[[], float]) -> Database:
    """The store, begun if nothing is there."""
    if not Database.exists(where, _LAYOUT):
        try:
            return Database.create(where, _LAYOUT, {"terms": terms.as_json()}, clock)
        except FileExistsError:  # somebody else was quicker
            pass
    return Database.open(where, _LAYOUT, clock)


def _plain(value: Any) -> Any:
    return value.item()  # NumPy's scalars
