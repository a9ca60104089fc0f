"""An audit in one store: what was drawn, what humans said of it, who is reading what."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import case, distinct, func, select

from evalbudget._version import __version__
from evalbudget.audits._draw import Coin
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._labels import Attempts, Labels
from evalbudget.audits.store._leases import Leases
from evalbudget.audits.store._notes import JudgePrices, Notes
from evalbudget.audits.store._record_types import Progress
from evalbudget.audits.store._schema import LAYOUT, WANTED, draws, labels, meta
from evalbudget.audits.store._soundness import check_rows
from evalbudget.errors import AuditStoreError, reason
from evalbudget.run._lock import hold
from evalbudget.store import Address, Database

_SHOWN = 5


class AuditStore:
    """Draws and labels that only ever grow: an SQLite file, or a schema of a PostgreSQL database.

    Use :meth:`create` or :meth:`open`. Several processes and threads may use it at once: one run that draws,
    any number that label. Whatever a method was given is on disk when it returns.

    Attributes:
        address: of the store.
        id: unique; begins the ids of the tasks, so that labels of another store are told.
        design: names, scale and policy.
        command: what draws the next batch, to show to people; empty if nobody said.
        draws: every answer that was judged.
        labels: every score that a human gave.
        attempts: every time that a scorer was asked for a label.
        leases: who is reading what.
        judge_prices: what a score of the judge cost, where a label's price is in money.
        projects: of Label Studio servers in which it is labelled; the last one is in use.
    """

    def __init__(self, db: Database) -> None:
        known = {row.key: row.value for row in db.rows(select(meta))}
        self._db = db
        self.address = db.address
        try:
            self.id, self.command = str(known["id"]), str(known["command"])
            self.design = AuditDesign.from_json(known["design"])
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as ex:
            raise AuditStoreError(
                f"{db.address} is damaged: what it says of its audit cannot be read ({ex!r}). Restore a copy"
            ) from ex
        self.draws = Draws(db, self.design, self.id)
        self.labels = Labels(db, self.design, self.draws)
        self.attempts = Attempts(db, self.design, self.draws, self.labels)
        self.leases = Leases(db, self.draws)
        self.judge_prices = JudgePrices(db)
        self.projects = Notes(db, "label studio")

    @classmethod
    def create(
        cls,
        where: str | Path | Address,
        design: AuditDesign,
        *,
        command: str = "",
        clock: Callable[[], float] = time.time,
    ) -> AuditStore:
        """Begin an audit.

        Args:
            where: path of a file, or ``postgresql://user@host/database#name``.
            design: what the audit is about.
            command: what draws the next batch, shown when all labels are in.
            clock: seconds since 1970.

        Raises:
            InvalidInputError: the address is none, or its driver is missing.
            AuditStoreError: the store exists or cannot be written.
            StoreDownError: the database cannot be reached.
        """
        address = Address.parse(where)
        about = {
            # begins with a letter, so that spreadsheets take it for no number
            "id": secrets.choice("abcdef") + secrets.token_hex(4)[1:],
            "design": design.to_json(),
            "command": command,
            "version": __version__,
        }
        try:
            return cls(Database.create(address, LAYOUT, about, clock))
        except FileExistsError:
            raise AuditStoreError(
                f"{address} exists; continue it with AuditStore.open, or choose another one"
            ) from None

    @staticmethod
    def exists(where: str | Path | Address) -> bool:
        """Whether something is there, an audit store or not.

        Raises:
            InvalidInputError: the address is none, or its driver is missing.
            StoreDownError: the database cannot be reached.
        """
        return Database.exists(Address.parse(where), LAYOUT)

    @classmethod
    def open(
        cls,
        where: str | Path | Address,
        expected: AuditDesign | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> AuditStore:
        """Continue an audit.

        Args:
            where: path of a file, or ``postgresql://user@host/database#name``.
            expected: what the caller is about to add to; None to take what is there.
            clock: seconds since 1970.

        Raises:
            InvalidInputError: the address is none, or its driver is missing.
            AuditStoreError: it is no audit store, or one of another design: says what differs.
            StoreDownError: the database cannot be reached.
        """
        db = Database.open(Address.parse(where), LAYOUT, clock)
        try:
            store = cls(db)
            check_rows(db, store.design)
            if differing := [] if expected is None else expected.differences(store.design):
                more = f"\n  and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
                raise AuditStoreError(
                    f"audit store {store.address} belongs to another audit (there) than this one (here):\n  "
                    + "\n  ".join(differing[:_SHOWN])
                    + more
                    + "\nGo on with the settings of the store, or give this audit a new one"
                )
        except BaseException:
            db.close()
            raise
        return store

    def be_patient(self, seconds: float) -> None:
        """Wait so long for a database that cannot be reached."""
        self._db.patience = seconds

    def snapshot(self) -> AbstractContextManager[object]:
        """Everything read inside is of one moment, whatever others write meanwhile."""
        return self._db.read()

    def progress(self) -> Progress:
        """How far labelling is."""
        is_new = draws.c.coin != Coin.NONE.value  # the second pass draws nothing new
        first = draws.join(labels, (labels.c.draw == draws.c.draw) & (labels.c.kind == "first"), isouter=True)
        with self._db.read() as connection:
            drawn, contexts, wanted, batch = connection.execute(
                select(
                    func.count(case((is_new, 1))),
                    func.count(distinct(case((is_new, draws.c.context)))),
                    func.count(case((WANTED, 1))),
                    func.coalesce(func.max(draws.c.policy), -1),
                )
            ).one()
            in_it = draws.c.policy == batch
            labelled, batch_labelled, in_batch = connection.execute(
                select(
                    func.count(labels.c.draw),
                    func.count(case((in_it, labels.c.draw))),
                    func.count(case((in_it, 1))),
                )
                .select_from(first)
                .where(WANTED)
            ).one()
            corrections = self.labels.corrections()
            leased = self.leases.count()
            conflicts = len(self.labels.conflicts())
            by: dict[str, int] = {}
            for label in self.labels.counting().values():
                by[label.by] = by.get(label.by, 0) + 1
        return Progress(
            drawn=drawn,
            contexts=contexts,
            wanted=wanted,
            labelled=labelled,
            leased=leased,
            batch=batch,
            batch_wanted=in_batch,
            batch_labelled=batch_labelled,
            conflicts=conflicts,
            corrections=corrections,
            by=dict(sorted(by.items())),
        )

    def revision(self) -> tuple[int, int]:
        """Changes whenever a draw or a label is added."""
        drawn = select(func.count()).select_from(draws).scalar_subquery()
        said = select(func.coalesce(func.max(labels.c.id), 0)).scalar_subquery()
        draws_, labels_ = self._db.rows(select(drawn, said))[0]
        return draws_, labels_

    def close(self) -> None:
        """Let it go."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def alone(store: Address, purpose: str, *, wait: bool = False) -> Iterator[None]:
    """Keep others with the same purpose away from a store, which need not exist yet.

    Args:
        store: of the audit. In a database, others are kept away until its server is started anew.
        purpose: one word.
        wait: until nobody else has it.

    Raises:
        BlockingIOError: somebody else has it.
        AuditStoreError: there is no such folder, or it cannot be written.
        StoreDownError: the database cannot be reached.
    """
    path = store.path
    if path is None:
        with Database.alone(store, LAYOUT, purpose, wait=wait):
            yield
        return
    if not path.parent.is_dir():
        raise AuditStoreError(f"{path}: the folder {path.parent} does not exist; create it first")
    try:
        lock = hold(path, purpose=purpose, wait=wait)
    except BlockingIOError:
        raise
    except OSError as ex:
        raise AuditStoreError(f"{path}: its folder cannot be written: {reason(ex)}") from ex
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
