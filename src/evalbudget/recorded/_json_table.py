"""Reads a long table of scores from JSON: lines, or one array, of one object per reading."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from evalbudget.errors import InvalidInputError, reason
from evalbudget.recorded._column_values import columns_in
from evalbudget.recorded._long_table import long_table
from evalbudget.recorded._scores import RecordedScores
from evalbudget.untrusted import parsed_json

_EXAMPLE = '{"item": "q1", "score": 1}'
_LAYOUT = f"one object per reading, such as {_EXAMPLE}, optionally with model, rater, repeat, cost"
_REMEDY = "give null if it is missing"


def read_jsonl(path: Path, *, category: str | None = None, task: str | None = None) -> RecordedScores:
    """Read a ``.jsonl`` file whose lines are objects with the columns of a table of readings.

    A field that a line leaves out is missing there, as if it were null.

    Args:
        path: of the file.
        category: the field that says what category an item belongs to; None for ``category``, if there is
            one.
        task: of several in the field ``task``, the one to read.

    Raises:
        UnknownNameError: no such task.
        InvalidInputError: several tasks, not JSON lines, fields missing, or a line that cannot be used, with
            its number.
    """
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    with _opened(path) as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            rows.append(_object(path, line, text))
            lines.append(line)
    return _table(path, rows, lambda row: f"line {lines[row]}", category, task)


def read_json(path: Path, *, category: str | None = None, task: str | None = None) -> RecordedScores:
    """Read a ``.json`` file that holds one array of such objects.

    Raises:
        InvalidInputError: not JSON, no array, fields missing, or an object that cannot be used, with its
            number.
    """
    try:
        with _opened(path) as file:
            rows = parsed_json(file.read())
    except ValueError as ex:
        raise InvalidInputError(f"{path} is not JSON ({ex}); write or download it again") from ex
    if not isinstance(rows, list):
        found = f"an object with {', '.join(list(rows)[:6])}" if isinstance(rows, dict) else "no array"
        raise InvalidInputError(
            f"{path} is {found}, and neither a log that an installed plugin knows nor scores: these are an "
            f"array of objects such as {_EXAMPLE}, optionally with model, rater, repeat, cost"
        )
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidInputError(
                f"{path}, entry {number} (from 0): a {type(row).__name__} and not an object; a table of "
                f"scores is an array of objects such as {_EXAMPLE}"
            )
    return _table(path, rows, lambda row: f"entry {row} (from 0)", category, task)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield file
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {reason(ex)}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{path} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex


def _table(
    path: Path,
    rows: Sequence[dict[str, Any]],
    where: Callable[[int], str],
    category: str | None,
    task: str | None,
) -> RecordedScores:
    header = list(dict.fromkeys(name for row in rows for name in row))
    used = columns_in(f"{path}", header, category, _LAYOUT)
    table = long_table(
        {name: [row.get(header[at]) for row in rows] for name, at in used.at.items()},
        used,
        where,
        _REMEDY,
        f"{path}",
    )
    return table.recorded_in(f"{path}", task)


def _object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        found = parsed_json(text)
        if "\\ud" in text.lower():  # half a character, which no file or frame can hold
            json.dumps(found, ensure_ascii=False).encode()
    except ValueError as ex:
        raise InvalidInputError(
            f"{path}, line {line}: not JSON ({ex}); a table of scores is {_LAYOUT}"
        ) from ex
    if not isinstance(found, dict):
        raise InvalidInputError(
            f"{path}, line {line}: a {type(found).__name__} and not an object; a table of scores is {_LAYOUT}"
        )
    return found
