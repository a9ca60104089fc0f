r"""A journal as a file: one JSON object per line, appended and flushed as things happen.

::

    {"evalbudget": "journal", "format": 1, "version": "0.1.0", "design": "9f...", "config": {...}}
    {"ask": 0, "cell": [0, 7, 0, 0]}
    {"tell": 0, "value": 0.5, "cost": 1.0}

A process that is killed leaves at most one line without its ``\n``; that line is dropped on reading. Every
other flaw is an error that names file and line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import InvalidInputError, JournalError, reason
from evalbudget.journal import FORMAT, Event, Header, Journal
from evalbudget.run._json_lines import LinesFile, read_line, whole_lines
from evalbudget.secrets import without_secrets


class JournalFile:
    """A journal that is written to a file event by event.

    Use :meth:`create` or :meth:`open`. One process at a time: a second one is refused.
    Events survive the process being killed; what the system had not written when it lost power does not.

    Attributes:
        path: of the file.
        journal: everything in the file.
    """

    def __init__(self, journal: Journal, lines: LinesFile) -> None:
        self.path = lines.path
        self.journal = journal
        self._lines = lines

    @classmethod
    def create(cls, path: str | Path, header: Header) -> JournalFile:
        """Begin a journal.

        Raises:
            JournalError: the file exists, or cannot be written.
        """
        file = cls(Journal(header), LinesFile.create(Path(path)))
        file._write(_header_to_dict(header))
        return file

    @classmethod
    def open(cls, path: str | Path) -> JournalFile:
        """Continue a journal; a last line that was cut off is removed from the file.

        Raises:
            JournalError: the file cannot be read, is not a journal, or another process writes it.
        """
        lines, journal = LinesFile.open(Path(path), _parse)
        return cls(journal, lines)

    def append(self, event: Event) -> None:
        """Record what happened; it is in the file when this returns.

        Raises:
            JournalError: the file cannot be written.
        """
        self._write(_event_to_dict(event))
        self.journal.append(event)

    def close(self) -> None:
        """Let the file go."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, entry: dict[str, Any]) -> None:
        self._lines.append(entry, _plain)


def read_journal(path: str | Path) -> Journal:
    """Read a journal without opening it for writing.

    A last line that was cut off is dropped, with a warning in the log.

    Raises:
        JournalError: the file cannot be read, is not a journal, or is damaged; names file and line.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as ex:
        raise JournalError(f"{path} cannot be read: {reason(ex)}") from ex
    return _parse(data, path)[0]


def _parse(data: bytes, path: Path) -> tuple[Journal, int]:
    """The journal, and how many bytes of the file are whole lines."""
    lines, whole = whole_lines(data, path)
    if not lines:
        raise JournalError(f"{path} is not an evalbudget journal: it has no header line. Start a new one")
    reader = JournalReader(read_line(lines[0], f"{path}, line 1", _header_from_dict))
    for number, line in enumerate(lines[1:], start=2):
        read_line(line, f"{path}, line {number}", reader.take)
    return reader.journal, whole


class JournalReader:
    """Makes a journal of its lines, one after the other; a host keeps them among lines of its own.

    Args:
        header: who wrote them.

    Attributes:
        journal: what was taken in so far.
    """

    def __init__(self, header: Header) -> None:
        self.journal = Journal(header)
        self._asked: list[Request] = []
        self._told: set[int] = set()

    def take(self, entry: dict[str, Any]) -> None:
        """Take one line in.

        Raises:
            ValueError, TypeError, KeyError: it is no line of a journal, or does not follow the others.
        """
        if "ask" in entry:
            self.journal.append(self._ask(entry))
        else:
            self.journal.append(self._tell(entry))

    def _tell(self, entry: dict[str, Any]) -> Event:
        number = entry["tell"]
        if not isinstance(number, int) or not 0 <= number < len(self._asked):
            raise InvalidInputError(f"a reading of request {number!r}, which was not asked before")
        if number in self._told:
            raise InvalidInputError(f"a second reading of request {number}")
        self._told.add(number)
        value, request = entry["value"], self._asked[number]
        return Event(
            request,
            Reading(request, None if value is None else float(value), entry["cost"], entry.get("error")),
        )

    def _ask(self, entry: dict[str, Any]) -> Event:
        cell = entry["cell"]
        if not isinstance(cell, list) or len(cell) != 4 or not all(type(i) is int for i in cell):
            raise InvalidInputError(f"cell {cell!r} is not [model, item, epoch, rater]")
        if entry["ask"] != len(self._asked):
            raise InvalidInputError(
                f"request {entry['ask']!r} follows {len(self._asked)} others; lines are missing"
            )
        request = Request(entry["ask"], Cell(*cell), _share(entry, "propensity"), entry.get("phase"))
        self._asked.append(request)
        return Event(request, adopted=entry.get("adopted", False), restricted=entry.get("restricted", False))


def _share(entry: dict[str, Any], name: str) -> float | None:
    value = entry.get(name)
    if value is not None and not 0.0 <= value <= 1.0:
        raise InvalidInputError(f"{name} {value!r} is not between 0 and 1")
    return None if value is None else float(value)


def _event_to_dict(event: Event) -> dict[str, Any]:
    reading = event.reading
    if reading is not None:
        entry: dict[str, Any] = {"tell": reading.request.id, "value": reading.value, "cost": reading.cost}
        if reading.error is not None:
            entry["error"] = without_secrets(reading.error)
        return entry
    request = event.request
    entry = {"ask": request.id, "cell": list(request.cell)}
    if request.propensity is not None:
        entry["propensity"] = request.propensity
    if request.phase is not None:
        entry["phase"] = request.phase
    for flag in ("adopted", "restricted"):
        if getattr(event, flag):
            entry[flag] = True
    return entry


def _header_to_dict(header: Header) -> dict[str, Any]:
    return {
        "evalbudget": "journal",
        "format": header.format,
        "version": header.version,
        "design": header.design,
        "config": header.config,
    }


def _header_from_dict(entry: dict[str, Any]) -> Header:
    if entry.get("evalbudget") != "journal":
        raise JournalError("this is not an evalbudget journal")
    if entry["format"] != FORMAT:
        raise JournalError(
            f"the journal has format {entry['format']!r} (evalbudget {entry.get('version')}); this version "
            f"reads format {FORMAT}. Install the version that wrote it, or start a new journal"
        )
    if not isinstance(entry["config"], dict):
        raise TypeError("config is not a JSON object")
    return Header(entry["config"], str(entry["design"]), str(entry["version"]), FORMAT)


def _plain(value: object) -> object:
    """NumPy scalars, which options and cells may hold."""
    item = getattr(value, "item", None)
    if item is None:
        raise JournalError(f"an option of the sampler is {value!r}, which JSON cannot hold")
    return item()
