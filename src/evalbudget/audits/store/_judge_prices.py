"""What a score of the judge cost when a batch was drawn: kept, so that decisions can be replayed."""

from __future__ import annotations

import math

from sqlalchemy import exists, func, insert, select

from evalbudget.audits.store._schema import draws, meta
from evalbudget.errors import AuditStoreError
from evalbudget.store import Database

_KEY = "judge price after batch "


class JudgePrices:
    """Means over the scores that were bought until a batch was drawn; the next one is chosen by them.

    Args:
        db: of the store.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> dict[int, float]:
        """In dollars, by number of the batch.

        Raises:
            AuditStoreError: what is kept is no price.
        """
        rows = self._db.rows(select(meta).where(func.substr(meta.c.key, 1, len(_KEY)) == _KEY))
        try:
            found = {int(key[len(_KEY) :]): float(value) for key, value in rows}
        except (TypeError, ValueError) as ex:
            raise AuditStoreError(
                f"{self._db.address} is damaged: a price of the judge is no number ({ex}). Restore a copy"
            ) from ex
        if not all(math.isfinite(price) and price >= 0.0 for price in found.values()):
            raise AuditStoreError(
                f"{self._db.address} is damaged: a price of the judge is none. Restore a copy"
            )
        return found

    def note(self, price: float) -> None:
        """Keep what a score cost until now, for the batch after the last that was drawn; the first counts."""
        with self._db.write() as connection:
            last = connection.scalar(select(func.max(draws.c.policy)))
            key = f"{_KEY}{last}"
            if last is not None and not connection.scalar(select(exists().where(meta.c.key == key))):
                connection.execute(insert(meta), {"key": key, "value": repr(price)})
