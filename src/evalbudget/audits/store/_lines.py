"""What a host keeps in a file beside an audit's file, kept in its database where it has one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import insert, select

from evalbudget.audits.store._schema import LAYOUT, lines
from evalbudget.store import Address, Database


class StoreLines:
    """Lines of JSON in a store in PostgreSQL, which exists; they are only ever added.

    One process at a time adds to lines of a name: see ``only_run``. A second one is refused by the database.

    Args:
        address: of the store.
        name: of the lines.

    Attributes:
        path: where they are, for people.

    Raises:
        AuditStoreError: there is no such store.
        StoreDownError: its database cannot be reached.
    """

    def __init__(self, address: Address, name: str) -> None:
        self.path = f"{name} of {address}"
        self._name = name
        self._db = Database.open(address, LAYOUT)
        self._count = 0

    def read(self) -> bytes:
        """All lines there are."""
        query = select(lines.c.line).where(lines.c.name == self._name).order_by(lines.c.number)
        found = [str(row.line).encode() + b"\n" for row in self._db.rows(query)]
        self._count = len(found)
        return b"".join(found)

    def append(self, entry: dict[str, Any], default: Callable[[Any], object] | None = None) -> None:
        """Add a line, once :meth:`read` has read the others; on disk when this returns.

        Args:
            entry: JSON object.
            default: turns other values into JSON ones.

        Raises:
            AuditStoreError: it cannot be written, or another process adds lines too.
            StoreDownError: the database cannot be reached.
        """
        line = json.dumps(entry, separators=(",", ":"), default=default)
        with self._db.write() as connection:
            connection.execute(insert(lines), {"name": self._name, "number": self._count, "line": line})
        self._count += 1

    def close(self) -> None:
        """Let them go."""
        self._db.close()
