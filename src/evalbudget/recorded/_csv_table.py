"""Reads a long table of scores, one reading per row."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._scores import RecordedScores

NEEDED = ("item", "score")
OPTIONAL = ("model", "rater", "repeat", "cost")

_NUMBERS = ("score", "cost")

_LAYOUT = "a header with item, score and optionally model, rater, repeat, cost, then one reading per row"


def read_csv(path: Path) -> RecordedScores:
    """Read a ``.csv`` with the columns item and score, and optionally model, rater, repeat and cost.

    Other columns are ignored. An empty score or ``nan`` is a reading that failed. Without ``repeat`` the rows
    of a cell are its repeats. The cost is that of the reading, in dollars; empty where it is not known.

    Raises:
        InvalidInputError: not text, columns missing, or a row that cannot be used, with its line number.
    """
    table: dict[str, list[str]] = {name: [] for name in NEEDED + OPTIONAL}
    scores: list[float] = []
    costs: list[float] = []
    first_line: dict[tuple[str, ...], int] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            columns = _columns(path, next(rows, []))
            for row in rows:
                if not row:
                    continue
                line = rows.line_num
                if len(row) != columns["width"]:
                    raise InvalidInputError(
                        f"{path}, line {line}: {len(row)} fields, the header has {columns['width']}; "
                        "quote fields that contain commas"
                    )
                given = {name: row[at].strip() for name, at in columns.items() if name != "width"}
                for name in given:
                    if name not in _NUMBERS and not given[name]:
                        raise InvalidInputError(
                            f"{path}, line {line}: the {name} is empty; give every row one"
                        )
                scores.append(_number(path, line, "score", given["score"]))
                if "cost" in given:
                    costs.append(_cost(path, line, given["cost"]))
                for name, value in given.items():
                    table[name].append(value)
                if "repeat" in given:
                    key = tuple(given[name] for name in sorted(given) if name not in _NUMBERS)
                    if key in first_line:
                        raise InvalidInputError(
                            f"{path}, line {line}: the same item, model, rater and repeat as line "
                            f"{first_line[key]}; number repeats apart, or leave the column out"
                        )
                    first_line[key] = line
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {ex.strerror or ex}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{path} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex
    except csv.Error as ex:
        raise InvalidInputError(f"{path}, line {rows.line_num}: {ex}; a table of scores is {_LAYOUT}") from ex
    if not scores:
        raise InvalidInputError(f"{path} has a header but no rows; a table of scores is {_LAYOUT}")
    try:
        return RecordedScores.from_readings(
            table["item"],
            scores,
            models=table["model"] or None,
            raters=table["rater"] or None,
            repeats=table["repeat"] or None,
            costs=costs or None,
        )
    except InvalidInputError as ex:
        raise InvalidInputError(f"{path}: {ex}") from None


def _columns(path: Path, header: list[str]) -> dict[str, int]:
    """Position of every column in use, and the number of fields a row must have (``width``)."""
    names = [name.strip().lower() for name in header]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise InvalidInputError(
            f"{path} has no column {' and no column '.join(missing)} "
            f"(found: {', '.join(header) or 'an empty file'}); a table of scores is {_LAYOUT}, "
            "separated by commas"
        )
    for name in NEEDED + OPTIONAL:
        if names.count(name) > 1:
            raise InvalidInputError(f"{path} has {names.count(name)} columns named {name}; keep one")
    return {name: names.index(name) for name in NEEDED + OPTIONAL if name in names} | {"width": len(names)}


def _cost(path: Path, line: int, text: str) -> float:
    value = _number(path, line, "cost", text)
    if value < 0.0:
        raise InvalidInputError(f"{path}, line {line}: cost {text!r} is below 0; give dollars, 0 or more")
    return value


def _number(path: Path, line: int, name: str, text: str) -> float:
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        raise InvalidInputError(
            f"{path}, line {line}: {name} {text!r} is not a number; leave it empty if it is missing"
        ) from None
    if math.isinf(value):
        raise InvalidInputError(
            f"{path}, line {line}: {name} {text!r} is infinite; leave it empty if it is missing"
        )
    return value
