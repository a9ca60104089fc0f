"""An audit in one file: what was drawn, what humans said of it, who is reading what."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from evalbudget._version import __version__
from evalbudget.audits._draw import Coin
from evalbudget.audits.store._attempts import Attempts
from evalbudget.audits.store._database import Database
from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._judge_prices import JudgePrices
from evalbudget.audits.store._labels import Labels
from evalbudget.audits.store._leases import Leases
from evalbudget.audits.store._record_types import Progress
from evalbudget.audits.store._soundness import check_rows
from evalbudget.errors import AuditStoreError

_SHOWN = 5


class AuditStore:
    """An SQLite file of draws and labels that only ever grows.

    Use :meth:`create` or :meth:`open`. Several processes and threads may use the file at once: one run that
    draws, any number that label. Whatever a method was given is on disk when it returns.

    Attributes:
        path: of the file.
        id: unique; begins the ids of the tasks, so that labels of another store are told.
        design: names, scale and policy.
        command: what draws the next batch, to show to people; empty if nobody said.
        draws: every answer that was judged.
        labels: every score that a human gave.
        attempts: every time that a scorer was asked for a label.
        leases: who is reading what.
        judge_prices: what a score of the judge cost, where a label's price is in money.
    """

    def __init__(self, db: Database) -> None:
        meta = dict(db.rows("SELECT key, value FROM meta"))
        self._db = db
        self.path = db.path
        try:
            self.id, self.command = str(meta["id"]), str(meta["command"])
            self.design = AuditDesign.from_json(meta["design"])
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as ex:
            raise AuditStoreError(
                f"{db.path} is damaged: what it says of its audit cannot be read ({ex!r}). Restore a copy of "
                "the file"
            ) from ex
        self.draws = Draws(db, self.design, self.id)
        self.labels = Labels(db, self.design, self.draws)
        self.attempts = Attempts(db, self.design, self.draws, self.labels)
        self.leases = Leases(db, self.draws)
        self.judge_prices = JudgePrices(db)

    @classmethod
    def create(
        cls,
        path: str | Path,
        design: AuditDesign,
        *,
        command: str = "",
        clock: Callable[[], float] = time.time,
    ) -> AuditStore:
        """Begin an audit.

        Args:
            path: of the file.
            design: what the audit is about.
            command: what draws the next batch, shown when all labels are in.
            clock: seconds since 1970.

        Raises:
            AuditStoreError: the file exists or cannot be written.
        """
        meta = {
            # begins with a letter, so that spreadsheets take it for no number
            "id": secrets.choice("abcdef") + secrets.token_hex(4)[1:],
            "design": design.to_json(),
            "fingerprint": design.fingerprint,
            "command": command,
            "version": __version__,
        }
        return cls(Database.create(Path(path), meta, clock))

    @classmethod
    def open(
        cls, path: str | Path, expected: AuditDesign | None = None, *, clock: Callable[[], float] = time.time
    ) -> AuditStore:
        """Continue an audit.

        Args:
            path: of the file.
            expected: what the caller is about to add to; None to take what is there.
            clock: seconds since 1970.

        Raises:
            AuditStoreError: the file is no audit store, or one of another design: says what differs.
        """
        db = Database.open(Path(path), clock)
        try:
            store = cls(db)
            check_rows(db, store.design)
            if expected is not None:
                expected = expected.as_far_as_known(store.design)
        except BaseException:
            db.close()
            raise
        if expected is not None and expected.fingerprint != store.design.fingerprint:
            differences = expected.differences(store.design)
            store.close()
            more = f"\n  and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
            raise AuditStoreError(
                f"audit store {path} belongs to another audit (there) than this one (here):\n  "
                + "\n  ".join(differences[:_SHOWN])
                + more
                + "\nGo on with the settings of the store, or give this audit a new one"
            )
        return store

    def snapshot(self) -> AbstractContextManager[object]:
        """Everything read inside is of one moment, whatever others write meanwhile."""
        return self._db.read()

    def progress(self) -> Progress:
        """How far labelling is."""
        with self._db.read() as cursor:
            drawn, contexts, wanted, batch = cursor.execute(
                "SELECT count(CASE WHEN coin <> :none THEN 1 END), "
                "count(DISTINCT CASE WHEN coin <> :none THEN context END), "
                "coalesce(sum(wanted), 0), coalesce(max(policy), -1) FROM draws",
                {"none": Coin.NONE.value},  # the second pass draws nothing new
            ).fetchone()
            labelled, batch_labelled, in_batch = cursor.execute(
                "SELECT count(first.draw), count(CASE WHEN policy = :batch THEN first.draw END), "
                "count(CASE WHEN policy = :batch THEN 1 END) FROM draws "
                "LEFT JOIN labels AS first ON first.draw = draws.draw AND first.kind = 'first' WHERE wanted",
                {"batch": batch},
            ).fetchone()
            corrections = cursor.execute("SELECT count(*) FROM labels WHERE kind = 'correction'").fetchone()[
                0
            ]
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
        drawn, said = self._db.rows(
            "SELECT (SELECT count(*) FROM draws), (SELECT coalesce(max(id), 0) FROM labels)"
        )[0]
        return drawn, said

    def close(self) -> None:
        """Let the file go."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
