"""Labels of a file into a store: all that are valid, or none."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evalbudget.audits.store._labels import labeller
from evalbudget.audits.store._record_types import LabelKind
from evalbudget.audits.store._store import AuditStore
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.spreadsheets import from_cell
from evalbudget.store import Address
from evalbudget.untrusted import parsed_json

_LARGEST_CELL = 2**31 - 1  # a C long holds no more everywhere
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "label-studio"}


@dataclass(frozen=True, slots=True)
class Row:
    """One label as a file has it.

    Attributes:
        place: where it stands, for messages.
        task: id of the task.
        score: as written; None if there is none yet.
        by: who; empty if the file does not say.
        at: when, as written; empty if the file does not say.
    """

    place: str
    task: str
    score: Any
    by: str
    at: str


def format_of(name: str, given: str | None = None) -> str:
    """The format of a file: as given, otherwise by its suffix.

    Raises:
        InvalidInputError: neither tells.
    """
    if given is not None:
        return given
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if suffix not in _SUFFIXES:
        raise InvalidInputError(
            f"{name}: the name does not tell the format; give --format csv, jsonl or label-studio"
        )
    return _SUFFIXES[suffix]


def read_rows(text: str, kind: str) -> list[Row]:
    """All rows of a file.

    Raises:
        InvalidInputError: the file is damaged; names the line.
    """
    readers = {"csv": _csv, "jsonl": _jsonl, "label-studio": _label_studio}
    if kind not in readers:
        raise UnknownNameError("format", kind, readers)
    return list(readers[kind](text.removeprefix("\ufeff")))


def _csv(text: str) -> Iterator[Row]:
    head = text.partition("\n")[0]
    # spreadsheets of half of the world write semicolons
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    usual = csv.field_size_limit(_LARGEST_CELL)  # answers may be long
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        for needed in ("task", "score"):
            if header.count(needed) != 1:
                raise InvalidInputError(
                    f"the header has no single column {needed!r}: {', '.join(header) or 'it is empty'}. "
                    "Fill in what evalbudget audit export wrote"
                )
        begun = reader.line_num + 1
        for cells in reader:
            place, begun = f"line {begun}", reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            entry = dict(zip(header, map(str.strip, cells), strict=False))
            score = _number(entry.get("score", ""), delimiter) or None
            yield Row(place, entry["task"], score, from_cell(entry.get("by", "")), entry.get("at", ""))
    except csv.Error as ex:
        raise InvalidInputError(f"line {reader.line_num}: {ex}") from ex
    finally:
        csv.field_size_limit(usual)


def _number(text: str, delimiter: str) -> str:
    """7,5 is seven and a half to spreadsheets that part cells by semicolons."""
    return text.replace(",", ".") if delimiter == ";" and text.count(",") == 1 else text


def _jsonl(text: str) -> Iterator[Row]:
    # not splitlines, which parts lines at characters that JSON leaves inside a text
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = parsed_json(line)
        except ValueError as ex:
            raise InvalidInputError(f"line {number} is not JSON: {ex}") from ex
        if not isinstance(entry, dict) or not isinstance(entry.get("task"), str):
            raise InvalidInputError(f"line {number} is not an object with a task")
        by, at = _text(entry.get("by")), _text(entry.get("at"))
        yield Row(f"line {number}", entry["task"], entry.get("score"), by, at)


def _label_studio(text: str) -> Iterator[Row]:
    """Label Studio's exports JSON and JSON-MIN, and our own of tasks."""
    try:
        tasks = parsed_json(text)
    except ValueError as ex:
        raise InvalidInputError(f"not JSON: {ex}") from ex
    if not isinstance(tasks, list):
        raise InvalidInputError("not a list of tasks; export from Label Studio as JSON or JSON-MIN")
    for number, task in enumerate(tasks, start=1):
        place = f"entry {number}"
        data = task.get("data", task) if isinstance(task, dict) else None
        if not isinstance(data, dict) or not isinstance(data.get("task"), str):
            raise InvalidInputError(
                f"{place} has no task; its data must be what evalbudget audit export wrote"
            )
        done = task.get("annotations") or []
        if not isinstance(done, list) or not all(isinstance(annotation, dict) for annotation in done):
            raise InvalidInputError(f"{place} has annotations that are no list of objects")
        by, at = _text(data.get("labelled_by")), _text(data.get("labelled_at"))
        if data is task:  # JSON-MIN
            by, at = by or _author(data.get("annotator")), at or _text(data.get("updated_at"))
            yield Row(place, data["task"], data.get("score"), by, at)
            continue
        done = [annotation for annotation in done if not annotation.get("was_cancelled")]
        if not done:
            yield Row(place, data["task"], None, "", "")
        for annotation in done:
            author = _author(annotation.get("completed_by"))
            when = _text(annotation.get("updated_at") or annotation.get("created_at"))
            if not author or annotation.get("lead_time") is None:
                author, when = by or author, at or when  # sent there and back again it is of who gave it
            yield Row(place, data["task"], _result(annotation.get("result"), place), author, when)


