"""What a bill in a file says, for tests of whoever writes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from evalbudget.run import spent_on


def billed_calls(path: Path | str) -> list[dict[str, Any]]:
    """Every call, in order; of a file that is closed."""
    with changed(path) as bill:
        bill.row_factory = sqlite3.Row
        return [dict(row) for row in bill.execute("SELECT * FROM paid_calls ORDER BY call")]


def paid_in(path: Path | str, *more: Any) -> float:
    """What all of them cost, those under way at the most."""
    return sum(spent_on(Path(path), *more)[1].values())


def cut_to(path: Path, calls: int) -> None:
    """As it was after so many calls."""
    with changed(path) as bill:
        bill.execute("DELETE FROM paid_calls WHERE call >= ?", (calls,))


@contextmanager
def changed(path: Path | str) -> Iterator[sqlite3.Connection]:
    """A file that is closed, to be changed by hand."""
    with closing(sqlite3.connect(path)) as file:
        yield file
        file.commit()
