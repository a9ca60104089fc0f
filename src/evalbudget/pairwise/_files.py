"""Tables of preferences: CSV, and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalbudget.errors import EvalbudgetError, InvalidInputError, did_you_mean
from evalbudget.pairwise._preferences import JUDGE, Preference, Preferences, check_preference

TIE = "tie"
_NEEDED = ("item", "first", "second")
_COLUMNS = (*_NEEDED, "winner", "value", "judge")
LAYOUT = (
    "a table of preferences has the columns item, first and second (the models, in the order shown), winner "
    "(one of the two, or tie) or value (1 for the first, 0 for the second, 0.5 for a tie), and optionally "
    "judge"
)


def load_preferences(path: str | Path) -> Preferences:
    """Read ``.csv``, or ``.jsonl`` with one object per line.

    An empty winner or value is a judgement without a verdict.

    Args:
        path: of the file.

    Raises:
        InvalidInputError: it cannot be read, lacks a column, or a row cannot be used; names file and line.
    """
    path = Path(path)
    lines = _json_lines if path.suffix.lower() in (".jsonl", ".ndjson") else _csv_lines
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {ex.strerror or ex}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"{path} is not UTF-8 text ({ex.reason}); save it as UTF-8") from ex
    rows = [_preference(row, f"{path}, line {number}") for number, row in lines(text, path)]
    if not rows:
        raise InvalidInputError(f"{path} has no preferences; {LAYOUT}")
    try:
        return Preferences.of(rows)
    except EvalbudgetError as ex:
        raise InvalidInputError(f"{path}: {ex}") from None


def as_text(rows: Iterable[Preference], suffix: str) -> str:
    """As :func:`load_preferences` reads them.

    Args:
        rows: to write.
        suffix: of the file: ``.jsonl`` for JSON lines, anything else for CSV.
    """
    if suffix.lower() in (".jsonl", ".ndjson"):
        return "".join(json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Preference._fields)
    table.writerows(["" if field is None else field for field in row] for row in rows)
    return text.getvalue()


def _csv_lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        _check_columns(header, str(path))
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise InvalidInputError(
                    f"{path}, line {rows.line_num}: {len(row)} fields, the header has {len(header)}; quote "
                    "fields that contain commas"
                )
            yield rows.line_num, dict(zip(header, (field.strip() for field in row), strict=True))
    except csv.Error as ex:
        raise InvalidInputError(f"{path}, line {rows.line_num}: {ex}; {LAYOUT}") from ex


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as ex:
            raise InvalidInputError(f"{path}, line {number}: {ex}; give one JSON object per line") from None
        if not isinstance(row, dict):
            raise InvalidInputError(f"{path}, line {number}: {line[:40]!r} is no JSON object; {LAYOUT}")
        _check_columns(list(row), f"{path}, line {number}")
        yield number, row


def _check_columns(names: list[str], place: str) -> None:
    for name in (*_NEEDED, "winner"):
        if name in names or (name == "winner" and "value" in names):
            continue
        others = [each for each in names if each not in _COLUMNS]
        hint = did_you_mean(name, others) if others else ""
        near = hint.replace("Did you mean", "Is it").rstrip("?") if hint.startswith(" Did") else ""
        what = "winner and no column value" if name == "winner" else name
        raise InvalidInputError(
            f"{place} has no column {what}.{f'{near}? Rename it.' if near else ''} Found: "
            f"{', '.join(names) or 'nothing'}; {LAYOUT}"
        )
    for name in _COLUMNS:
        if names.count(name) > 1:
            raise InvalidInputError(f"{place} has {names.count(name)} columns named {name}; keep one")


def _preference(row: Mapping[str, Any], place: str) -> Preference:
    item, first, second = (_name(row.get(name)) for name in _NEEDED)
    judge = _name(row.get("judge")) or JUDGE
    by_value, by_winner = row.get("value"), row.get("winner")
    if by_value not in (None, ""):
        found = Preference(item, first, second, _number(by_value, place), judge)
    else:
        bare = Preference(item, first, second, None, judge)
        check_preference(bare, place)
        found = bare._replace(value=_of_winner(_name(by_winner), bare, place))
    check_preference(found, place)
    return found


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


def _of_winner(winner: str, row: Preference, place: str) -> float | None:
    if not winner:
        return None
    for name, value in ((row.first, 1.0), (row.second, 0.0)):
        if winner == name:
            return value
    if winner.lower() == TIE:
        return 0.5
    raise InvalidInputError(
        f"{place}: winner {winner!r} is neither {row.first!r} nor {row.second!r} nor {TIE}."
        f"{did_you_mean(winner, (row.first, row.second, TIE))}"
    )
