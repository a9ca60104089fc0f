"""Our entry in a score's metadata: who gave the score, in which epoch, and what it weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

WEIGHT = "weight"
"""Of a reading."""


def weight_of(entry: Mapping[str, Any]) -> float:
    """Weight of the reading; nan if it was held out or has none."""
    weight = entry.get(WEIGHT)
    return math.nan if weight is None else float(weight)


def was_asked(entry: Mapping[str, Any] | None) -> bool:
    """Whether the entry says that a judge gave the score."""
    return entry is not None and bool(readings_of(entry)) and bool(entry.get("asked", True))


def readings_of(entry: Mapping[str, Any], value: float = math.nan) -> dict[str, float]:
    """Who read what: the score's own value by one judge, or one reading each of all judges (nan: failed)."""
    if "judge" in entry:
        return {str(entry["judge"]): value}
    readings = entry.get("readings") or {}
    return {str(name): math.nan if read is None else float(read) for name, read in readings.items()}
