"""Reads a long table of scores from JSON lines, one reading per line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._long_table import columns_in, long_table
from evalbudget.recorded._scores import RecordedScores

_LAYOUT = 'lines such as {"item": "q1", "score": 1}, optionally with model, rater, repeat, cost; one each'
_REMEDY = "give null if it is missing"


def read_jsonl(path: Path, *, category: str | None = None) -> RecordedScores:
    """Read a ``.jsonl`` file whose lines are objects with the columns of a table of readings.

    Other fields are ignored; a field that a line leaves out is missing there, as if it were null.

    Args:
        path: of the file.
        category: the field that says what category an item belongs to; None for ``category``, if there is
            one.

    Raises:
        InvalidInputError: not JSON lines, fields missing, or a line that cannot be used, with its number.
    """
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                rows.append(_object(path, line, text))
                lines.append(line)
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {ex.strerror or ex}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{path} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex
    header = list(dict.fromkeys(name for row in rows for name in row))
    columns = columns_in(f"{path}", header, category, _LAYOUT)
    table = long_table(
        {name: [row.get(header[at]) for row in rows] for name, at in columns.items()},
        lambda row: f"line {lines[row]}",
        _REMEDY,
        f"{path}",
    )
    return table.recorded_in(f"{path}")


def _object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        if "\\ud" in text.lower():  # half a character, which no file or frame can hold
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as ex:
        raise InvalidInputError(
            f"{path}, line {line}: not JSON ({ex}); a table of scores is {_LAYOUT}"
        ) from ex
    if not isinstance(found, dict):
        raise InvalidInputError(
            f"{path}, line {line}: a {type(found).__name__} and not an object; a table of scores is {_LAYOUT}"
        )
    return found
