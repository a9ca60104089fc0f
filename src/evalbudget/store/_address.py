"""Where a store is, as people write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from evalbudget.errors import InvalidInputError, StoreError
from evalbudget.secrets import is_secret

_REMEDY = "write the path of a file, or postgresql://user@host/database#name"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True)
class Address:
    """Of a store: a path, or a database and the name of a schema in it.

    Attributes:
        path: of the SQLite file; None for PostgreSQL.
        url: of the PostgreSQL database; None for a file.
        name: of the schema that holds the store.
    """

    path: Path | None = None
    url: URL | None = None
    name: str = ""

    @classmethod
    def parse(cls, where: str | Path | Address) -> Address:
        """Read a path, or ``postgresql://user@host/database#name``.

        Raises:
            InvalidInputError: nothing, a database in memory, which no other process reaches, another kind of
                URL, one with a password, which would be written wherever the address is, or a name that
                PostgreSQL would need quotes for.
        """
        if isinstance(where, Address):
            return where
        text = str(where)
        if not text.strip():
            raise InvalidInputError(f"the store has no address (''); {_REMEDY}")
        if text == ":memory:":
            raise InvalidInputError(f"a store in memory is shared with nobody; {_REMEDY}")
        if "://" not in text:
            return cls(path=Path(where))
        address, _, name = text.partition("#")
        try:
            url = make_url(address)
        except (ArgumentError, ValueError):
            raise InvalidInputError(f"the store's address is no URL; {_REMEDY}") from None
        if url.drivername not in _POSTGRESQL:
            raise InvalidInputError(f"stores of {url.drivername!r} are not known; {_REMEDY}")
        if url.password is not None or any(map(is_secret, url.query)) or "@" in (name or ""):
            raise InvalidInputError(
                "the store's address has a password in it, and would be written into logs; leave it out, and "
                "put it into the variable PGPASSWORD or the file ~/.pgpass"
            )
        if not url.database:
            raise InvalidInputError(f"the store {url!r} names no database; {_REMEDY}")
        name = name or "evalbudget"
        if not _NAME.fullmatch(name) or name.startswith("pg_"):
            raise InvalidInputError(
                f"a store cannot be named {name!r}: a name has lower-case letters, digits and _, begins with "
                "no digit and not with pg_"
            )
        return cls(url=url.set(drivername="postgresql+psycopg"), name=name)

    @property
    def resolved(self) -> Address:
        """The same from every folder."""
        return self if self.path is None else Address(path=self.path.resolve())

    @property
    def why_unusable(self) -> str:
        """Why no run can make a file there, with the remedy; empty if one can, or if it is no file."""
        path = self.path
        if path is None:
            return ""
        if path.is_dir():
            return f"{path} is a folder; name a file in it, for example {path / 'budget.db'}"
        if not path.parent.is_dir():
            return f"{path}: the folder {path.parent} does not exist; create it first"
        return ""

    def check_usable(self) -> None:
        """Refuse a place where no run can make a file.

        Raises:
            StoreError: it is one.
        """
        if why := self.why_unusable:
            raise StoreError(f"the store {why}")

    @property
    def title(self) -> str:
        """A short name for people: of the file, or of the schema."""
        return self.name if self.path is None else self.path.name

    def __str__(self) -> str:
        """As people write it."""
        if self.url is None:
            return str(self.path)
        return f"{self.url.set(drivername='postgresql')}#{self.name}"