def _text(value: Any) -> str:
    return str(value or "")


def _author(value: Any) -> str:
    if isinstance(value, dict):
        return _text(value.get("email") or value.get("username") or value.get("id"))
    return "" if value is None else f"annotator {value}" if isinstance(value, int) else str(value)


def _result(results: Any, place: str) -> Any:
    for result in results if isinstance(results, list) else ():
        if not isinstance(result, dict) or result.get("from_name") != "score":
            continue
        value = result.get("value")
        value = value if isinstance(value, dict) else {}
        for kind in ("number", "rating", "choices", "text"):
            if kind in value:
                found = value[kind]
                if not isinstance(found, list):
                    return found
                if len(found) == 1:
                    return found[0]
        raise InvalidInputError(f"{place}: its score is {json.dumps(value)}, not one number or choice")
    return None


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the rows of a file.

    Attributes:
        new: labels that count from now on.
        known: in the store already.
        agrees: other labellers' scores, the same as the ones that count.
        conflicts: scores that contradict the ones that count; kept, reported, and nothing more.
        empty: rows without a score.
    """

    new: int
    known: int
    agrees: int
    conflicts: int
    empty: int

    def warning(self, store: Address) -> str:
        """What to tell people of contradictions, and where to see them; empty if there are none."""
        told = f"{self.conflicts} contradict earlier labels, which count: see evalbudget audit status {store}"
        return told if self.conflicts else ""


def import_labels(store: AuditStore, text: str, kind: str, by: str | None = None) -> Imported:
    """Record the labels of a file; importing it again changes nothing.

    Args:
        store: the audit.
        text: of the file.
        kind: ``csv``, ``jsonl`` or ``label-studio``.
        by: who labelled, where the file does not say.

    Raises:
        InvalidInputError: rows that cannot be used, each with its line; nothing was recorded.
    """
    labels, problems, empty = [], list[str](), 0
    for row in read_rows(text, kind):
        try:
            draw = store.draws.index(row.task)
            if row.score is None or row.score == "":
                empty += 1
                continue
            who = row.by or by
            if not who:
                raise InvalidInputError("does not say who labelled; fill in the column by, or give --by NAME")
            labels.append((draw, store.design.scale.check(_score(row)), labeller(who), _time(row)))
        except InvalidInputError as ex:
            problems.append(f"{row.place}: {ex}")
    if problems:
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InvalidInputError("nothing was imported:\n  " + "\n  ".join(problems[:_SHOWN]) + more)
    kinds = Counter(label.kind for label in store.labels.add_all(labels))
    return Imported(
        new=kinds[LabelKind.FIRST],
        known=kinds[LabelKind.KNOWN],
        agrees=kinds[LabelKind.AGREES],
        conflicts=kinds[LabelKind.CONFLICTS],
        empty=empty,
    )


def _score(row: Row) -> float:
    if isinstance(row.score, bool) or not isinstance(row.score, int | float | str):
        raise InvalidInputError(f"score {row.score!r} is not a number")
    try:
        return float(row.score)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"score {str(row.score)[:60]!r} is not a number") from None


def _time(row: Row) -> float | None:
    if not row.at:
        return None
    try:
        moment = datetime.fromisoformat(row.at)
    except ValueError:
        raise InvalidInputError(
            f"time {row.at!r} is not a time; write 2026-01-31T12:00:00+00:00 or leave it empty"
        ) from None
    if not 1970 < moment.year < 9999:  # time zones lead over the ends of the calendar
        raise InvalidInputError(f"time {row.at!r} is not when anybody labelled; leave it empty for now")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
