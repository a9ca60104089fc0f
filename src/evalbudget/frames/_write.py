"""Columns as a frame of the library that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.frames._columns import Column, Kind
from evalbudget.recorded._frame_table import EXTRA, narwhals

LIBRARIES = ("pandas", "polars", "pyarrow")
"""The first that is installed is the default."""

_TYPES = {Kind.TEXT: "String", Kind.NUMBER: "Float64", Kind.WHOLE: "Int64", Kind.FLAG: "Boolean"}

Values = NDArray[Any] | Sequence[Any]


def library(wanted: str | None) -> str:
    """The library to make frames with.

    Args:
        wanted: its name; None for the first that is installed.

    Raises:
        UnknownNameError: no such library.
        InvalidInputError: it is not installed.
    """
    if wanted is not None and wanted not in LIBRARIES:
        raise UnknownNameError("frame", wanted, LIBRARIES)
    found = next((name for name in LIBRARIES if wanted in (None, name) and find_spec(name)), None)
    if found is None:
        missing = " or ".join(LIBRARIES) if wanted is None else wanted
        remedy = "pip install 'evalbudget[polars]'" if wanted == "polars" else EXTRA
        raise InvalidInputError(f"frames need {missing}, which is not installed: {remedy}")
    return found


def write(columns: Mapping[str, Values], layout: Sequence[Column], frame: str | None) -> Any:
    """The frame; its types are those of the layout, whatever is in the columns, and NaN is missing.

    Args:
        columns: by name, all of the layout.
        layout: names, order and types.
        frame: library; None for the first that is installed.

    Raises:
        UnknownNameError: no such library.
        InvalidInputError: the library, or narwhals, is not installed.
    """
    nw, backend = narwhals(), library(frame)
    types = {column.name: getattr(nw, _TYPES[column.kind]) for column in layout}
    data = {column.name: _values(columns[column.name], column.kind) for column in layout}
    if backend == "pandas" and int(version("pandas").partition(".")[0]) < 3:
        # words are objects there; a cast would make the word None of what is missing
        table = nw.from_dict(data, backend=backend)
        known = [nw.col(c.name).cast(types[c.name]) for c in layout if c.kind is not Kind.TEXT]
        return table.with_columns(*known).to_native()
    return nw.from_dict(data, schema=types, backend=backend).to_native()


def _values(column: Values, kind: Kind) -> list[Any]:
    """As Python has them, None where missing."""
    if kind is Kind.TEXT:
        return list(column)
    if kind is Kind.FLAG:
        return [bool(value) for value in column]
    if kind is Kind.WHOLE:
        whole: list[Any] = np.asarray(column).astype(np.int64).tolist()
        return whole
    numbers = np.asarray(column).astype(np.float64)
    told: list[Any] = numbers.tolist()
    for row in np.flatnonzero(np.isnan(numbers)).tolist():
        told[row] = None
    return told
