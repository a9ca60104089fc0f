"""Rows of results as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def rows_to_json(rows: Sequence[DataclassInstance], indent: int | None) -> str:
    """Dataclasses as a list of objects; numbers that are not finite are null."""
    found = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(row).items()}
        for row in rows
    ]
    return json.dumps(found, indent=indent, allow_nan=False, ensure_ascii=False)
