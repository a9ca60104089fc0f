"""Reads a long table of scores, one reading per row."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._scores import RecordedScores
from evalbudget.recorded._task_name import TaskName

NEEDED = ("item", "score")
OPTIONAL = ("model", "rater", "repeat", "cost", "task", "version")

CATEGORY = "category"
_NUMBERS = ("score", "cost")

_LAYOUT = "a header with item, score and optionally model, rater, repeat, cost, then one reading per row"


def read_csv(path: Path, *, category: str | None = None) -> RecordedScores:
    """Read a ``.csv`` with the columns item and score, and optionally model, rater, repeat and cost.

    Other columns are ignored. An empty score or ``nan`` is a reading that failed. Without ``repeat`` the rows
    of a cell are its repeats. The cost is that of the reading, in dollars; empty where it is not known. Where
    there are columns task and version that are the same in every row, the scores are of that task.

    Args:
        path: of the file.
        category: the column that says what category an item belongs to; None for ``category``, if there is
            one.

    Raises:
        InvalidInputError: not text, columns missing, or a row that cannot be used, with its line number.
    """
    table: dict[str, list[str]] = {name: [] for name in (*NEEDED, *OPTIONAL, CATEGORY)}
    scores: list[float] = []
    costs: list[float] = []
    first_line: dict[tuple[str, ...], int] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            columns = _columns(path, next(rows, []), category)
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
                    if name not in (*_NUMBERS, "task", "version") and not given[name]:
                        raise InvalidInputError(
                            f"{path}, line {line}: the {name} is empty; give every row one"
                        )
                scores.append(_number(path, line, "score", given["score"]))
                if "cost" in given:
                    costs.append(_cost(path, line, given["cost"]))
                for name, value in given.items():
                    table[name].append(value)
                if "repeat" in given:
                    key = tuple(given[name] for name in ("item", "model", "rater", "repeat") if name in given)
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
        recorded = RecordedScores.from_readings(
            table["item"],
            scores,
            models=table["model"] or None,
            raters=table["rater"] or None,
            repeats=table["repeat"] or None,
            costs=costs or None,
        )
        return replace(recorded, task=_task(table), categories=_categories(path, table, recorded.items))
    except InvalidInputError as ex:
        raise InvalidInputError(f"{path}: {ex}") from None


def _task(table: dict[str, list[str]]) -> TaskName | None:
    """Of the whole table; None where it says nothing of one task."""
    names, versions = set(table["task"]), set(table["version"] or [""])
    if len(names) != 1 or len(versions) != 1 or "" in names:
        return None
    return TaskName(names.pop(), versions.pop() or None)


def _categories(path: Path, table: dict[str, list[str]], items: tuple[str, ...]) -> tuple[str, ...] | None:
    if not table[CATEGORY]:
        return None
    label: dict[str, str] = {}
    for item, category in zip(table["item"], table[CATEGORY], strict=True):
        if label.setdefault(item, category) != category:
            raise InvalidInputError(
                f"{path}: item {item!r} is in {label[item]!r} and in {category!r}; give each item one"
            )
    return tuple(label[item] for item in items)


def _columns(path: Path, header: list[str], category: str | None) -> dict[str, int]:
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
    found = {name: names.index(name) for name in NEEDED + OPTIONAL if name in names}
    if category is not None and category.lower() not in names:
        raise InvalidInputError(
            f"{path} has no column {category} (found: {', '.join(header)}), which was to say what "
            "items belong "
            "together"
        )
    if (category or CATEGORY).lower() in names:
        found[CATEGORY] = names.index((category or CATEGORY).lower())
    return found | {"width": len(names)}


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
