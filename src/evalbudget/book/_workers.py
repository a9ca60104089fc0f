"""Who works on a book, and who is gone: signs of life, and processes of this machine that ended."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Float, bindparam, cast, exists, extract, func, insert, or_, select, update

from evalbudget.book._tables import CELLS, LAYOUT, WORKERS
from evalbudget.cells import TAKEN
from evalbudget.errors import StoreError
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Database
from evalbudget.store._sql import Asked, Query, change

log = shown_logger(__name__)

_SIGN = update(WORKERS).where(WORKERS.c.worker == bindparam("me")).values(until=bindparam("then"))
_KNOWN_AS = select(WORKERS.c.worker, WORKERS.c.name, WORKERS.c.until).where(
    WORKERS.c.known_as == bindparam("who")
)
_GOES_ON = (
    update(WORKERS)
    .where(WORKERS.c.worker == bindparam("me"))
    .values(name=bindparam("process"), until=bindparam("then"))
)
_HAS_CELLS = exists().where(CELLS.c.state == TAKEN, CELLS.c.worker == WORKERS.c.worker)
_LIVING = select(WORKERS.c.worker, WORKERS.c.name, WORKERS.c.known_as, WORKERS.c.until).where(
    or_(WORKERS.c.until > 0.0, _HAS_CELLS)
)
"""Whoever has not signed off; one that was taken for dead may have gone on, and have cells again."""
_ME = select(WORKERS.c.until, WORKERS.c.name, WORKERS.c.told).where(WORKERS.c.worker == bindparam("me"))
_NOW = select(cast(extract("epoch", func.clock_timestamp()), Float).label("now"))
_TELL = update(WORKERS).where(WORKERS.c.worker == bindparam("me")).values(told=bindparam("so_far"))


class Workers:
    """One worker among those of a book.

    A thread of it gives signs of life, so that a long call is not taken for a dead worker.

    Args:
        db: of the book.
        where: it is.
        known_as: what this one is called; one of that name is taken to have ended. None: as nobody before.
        shown_as: what people are told that it is called, if not that.
        lease: seconds without a sign of life after which a worker is taken to be dead; 0 where there are no
            others, and nobody looks for signs.
        clock: seconds since 1970; of use for files only, a server has its own.

    Attributes:
        is_alone: there are no others, and nobody looks for signs.
        me: number of this worker, from 0.
        goes_on: there was one of its name before.
        told: how much it had told under this name before.
    """

    def __init__(
        self,
        db: Database,
        where: Address,
        known_as: str | None,
        shown_as: str | None,
        lease: float,
        clock: Callable[[], float],
    ) -> None:
        self._db, self._where, self._lease, self._clock = db, where, lease, clock
        self.is_alone = not lease
        self._look_again = 0.0
        self._watched = 0, 0.0  # this connection, since when
        self._name, self._known_as = name, known_as = _name(), known_as
        with db.write() as connection:
            until = db.now(connection) + lease
            before = self._before = connection.execute(_KNOWN_AS, {"who": known_as}).one_or_none()
            self.goes_on = before is not None
            if before is None:
                last = connection.scalar(select(func.max(WORKERS.c.worker)))
                self.me = 0 if last is None else int(last) + 1
                row = {"worker": self.me, "name": name, "known_as": known_as or name, "until": until}
                row |= {"shown_as": shown_as or row["known_as"], "told": 0, "room": 0.0}
                connection.execute(insert(WORKERS), row)
            else:
                self.me = int(before.worker)
                connection.execute(_GOES_ON, {"me": self.me, "process": name, "then": until})
            self.told = self.told_in(Asked(connection))
        self._over = threading.Event()
        self._heart: threading.Thread | None = None
        if where.path != MEMORY and lease > 0.0:
            self._heart = threading.Thread(target=self._beat, name="evalbudget lease", daemon=True)
            self._heart.start()

    def asks(self) -> Sequence[Query]:
        """What :meth:`gone` and :meth:`told_in` will ask, as far as that is known before."""
        me = [Query(_ME, {"me": self.me})]
        return [*me, Query(_NOW), Query(_LIVING)] if time.monotonic() >= self._look_again else me

    def gone(self, connection: Connection, asked: Asked) -> list[int]:
        """Workers that are gone and have not signed off; looked up now and then, none in between.

        Whoever is alone is asked once: whoever was there before is gone.

        Raises:
            StoreError: another process has this one's name.
        """
        me = None
        if self._known_as is not None and self._heart is not None:
            me = self._row(asked)
            if me.name != self._name:
                raise StoreError(
                    f"{self._where}: another process goes by the name {self._known_as} now; this one ends, "
                    "so that nothing is bought twice"
                )
        if time.monotonic() < self._look_again:
            return []
        self._look_again = time.monotonic() + min(1.0, self._lease / 6.0)
        now = self._clock() if self._where.url is None else float(asked.rows(_NOW)[0].now)
        me = me or self._row(asked)
        if not me.until:  # it was taken for dead, and is not
            connection.execute(_SIGN, {"me": self.me, "then": now + self._lease})
        if self._watched[0] != self._db.connections:  # while the server was away nobody could give a sign
            self._watched = self._db.connections, now
        limit = now if self.is_alone or now - self._watched[1] > self._lease else 0.0
        # whoever has a name may go on, and know of answers that are not told yet
        others = [row for row in asked.rows(_LIVING) if row.worker != self.me]
        return [
            row.worker
            for row in others
            if row.until < limit or (row.known_as == row.name and _ended(str(row.name)))
        ]

    def others(self, connection: Connection) -> bool:
        """Whether anybody else is at work."""
        now = self._db.now(connection)
        rows = connection.execute(_LIVING).all()
        return any(row.worker != self.me and row.until >= now and not _ended(str(row.name)) for row in rows)

    def undo(self, connection: Connection) -> None:
        """It does not take part; what one of its name has under way others take over in time."""
        if self._before is None:
            self.sign_off(connection, self.me)
        else:
            process, until = self._before.name, self._before.until
            connection.execute(_GOES_ON, {"me": self.me, "process": process, "then": until})

    def _row(self, asked: Asked) -> Any:
        (row,) = asked.rows(_ME, {"me": self.me})
        return row

    def told_in(self, asked: Asked) -> int:
        """The number of what this worker told last."""
        told = self._row(asked).told
        if not isinstance(told, int):
            raise StoreError(f"{self._where} is damaged: a worker told {told!r}; begin a new one")
        return told

    def tell(self, connection: Connection, number: int) -> None:
        """Everything up to this number is told."""
        change(connection, _TELL, {"me": self.me, "so_far": number})

    def sign_off(self, connection: Connection, worker: int) -> None:
        """This worker, or one that is gone, has nothing under way any more."""
        connection.execute(_SIGN, {"me": worker, "then": 0.0})

    def close(self) -> None:
        """Give no more signs of life."""
        self._over.set()
        if self._heart is not None:
            self._heart.join()

    def _beat(self) -> None:
        db: Database | None = None
        while not self._over.wait(self._lease / 3.0):
            try:
                if db is None:
                    db = Database.open(self._where, LAYOUT, self._clock)
                    db.patience = 0.0
                with db.write(waits=False) as connection:
                    connection.execute(_SIGN, {"me": self.me, "then": db.now(connection) + self._lease})
            except Exception as ex:  # whatever it is: the next one may work
                log.info("no sign of life could be given: %s", ex)
                if db is not None:
                    db.close()
                    db = None
        if db is not None:
            db.close()


MEMORY = Path(":memory:")
"""Where a book is that goes with its process."""


def _name() -> str:
    """By which others on this machine can tell whether the process is still there."""
    return f"{_machine()}/{os.getpid()}/{_birth(os.getpid())}/{secrets.token_hex(4)}"


def _ended(name: str) -> bool:
    """Whether a worker's process was one of this machine, and is no more."""
    machine, _, rest = name.partition("/")
    process, _, rest = rest.partition("/")
    birth = rest.partition("/")[0]
    return machine == _machine() != "" and process.isdigit() and birth != _birth(int(process))


def _machine() -> str:
    """This start of this machine, and who can see each other's processes; empty where that is not told."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    return ""


def _birth(process: int) -> str:
    """When a process began; empty if there is none."""
    with suppress(OSError, IndexError):
        said = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return said.rpartition(")")[2].split()[19]
    return ""
