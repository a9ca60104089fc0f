"""A file with tables that one process at a time has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from evalbudget._version import __version__
from evalbudget.errors import HeldError
from evalbudget.run._lock import held
from evalbudget.store import Address, Database, Layout


@contextmanager
def file_of_own(path: Path, layout: Layout) -> Iterator[Database]:
    """What is in a file, begun if nothing is there; within the block no other process has it.

    Raises:
        HeldError: another process has it.
        JournalError: it cannot be read or written, or is something else.
    """
    with ExitStack() as opened:
        # by whatever link it is named; not the database's own lock, which is gone once a copy of it is made
        if (lock := held(path.resolve())) is not None:
            opened.callback(lock.release)
        yield opened.enter_context(closing(_database_at(path, layout)))


def is_held(path: Path) -> bool:
    """Whether another process has it now."""
    try:
        lock = held(path.resolve())
    except HeldError:
        return True
    if lock is not None:
        lock.release()
    return False


def _database_at(path: Path, layout: Layout) -> Database:
    if os.path.lexists(path):
        return Database.open(Address(path=path), layout)
    return Database.create(Address(path=path), layout, {"version": __version__})
