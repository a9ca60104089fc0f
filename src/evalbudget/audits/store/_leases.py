"""Who is reading which draw, so that nobody else is given it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from evalbudget.audits.store._database import Database
from evalbudget.audits.store._draws import Draws
from evalbudget.audits.store._labels import labeller
from evalbudget.audits.store._record_types import LabelTask

SECONDS = 120.0
"""How long a draw stays with a session that gives no sign of life."""

_FREE = (
    "SELECT draw FROM draws WHERE wanted "
    "AND NOT EXISTS (SELECT 1 FROM labels WHERE labels.draw = draws.draw) "
    "AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.draw = draws.draw) ORDER BY draw"
)

_LONGEST = 7 * 86_400.0
"""Seconds that a draw can be reserved; one for longer was reserved before the clock was set back."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a sign of life found.

    Attributes:
        held: whether the draw is still with the page that asks.
        labelled: whether somebody has labelled it.
    """

    held: bool
    labelled: bool


class Leases:
    """Hands out draws to label, each to one session at a time.

    A session is whatever asks for draws one after the other: a page in a browser, a script. Its draw goes to
    somebody else once it is labelled, released, or the session has been silent for too long.

    Args:
        db: the file.
        draws: what may be labelled.
    """

    def __init__(self, db: Database, draws: Draws) -> None:
        self._db = db
        self._draws = draws

    def next(
        self,
        session: str,
        by: str,
        *,
        seconds: float = SECONDS,
        skip: Sequence[int] = (),
        among: Collection[int] | None = None,
    ) -> LabelTask | None:
        """The draw its reader is at, otherwise the first one that nobody has; None if there is none.

        The verdict waits for labels in draw order, so they are handed out in that order.

        Args:
            session: unique name of the session.
            by: who labels.
            seconds: until it goes to somebody else, counted from the last sign of life.
            skip: draws put off, longest first; they are handed out when nothing else is left.
            among: draws whose labels the verdict waits for; None for all that are not labelled.
        """
        by = labeller(by)
        with self._db.write() as cursor:
            now = self._db.clock()
            cursor.execute("DELETE FROM leases WHERE until NOT BETWEEN ? AND ?", (now, now + _LONGEST))
            cursor.executemany(
                "DELETE FROM leases WHERE session = ? AND draw = ?", [(session, draw) for draw in skip]
            )
            row = cursor.execute("SELECT min(draw) FROM leases WHERE session = ?", (session,)).fetchone()
            draw = row[0]
            if draw is None:
                free = [n for (n,) in cursor.execute(_FREE) if among is None or n in among]
                put_off = set(skip)
                first = (draw for draw in free if draw not in put_off)
                draw = next(chain(first, (draw for draw in skip if draw in free)), None)
            if draw is None:
                return None
            cursor.execute(
                "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (draw) "
                'DO UPDATE SET "by" = excluded."by", until = excluded.until',
                (draw, session, by, now + min(seconds, _LONGEST)),
            )
        return self._draws.task(draw)

    def renew(self, draw: int, session: str, *, seconds: float = SECONDS) -> Held:
        """A sign of life from who is reading a draw."""
        with self._db.write() as cursor:
            now = self._db.clock()
            labelled = cursor.execute("SELECT 1 FROM labels WHERE draw = ?", (draw,)).fetchone() is not None
            changed = cursor.execute(
                "UPDATE leases SET until = ? WHERE draw = ? AND session = ? AND until > ?",
                (now + min(seconds, _LONGEST), draw, session, now),
            ).rowcount
        return Held(bool(changed), labelled)

    def release(self, session: str) -> None:
        """Give back what a session holds."""
        with self._db.write() as cursor:
            cursor.execute("DELETE FROM leases WHERE session = ?", (session,))

    def count(self) -> int:
        """How many draws are being read now."""
        now = self._db.clock()
        query = "SELECT count(*) FROM leases WHERE until > ? AND until <= ?"
        return int(self._db.rows(query, now, now + _LONGEST)[0][0])
