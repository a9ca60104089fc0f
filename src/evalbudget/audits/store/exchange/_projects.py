"""Which project of a Label Studio server an audit is labelled in: beside its file, or in its database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from filelock import FileLock
from sqlalchemy import func, insert, select

from evalbudget.audits.store._schema import LAYOUT, meta
from evalbudget.audits.store._store import AuditStore
from evalbudget.secrets import mode_in, mode_of_lock
from evalbudget.store import Database
from evalbudget.untrusted import parsed_json

_KEY = "label studio "


class Projects(Protocol):
    """The project of last time."""

    def of(self, url: str) -> int | None:
        """On this server; None if there was none."""

    def note(self, url: str, project: int) -> None:
        """Remember it."""


@contextmanager
def remembered(store: AuditStore) -> Iterator[Projects]:
    """The project of a store; nobody else syncs the store meanwhile."""
    path = store.address.path
    if path is None:
        with Database.alone(store.address, LAYOUT, "sync", wait=True):
            yield _InStore(store._db)
        return
    beside = path.with_name(f"{path.name}.label-studio")
    with FileLock(f"{beside}.lock", **mode_of_lock(path.parent)):
        yield _Beside(beside)


class _Beside:
    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, url: str) -> int | None:
        try:
            return _read(self._path.read_text(encoding="utf-8", errors="replace"), url)
        except OSError:
            return None

    def note(self, url: str, project: int) -> None:
        self._path.touch(mode_in(self._path.parent))
        self._path.write_text(_entry(url, project), encoding="utf-8")


class _InStore:
    """In ``meta``, which only grows: the last entry counts."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _entries(self) -> list[str]:
        query = select(meta.c.value).where(func.substr(meta.c.key, 1, len(_KEY)) == _KEY)
        return [row.value for row in self._db.rows(query.order_by(func.length(meta.c.key), meta.c.key))]

    def of(self, url: str) -> int | None:
        entries = self._entries()
        return _read(entries[-1], url) if entries else None

    def note(self, url: str, project: int) -> None:
        if self.of(url) != project:
            entry = {"key": f"{_KEY}{len(self._entries())}", "value": _entry(url, project)}
            with self._db.write() as connection:
                connection.execute(insert(meta), entry)


def _entry(url: str, project: int) -> str:
    return json.dumps({"url": url, "project": project})


def _read(text: str, url: str) -> int | None:
    try:
        known = parsed_json(text)
        return int(known["project"]) if known["url"] == url else None
    except (ValueError, LookupError, TypeError, OverflowError):
        return None
