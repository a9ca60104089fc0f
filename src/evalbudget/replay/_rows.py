"""Results of replays: rows, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Replayed:
    """What every result can do.

    Attributes:
        rows: a line of the table each.
    """

    __slots__ = ()
    rows: tuple[Any, ...]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The rows as a list of objects with their attributes; undefined numbers are null."""
        return rows_to_json(self.rows, indent)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.rows)} rows; see .table(), .rows, .to_json()>"


def rows_to_json(rows: Sequence[DataclassInstance], indent: int | None) -> str:
    """Dataclasses as a list of objects; numbers that are not finite are null."""
    found = defined([asdict(row) for row in rows])
    return json.dumps(found, indent=indent, allow_nan=False, ensure_ascii=False)


def defined(value: Any) -> Any:
    """JSON values in which numbers that are not finite are null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: defined(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [defined(entry) for entry in value]
    return value
