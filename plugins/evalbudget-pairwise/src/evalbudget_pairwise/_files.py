"""Tables of preferences: CSV, values separated by tabs, JSON arrays and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from evalbudget.errors import EvalbudgetError, InvalidInputError, did_you_mean, reason
from evalbudget.secrets import without_known
from evalbudget.shown import shown
from evalbudget.spreadsheets import name_as_cell, names_from_cells
from evalbudget.untrusted import is_plain_file, parsed_json
from evalbudget_pairwise._preferences import JUDGE, Preference, Preferences, check_preference

TIE = "tie"
_TIES = (TIE, "tie (bothbad)")
_ORDERED = ("first", "second")
_UNORDERED = (("a", "b"), ("model_a", "model_b"), ("winner", "loser"))
"""Columns that name the two models and do not say which was shown first."""
_SAID = ("winner", "value")
_COLUMNS = ("item", *_ORDERED, *_SAID, "judge")
LAYOUT = (
    "a table of preferences has the columns item, first and second (the models, in the order shown), winner "
    "(one of the two, or tie) or value (1 for the first, 0 for the second, 0.5 for a tie), and optionally "
    "judge; where the order is not known, a and b in the place of first and second, or winner and loser"
)
_JSON = (".json", ".jsonl", ".ndjson")


def load_preferences(path: str | Path) -> Preferences:
    """Read ``.csv``, ``.tsv``, or JSON: an array of objects, or one object per line.

    An empty winner or value is a judgement without a verdict. Columns that are not used are named in
    :attr:`Preferences.not_read`.

    Args:
        path: of the file.

    Raises:
        InvalidInputError: it cannot be read, lacks a column, or a row cannot be used; names file and line.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        if path.exists() and not is_plain_file(path):
            raise InvalidInputError(
                f"{path} is no file, but a pipe, a device, a socket or a folder; give a file"
            )
        text = str(without_known(path.read_text(encoding="utf-8-sig")))  # names are shown and written
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {reason(ex)}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{path} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex
    of_json = suffix in _JSON
    entries = _json_objects(text, path) if of_json else _csv_lines(text, path, _delimiter(suffix))
    rows: list[Preference] = []
    ordered = True
    not_read: dict[str, None] = {}
    for place, row in entries:
        sides = _sides(list(row), place)
        ordered = ordered and sides == _ORDERED
        not_read |= dict.fromkeys(name for name in row if name not in ("item", "judge", *_SAID, *sides))
        rows.append(_preference(row, sides, place))
    if not rows:
        raise InvalidInputError(f"{path} has no preferences; {LAYOUT}")
    try:
        return Preferences.of(rows, ordered=ordered, not_read=not_read)
    except EvalbudgetError as ex:
        raise InvalidInputError(f"{path}: {ex}") from None


def as_text(rows: Iterable[Preference], suffix: str) -> str:
    """As :func:`load_preferences` reads them.

    Args:
        rows: to write.
        suffix: of the file: ``.json``, ``.jsonl`` or ``.tsv``; anything else is CSV.
    """
    suffix = suffix.lower()
    if suffix in _JSON:
        entries = [json.dumps(row._asdict(), ensure_ascii=False) for row in rows]
        if suffix == ".json":
            return "[" + ",\n ".join(entries) + "]\n"
        return "".join(entry + "\n" for entry in entries)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n", delimiter=_delimiter(suffix))
    table.writerow(Preference._fields)
    table.writerows(
        ["" if field is None else name_as_cell(field) if isinstance(field, str) else field for field in row]
        for row in rows
    )
    return text.getvalue()


def _delimiter(suffix: str) -> str:
    return "\t" if suffix == ".tsv" else ","


def _csv_lines(text: str, path: Path, delimiter: str) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        _sides(header, str(path))
        read: list[tuple[int, list[str]]] = []
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise InvalidInputError(
                    f"{path}, line {rows.line_num}: {len(row)} fields, the header has {len(header)}; quote "
                    f"fields that contain {'tabs' if delimiter != ',' else 'commas'}"
                )
            read.append((rows.line_num, [field.strip() for field in row]))
    except csv.Error as ex:
        raise InvalidInputError(f"{path}, line {rows.line_num}: {ex}; {LAYOUT}") from ex
    names = iter(names_from_cells([field for _, fields in read for field in fields]))
    for line, fields in read:
        yield f"{path}, line {line}", dict(zip(header, islice(names, len(fields)), strict=True))


