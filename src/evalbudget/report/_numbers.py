"""How the tables of reports look, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.text import Text

from evalbudget._fields import NOTHING
from evalbudget.statistics._bounds import Bounds, FloatArray
from evalbudget.tables import NOTED, NotedTable, fill

CLAIM = "Random: items (sampled, independent) and repeats; fixed-n, asymptotic."
"""What every interval over sampled items takes for random, and when it may be read."""


def claimed(bounds: Bounds, errors: FloatArray) -> Bounds:
    """The bounds; nan where the standard error is 0 and proves nothing."""
    some = errors > NOTHING
    return Bounds(np.where(some, bounds.low, np.nan), np.where(some, bounds.high, np.nan))


def table_of(rows: Sequence[Any], title: str, note: str, **more: Any) -> NotedTable:
    """A table of rows whose fields say how they are shown; more as of :func:`~evalbudget.tables.fill`."""
    table = new_table(title, note)
    fill(table, rows, **more)
    return table


def new_table(title: str, note: str, columns: Iterable[str] = ()) -> NotedTable:
    """A table whose columns of words fold; the others hold numbers."""
    table = NotedTable(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.note = note
    for column in columns:
        table.add_column(column, **(NOTED.words if column in NAMED else NOTED.numbers))
    return table


def details(title: str, note: str, told: Mapping[str, str]) -> NotedTable:
    """What is known of one model or judge, a line each."""
    table = new_table(title, note)
    table.add_column("what", justify="left")
    table.add_column("value", justify="left", overflow="fold")
    for line in told.items():
        table.add_row(*line)
    return table


NAMED = ("metric", "model", "against", "judge", "item", "category", "source", "verdict")
"""Columns of words."""
