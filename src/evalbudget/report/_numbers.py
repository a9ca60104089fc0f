"""How numbers and names are written in tables."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from rich.text import Text

from evalbudget.repeats import _wording
from evalbudget.statistics._bounds import Bounds, FloatArray
from evalbudget.tables import NotedTable

MISSING = "-"

NOTHING = 1e-12
"""A standard error up to this is rounding: equal differences prove no interval."""

CLAIM = "Random: items (sampled, independent) and repeats; fixed-n, asymptotic."
"""What every interval over sampled items takes for random, and when it may be read."""


def decimals(errors: Iterable[float]) -> int:
    """Decimals that show two digits of the median of the positive standard errors."""
    return _wording.decimals(error for error in errors if error > NOTHING)


def claimed(bounds: Bounds, errors: FloatArray) -> Bounds:
    """The bounds; nan where the standard error is 0 and proves nothing."""
    some = errors > NOTHING
    return Bounds(np.where(some, bounds.low, np.nan), np.where(some, bounds.high, np.nan))


def number(value: float, places: int, *, sign: bool = False) -> str:
    """A number, or a dash where there is none."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:{'+' if sign else ''},.{places}f}"


def span(low: float, high: float, places: int, *, sign: bool = False) -> str:
    """An interval, or a dash where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return MISSING
    return f"{number(low, places, sign=sign)} to {number(high, places, sign=sign)}"


def names(what: Iterable[str], most: int = 5) -> str:
    """A list for a sentence, cut after some."""
    listed = list(what)
    rest = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {rest} more" if rest > 0 else "")


def new_table(title: str, note: str, columns: Iterable[str]) -> NotedTable:
    """A table whose columns of words fold; the others hold numbers."""
    table = NotedTable(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.note = note
    for column in columns:
        if column in NAMED:
            table.add_column(column, overflow="fold", min_width=12)
        else:
            table.add_column(column, justify="right", no_wrap=True)
    return table


NAMED = ("metric", "model", "against", "judge", "item", "category", "source", "verdict")
"""Columns of words."""


def name_cell(name: str) -> Text:
    """A name as it is, whatever brackets are in it."""
    return Text(name)
