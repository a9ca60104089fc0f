"""The libraries of frames that are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

LIBRARIES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed"))
    for name in ("pandas", "polars", "pyarrow")
]


def rows(frame: Any) -> list[dict[str, Any]]:
    """As Python has them, None where missing, whatever library it is."""
    import narwhals.stable.v2 as nw

    found: list[dict[str, Any]] = nw.from_native(frame).rows(named=True)
    return [
        {name: None if value is None or value != value else value for name, value in row.items()}
        for row in found
    ]