def _json_objects(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of an array, or one of each line."""
    is_array = text.lstrip().startswith("[")
    lines = [f"{path}"] if is_array else [f"{path}, line {n}" for n in range(1, text.count("\n") + 2)]
    for place, part in zip(lines, [text] if is_array else text.split("\n"), strict=True):
        if not part.strip():
            continue
        try:
            found = parsed_json(part)
        except ValueError as ex:
            raise InvalidInputError(
                f"{place}: {ex}; give one JSON object per line, or an array of objects"
            ) from None
        for number, row in enumerate(found if is_array else [found], start=1):
            where = f"{place}, entry {number}" if is_array else place
            if not isinstance(row, dict):
                raise InvalidInputError(f"{where}: {json.dumps(row)[:40]} is no JSON object; {LAYOUT}")
            yield where, {str(name).strip().lower(): value for name, value in row.items()}


def _sides(names: list[str], place: str) -> tuple[str, str]:
    """The columns that name the two models."""
    for name in (*_COLUMNS, *(side for sides in _UNORDERED for side in sides)):
        if names.count(name) > 1:
            raise InvalidInputError(f"{place} has {names.count(name)} columns named {name}; keep one")
    by_order = any(name in names for name in _ORDERED)
    found = next((sides for sides in _UNORDERED if not by_order and set(sides) <= set(names)), _ORDERED)
    for name in ("item", *found, "winner"):
        if name in names or (name == "winner" and "value" in names):
            continue
        others = [each for each in names if each not in _COLUMNS]
        hint = did_you_mean(name, others) if others else ""
        near = hint.replace("Did you mean", "Is it").rstrip("?") if hint.startswith(" Did") else ""
        what = "winner and no column value" if name == "winner" else name
        raise InvalidInputError(
            f"{place} has no column {what}.{f'{near}? Rename it.' if near else ''} Found: "
            f"{', '.join(map(shown, names)) or 'nothing'}; {LAYOUT}"
        )
    return found


def _preference(row: Mapping[str, Any], sides: tuple[str, str], place: str) -> Preference:
    item, first, second = (_name(row.get(name)) for name in ("item", *sides))
    for name, model in zip(sides, (first, second), strict=True):
        if not model:
            raise InvalidInputError(f"{place}: the {name} is empty; give every preference one")
    judge = _name(row.get("judge")) or JUDGE
    by_value, by_winner = row.get("value"), row.get("winner")
    bare = Preference(item, first, second, None, judge)
    check_preference(bare, place)  # before a winner is looked for between two of one name
    if by_value not in (None, ""):
        found = bare._replace(value=_number(by_value, place))
    else:
        found = bare._replace(value=_of_winner(_name(by_winner), bare, sides, place))
    check_preference(found, place)
    if sides == _ORDERED or first < second:
        return found
    # in one direction, so that the same judgement again is seen to be the same
    return Preference(item, second, first, None if found.value is None else 1.0 - found.value, judge)


def _name(given: Any) -> str:
    return "" if given is None else str(given).strip()


def _number(given: Any, place: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{place}: value {given!r} is not a number; write 1 where the first was better, 0 where the "
            "second was, 0.5 for a tie, and nothing if there is no verdict"
        ) from None


def _of_winner(winner: str, row: Preference, sides: tuple[str, str], place: str) -> float | None:
    if not winner:
        return None
    for name, value in ((row.first, 1.0), (row.second, 0.0)):
        if winner == name:
            return value
    if winner.lower() in _TIES:
        return 0.5
    if winner.lower() in sides:  # the side in the place of the model
        return 1.0 if winner.lower() == sides[0] else 0.0
    raise InvalidInputError(
        f"{place}: winner {winner!r} is neither {row.first!r} nor {row.second!r} nor {TIE}."
        f"{did_you_mean(winner, (row.first, row.second, TIE))}"
    )
