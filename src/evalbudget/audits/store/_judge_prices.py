"""What a score of the judge cost when a batch was drawn: kept, so that decisions can be replayed."""

from __future__ import annotations

import math

from evalbudget.audits.store._database import Database
from evalbudget.errors import AuditStoreError

_KEY = "judge price after batch "


class JudgePrices:
    """Means over the scores that were bought until a batch was drawn; the next one is chosen by them.

    Args:
        db: the file.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> dict[int, float]:
        """In dollars, by number of the batch.

        Raises:
            AuditStoreError: what is kept is no price.
        """
        rows = self._db.rows("SELECT key, value FROM meta WHERE substr(key, 1, ?) = ?", len(_KEY), _KEY)
        try:
            found = {int(key[len(_KEY) :]): float(value) for key, value in rows}
        except (TypeError, ValueError) as ex:
            raise AuditStoreError(
                f"{self._db.path} is damaged: a price of the judge is no number ({ex}). Restore a copy"
            ) from ex
        if not all(math.isfinite(price) and price >= 0.0 for price in found.values()):
            raise AuditStoreError(f"{self._db.path} is damaged: a price of the judge is none. Restore a copy")
        return found

    def note(self, price: float) -> None:
        """Keep what a score cost until now, for the batch after the last that was drawn; the first counts."""
        with self._db.write() as cursor:
            last = cursor.execute("SELECT max(policy) FROM draws").fetchone()[0]
            if last is not None:
                cursor.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (f"{_KEY}{last}", repr(price)))
