"""Results as JSON, and replays as tables."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalbudget.tables import PrintableTable


class AsJson(ABC):
    """What says itself as JSON, in which undefined numbers are null."""

    __slots__ = ()

    @abstractmethod
    def _told(self) -> Mapping[str, Any]:
        """By name; numbers may be nan or infinite."""

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are None."""
        return {name: defined(value) for name, value in self._told().items()}

    def to_json(self, *, indent: int | None = 2) -> str:
        """:meth:`to_dict` as text."""
        return _text(self.to_dict(), indent)


class Replayed:
    """What every result can do.

    Attributes:
        rows: a line of the table each.
    """

    __slots__ = ()
    rows: tuple[Any, ...]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The rows as a list of objects with their attributes; undefined numbers are null."""
        return _text(defined([asdict(row) for row in self.rows]), indent)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.rows)} rows; see .table(), .rows, .to_json()>"


def _text(found: Any, indent: int | None) -> str:
    return json.dumps(found, indent=indent, allow_nan=False, ensure_ascii=False)


def asked(row: Any) -> str:
    """The budget of a row as it was written, whole numbers with their commas."""
    text: str = row.budget_asked
    return f"{int(text):,}" if text.isdecimal() else text


def table_of(rows: Sequence[Any], caption: str, **more: Any) -> PrintableTable:
    """Rows as a table that fits 80 columns, budget by budget; more as of :func:`~evalbudget.tables.fill`."""
    from evalbudget.tables import REPLAYED, PrintableTable, fill

    table = PrintableTable(caption=caption, caption_justify="left", box=None, padding=(0, 1, 0, 0))
    fill(table, rows, REPLAYED, **more)
    return table


def defined(value: Any) -> Any:
    """JSON values in which numbers that are not finite are null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: defined(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [defined(entry) for entry in value]
    return value
