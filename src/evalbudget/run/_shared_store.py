"""The store of a shared purchase: who takes part, what they did, and who gave no sign of life."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update

from evalbudget.budget import Budget, Unit
from evalbudget.errors import EvalbudgetError, StoreError
from evalbudget.journal import Header, differences
from evalbudget.run._shared_log import LAYOUT, META, STEPS, WORKERS, Step
from evalbudget.store import Address, Database

log = logging.getLogger(__name__)

_MISSED = select(STEPS).where(STEPS.c.step >= bindparam("after")).order_by(STEPS.c.step)
_APPEND = insert(STEPS)
_SILENT = select(WORKERS.c.worker).where(WORKERS.c.until < bindparam("now"))
_SIGN = update(WORKERS).where(WORKERS.c.worker == bindparam("me")).values(until=bindparam("then"))


@dataclass(frozen=True, slots=True)
class Terms:
    """What all workers of a shared purchase have in common.

    Attributes:
        header: sampler, seed and design.
        budget: for all of them together.
    """

    header: Header
    budget: Budget

    def as_json(self) -> str:
        """To keep in the store."""
        budget = {"amount": self.budget.amount, "unit": self.budget.unit.value}
        return json.dumps({"header": asdict(self.header), "budget": budget}, default=list)

    def check(self, there: str, where: Address) -> None:
        """Refuse to join a purchase of other terms.

        Raises:
            StoreError: says what differs.
        """
        kept = json.loads(there)
        begun = Header(**kept["header"])
        if begun.version != self.header.version:
            raise StoreError(
                f"{where} was begun by evalbudget {begun.version}, and this is {self.header.version}: "
                "workers of "
                "two versions might decide differently. Install the version that began it, or begin a "
                "new store"
            )
        if begun.design != self.header.design:
            raise StoreError(
                f"{where} belongs to another design (other models, items or judges); give every worker "
                "the same "
                "task and data, or begin a new store"
            )
        config = json.loads(json.dumps(self.header.config, default=list))
        if shown := differences(begun.config, config):
            raise StoreError(
                f"{where} was begun with other settings ({shown}); give every worker the same, or "
                "begin a new store"
            )
        budget = Budget(kept["budget"]["amount"], Unit(kept["budget"]["unit"]))
        if budget != self.budget:
            raise StoreError(
                f"the workers of {where} share a budget of {budget}, and this one was given "
                f"{self.budget}; give "
                "the same, or begin a new store"
            )


class SharedStore:
    """One worker's way to the store of a shared purchase.

    A background thread renews the worker's lease, so that a long call is not taken for a dead worker.

    Args:
        where: the store; begun if nothing is there.
        terms: of the purchase.
        name: of the worker; an earlier one of the same name is taken to be dead.
        lease: seconds without a sign of life after which others take over what a worker has under way.
        clock: seconds since 1970; of use for files only, a server has its own.

    Attributes:
        worker: number of this worker.

    Raises:
        StoreError: the store holds something else, or belongs to a purchase of other terms.
        StoreDownError: it cannot be reached.
    """

    def __init__(
        self, where: Address, terms: Terms, name: str, lease: float, clock: Callable[[], float]
    ) -> None:
        self._lease = lease
        self._where = where
        self._clock = clock
        try:
            self._db = Database.create(where, LAYOUT, {"terms": terms.as_json()}, clock)
        except FileExistsError:
            self._db = Database.open(where, LAYOUT, clock)
        try:
            with self._db.write() as connection:
                terms.check(connection.scalar(select(META.c.value).where(META.c.key == "terms")) or "", where)
                now = self._db.now(connection)
                connection.execute(update(WORKERS).where(WORKERS.c.name == name).values(until=0.0))
                last = connection.scalar(select(func.max(WORKERS.c.worker)))
                self.worker = 0 if last is None else last + 1
                connection.execute(
                    insert(WORKERS), {"worker": self.worker, "name": name, "until": now + lease}
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
        with self._db.write() as connection:
            yield connection

    def missed(self, connection: Connection, after: int) -> list[Step]:
        """Steps from this number on."""
        return [Step.of_row(row) for row in connection.execute(_MISSED, {"after": after})]

    def append(self, connection: Connection, steps: Sequence[Step], first: int) -> None:
        """Add steps, numbered from ``first``."""
        connection.execute(_APPEND, [step.as_row(first + place) for place, step in enumerate(steps)])

    def silent(self, connection: Connection) -> list[int]:
        """Workers that left, or gave no sign of life for as long as this one could have seen it.

        Looked up a few times in every lease; none in between.
        """
        if time.monotonic() < self._look_again:
            return []
        self._look_again = time.monotonic() + min(1.0, self._lease / 6.0)
        now = self._db.now(connection)
        if self._watched[0] != self._db.connections:  # while the server was away nobody could give one
            self._watched = self._db.connections, now
        limit = now if now - self._watched[1] > self._lease else 1.0
        return [int(worker) for (worker,) in connection.execute(_SILENT, {"now": limit})]

    def close(self) -> None:
        """Leave; what is still under way goes to others at once."""
        self._over.set()
        self._heart.join()
        try:
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
                    db = Database.open(self._where, LAYOUT, self._clock)
                    db.patience = 0.0
                with db.write() as connection:
                    connection.execute(_SIGN, {"me": self.worker, "then": db.now(connection) + self._lease})
            except EvalbudgetError as ex:
                log.info("no sign of life could be given: %s", ex)
        if db is not None:
            db.close()
