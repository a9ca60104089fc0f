"""Who is reading which draw, so that nobody else is given it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, func, insert, not_, select, update

from evalbudget.audits.store._draws import Draws, has_label
from evalbudget.audits.store._labels import labeller
from evalbudget.audits.store._record_types import LabelTask
from evalbudget.audits.store._schema import WANTED, draws, labels, leases
from evalbudget.store import Database

SECONDS = 120.0
"""How long a draw stays with a session that gives no sign of life."""

_IS_LEASED = exists().where(leases.c.draw == draws.c.draw).correlate(draws)
_FREE = select(draws.c.draw).where(WANTED, ~has_label(), ~_IS_LEASED).order_by(draws.c.draw)

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
        db: of the store.
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
        by, session = labeller(by), self._db.storable(session)
        with self._db.write() as connection:
            now = self._db.now(connection)
            connection.execute(delete(leases).where(not_(leases.c.until.between(now, now + _LONGEST))))
            mine = leases.c.session == session
            if skip:
                connection.execute(delete(leases).where(mine, leases.c.draw.in_(skip)))
            draw = connection.scalar(select(func.min(leases.c.draw)).where(mine))
            if draw is None:
                draw = _first_free(connection, skip, among)
            if draw is None:
                return None
            lease = {"draw": draw, "session": session, "by": by, "until": now + min(seconds, _LONGEST)}
            connection.execute(delete(leases).where(leases.c.draw == draw))
            connection.execute(insert(leases), lease)
        return self._draws.task(draw)

    def renew(self, draw: int, session: str, *, seconds: float = SECONDS) -> Held:
        """A sign of life from who is reading a draw."""
        mine = (leases.c.draw == draw, leases.c.session == self._db.storable(session))
        with self._db.write() as connection:
            now = self._db.now(connection)
            labelled = connection.scalar(select(exists().where(labels.c.draw == draw)))
            changed = connection.execute(
                update(leases).where(*mine, leases.c.until > now).values(until=now + min(seconds, _LONGEST))
            ).rowcount
        return Held(bool(changed), bool(labelled))

    def release(self, session: str) -> None:
        """Give back what a session holds."""
        with self._db.write() as connection:
            connection.execute(delete(leases).where(leases.c.session == self._db.storable(session)))

    def count(self) -> int:
        """How many draws are being read now."""
        with self._db.read() as connection:
            now = self._db.now(connection)
            held = (leases.c.until > now, leases.c.until <= now + _LONGEST)
            return int(connection.execute(select(func.count()).where(*held)).scalar_one())


def _first_free(connection: Connection, skip: Sequence[int], among: Collection[int] | None) -> int | None:
    put_off, waiting = set(skip), set[int]()
    with closing(connection.scalars(_FREE)) as free:
        for draw in free:
            if among is not None and draw not in among:
                continue
            if draw not in put_off:
                return int(draw)
            waiting.add(draw)
    return next((draw for draw in skip if draw in waiting), None)
