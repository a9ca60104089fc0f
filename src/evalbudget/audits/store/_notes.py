"""What is noted of an audit as it goes on: what the judge cost, where it is labelled."""

from __future__ import annotations

import math

from sqlalchemy import exists, func, insert, select

from evalbudget.audits.store._schema import draws, meta
from evalbudget.errors import AuditStoreError
from evalbudget.store import Database


class Notes:
    """Numbered texts of one kind, in the table ``meta``, which only grows.

    Args:
        db: of the store.
        kind: what they are.
    """

    def __init__(self, db: Database, kind: str) -> None:
        self._db = db
        self._kind = f"{kind} "

    def all(self) -> dict[int, str]:
        """Every one, in the order of their numbers.

        Raises:
            AuditStoreError: a number is none.
        """
        begins = func.substr(meta.c.key, 1, len(self._kind)) == self._kind
        rows = self._db.rows(select(meta).where(begins))
        try:
            return dict(sorted((int(key[len(self._kind) :]), str(value)) for key, value in rows))
        except ValueError as ex:
            raise AuditStoreError(
                f"{self._db.address} is damaged, or something else wrote into it: a {self._kind.strip()!r} "
                f"in its table meta has no number ({ex}). Restore a copy"
            ) from ex

    def add(self, number: int, text: str) -> None:
        """One more; nothing where one has that number."""
        key = f"{self._kind}{number}"
        with self._db.write() as connection:
            if not connection.scalar(select(exists().where(meta.c.key == key))):
                connection.execute(insert(meta), {"key": key, "value": text})

    def append(self, text: str) -> None:
        """One more, after the last."""
        with self._db.write():
            self.add(max(self.all(), default=-1) + 1, text)


class JudgePrices:
    """What a score of the judge cost until a batch was drawn, on average; the next one is chosen by it.

    It is kept, so that decisions can be replayed.

    Args:
        db: of the store.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._notes = Notes(db, "judge price after batch")

    def all(self) -> dict[int, float]:
        """In dollars, by number of the batch.

        Raises:
            AuditStoreError: what is kept is no price.
        """
        try:
            found = {batch: float(text) for batch, text in self._notes.all().items()}
            if not all(math.isfinite(price) and price >= 0.0 for price in found.values()):
                raise ValueError(f"{found}")
        except ValueError as ex:
            raise AuditStoreError(
                f"{self._db.address} is damaged: a price of the judge is no number ({ex}). Restore a copy"
            ) from ex
        return found

    def note(self, price: float) -> None:
        """Keep what a score cost until now, for the batch after the last that was drawn; the first counts."""
        with self._db.write() as connection:
            last = connection.scalar(select(func.max(draws.c.policy)))
            if last is not None:
                self._notes.add(last, repr(price))
