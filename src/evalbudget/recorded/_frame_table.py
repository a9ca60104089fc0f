"""Reads a long table of scores from a frame of any library that narwhals knows, and from Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from evalbudget.errors import InvalidInputError, reason
from evalbudget.recorded._column_values import columns_in
from evalbudget.recorded._long_table import long_table
from evalbudget.recorded._parquet_table import parquet_table
from evalbudget.recorded._scores import RecordedScores

EXTRA = "pip install 'evalbudget[frames]'"

LAYOUT = "a column item and a column score, optionally model, rater, repeat, cost, and one reading per row"
_REMEDY = "leave it missing (null, None or NaN) where there is none"
_EXACT = 2**53


def narwhals() -> ModuleType:
    """The library that knows all frames.

    Raises:
        InvalidInputError: it is not installed.
    """
    try:
        return import_module("narwhals.stable.v2")
    except ImportError as ex:
        raise InvalidInputError(f"frames need narwhals 2 or newer, which is not installed: {EXTRA}") from ex


def read_frame(
    frame: object, *, category: str | None = None, task: str | None = None, source: str = "the frame"
) -> RecordedScores:
    """From a frame with the columns of a table of readings; other columns are named in its notes.

    Args:
        frame: of pandas, polars, pyarrow, duckdb or another library that narwhals knows.
        category: the column that says what category an item belongs to; None for ``category``, if there is
            one.
        task: of several in the column ``task``, the one to read.
        source: names the frame, for messages.

    Raises:
        UnknownNameError: no such task.
        InvalidInputError: narwhals is not installed, it is no frame, several tasks, columns are missing, or a
            row cannot be used, with its number from 0.
    """
    nw = narwhals()
    try:
        table = nw.from_native(frame)
        header = table.collect_schema().names()
    except TypeError as ex:
        raise InvalidInputError(
            f"{source} is a {type(frame).__name__}, which is no frame; give one of pandas, polars or pyarrow"
        ) from ex
    except nw.exceptions.DuplicateError as ex:
        raise InvalidInputError(f"{source} has two columns of one name; keep one ({ex})") from ex
    used = columns_in(source, header, category, LAYOUT)
    if isinstance(table, nw.LazyFrame):
        table = table.select({header[at] for at in used.at.values()}).collect()
    if not len(table):
        raise InvalidInputError(f"{source} has no rows; give one per reading")
    found = {name: _values(nw, table[header[at]]) for name, at in used.at.items()}
    return long_table(found, used, lambda row: f"row {row} (from 0)", _REMEDY, source).recorded_in(
        source, task
    )


def read_parquet(path: Path, *, category: str | None = None, task: str | None = None) -> RecordedScores:
    """Read a ``.parquet`` file with the columns of a table of readings, by pyarrow.

    Raises:
        InvalidInputError: it is not installed, the file is damaged, or as :func:`read_frame` does.
    """
    if find_spec("pyarrow") is None:
        raise InvalidInputError(f"{path} is read by pyarrow, which is not installed: {EXTRA}")
    narwhals()

    def read(header: Sequence[str]) -> set[int]:
        return set(columns_in(f"{path}", header, category, LAYOUT).at.values())

    try:
        frame = parquet_table(path, read)
    except InvalidInputError:
        raise
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {reason(ex)}") from ex
    except Exception as ex:  # whatever the readers of headers and of compressed data raise
        told = (str(ex) or type(ex).__name__).splitlines()[0]
        raise InvalidInputError(
            f"{path} is damaged, or no Parquet file ({told}); write or download it again"
        ) from ex
    return read_frame(frame, category=category, task=task, source=f"{path}")


def _values(nw: ModuleType, column: Any) -> Any:
    """Numbers as an array, NaN where missing; whatever else as a list."""
    if column.dtype.is_integer() and any(abs(end or 0) > _EXACT for end in (column.min(), column.max())):
        return column.to_list()  # ids that no float tells apart
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return column.cast(nw.Float64).to_numpy()
    return column.to_list()
