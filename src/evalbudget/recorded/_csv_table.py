"""Reads a long table of scores from ``.csv`` or ``.tsv``, one reading per row."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from evalbudget.design import LARGEST
from evalbudget.errors import InvalidInputError, reason
from evalbudget.recorded._column_values import columns_in, unless_of_others
from evalbudget.recorded._columns import ABSENT, FLAGS, OFTEN_OTHERS, TEXTS, TRUTHS
from evalbudget.recorded._long_table import LongTable
from evalbudget.recorded._scores import RecordedScores
from evalbudget.spreadsheets import names_from_cells

_LAYOUT = "a header with item, score and optionally model, rater, repeat, cost, then one reading per row"
_CURRENCIES = tuple("$€£¥")
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}


def read_csv(path: Path, *, category: str | None = None, task: str | None = None) -> RecordedScores:
    """Read a ``.csv`` with the columns item and score, and optionally those of a table of readings.

    A ``.tsv`` is the same with tabs, and a header without a comma may have tabs or semicolons, too. An empty
    score, ``nan`` or ``NA`` is a reading that failed; ``True`` and ``False`` are 1 and 0. Without ``repeat``
    the rows of a cell are its repeats. The cost is that of the reading, in dollars; empty where it is not
    known. Where there are columns task and version that are the same in every row, the scores are of that
    task.

    Args:
        path: of the file.
        category: the column that says what category an item belongs to; None for ``category``, if there is
            one.
        task: of several in the column ``task``, the one to read.

    Raises:
        UnknownNameError: no such task.
        InvalidInputError: several tasks, not text, columns missing, or a row that cannot be used, with its
            line number.
    """
    texts: dict[str, list[str]] = {}
    numbers: dict[str, list[float]] = {}
    lines: list[int] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = _separator(path, file.readline())
            file.seek(0)
            rows = csv.reader(file, strict=True, delimiter=separator)
            header = names_from_cells(next(rows, []))
            layout = f"{_LAYOUT}, separated by {_SEPARATORS[separator]}"
            used = columns_in(f"{path}", header or ["an empty file"], category, layout)
            others: dict[str, list[str]] = {name: [] for name in OFTEN_OTHERS if name in used.at}
            words = [(texts.setdefault(name, []), at) for name, at in used.at.items() if name in TEXTS]
            words += [(column, used.at[name]) for name, column in others.items()]
            values = [
                (name, numbers.setdefault(name, []), at)
                for name, at in used.at.items()
                if name not in TEXTS and name not in others
            ]
            for row in rows:
                if not row:
                    continue
                line = rows.line_num
                if len(row) != len(header):
                    raise InvalidInputError(
                        f"{path}, line {line}: {len(row)} fields, the header has {len(header)}; "
                        f"quote fields that contain {_SEPARATORS[separator]}"
                    )
                lines.append(line)
                for column, at in words:
                    column.append(row[at].strip())
                for name, numeric, at in values:
                    numeric.append(_number(path, line, name, row[at].strip()))
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {reason(ex)}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{path} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex
    except csv.Error as ex:
        raise InvalidInputError(f"{path}, line {rows.line_num}: {ex}; a table of scores is {_LAYOUT}") from ex
    if not lines:
        raise InvalidInputError(f"{path} has a header but no rows; a table of scores is {_LAYOUT}")
    notes: list[str] = []
    for name, column in others.items():
        with unless_of_others(name, notes):
            numbers[name] = [
                _number(path, line, name, text) for line, text in zip(lines, column, strict=True)
            ]
    table = LongTable(
        {name: names_from_cells(column) for name, column in texts.items()},
        {name: np.array(values) for name, values in numbers.items()},
        lambda row: f"line {lines[row]}",
        used.metrics,
        used.not_read,
        notes,
        used.category,
    )
    return table.recorded_in(f"{path}", task)


def _separator(path: Path, header: str) -> str:
    """Commas unless the header has none."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return next((each for each in _SEPARATORS if each in header), ",")


def _number(path: Path, line: int, name: str, text: str) -> float:
    if not text or text.lower() in ABSENT:
        return math.nan
    try:
        value = FLAGS[text.lower()] if name in TRUTHS and text.lower() in FLAGS else float(text)
    except ValueError:
        remedy = "leave it empty if it is missing"
        if text.endswith("%"):
            remedy = "write numbers without a sign, in one unit throughout: all as 0.5, or all as 50"
        elif text[:1] in _CURRENCIES or text[-1:] in _CURRENCIES:
            remedy = "write dollars without a sign, as 0.002"
        elif name in TRUTHS and text[:1].isalpha():
            remedy = "write numbers for words, as 1 for right and 0 for wrong, and nothing if it is missing"
        elif "," in text:
            remedy = "write a point before decimals (0.5), and nothing between thousands"
        raise InvalidInputError(
            f"{path}, line {line}: {name} {text[:40]!r} is not a number; {remedy}"
        ) from None
    if abs(value) > LARGEST:
        raise InvalidInputError(
            f"{path}, line {line}: {name} {text[:40]!r} is infinite or beyond {LARGEST:g}; "
            "leave it empty if it is missing"
        )
    return value
