r"""A journal's lines in a file: one JSON object each, appended and flushed as things happen.

::

    {"ask": 0, "cell": [0, 7, 0, 0]}
    {"tell": 0, "value": 0.5, "cost": 1.0}

They stand among lines of a host's own, which say whose they are.
"""

from __future__ import annotations

from typing import Any

from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import InvalidInputError, JournalError
from evalbudget.journal import Event, Header, Journal
from evalbudget.run._json_lines import LinesFile
from evalbudget.secrets import without_secrets


class JournalFile:
    """A journal that is written to a file event by event.

    Events survive the process being killed; what the system had not written when it lost power does not.

    Args:
        journal: everything in the file so far.
        lines: of the file.
    """

    def __init__(self, journal: Journal, lines: LinesFile) -> None:
        self.journal = journal
        self._lines = lines

    def append(self, event: Event) -> None:
        """Record what happened; it is in the file when this returns.

        Raises:
            JournalError: the file cannot be written.
        """
        self._lines.append(_event_to_dict(event), _plain)
        self.journal.append(event)


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


def _plain(value: object) -> object:
    """NumPy scalars, which options and cells may hold."""
    item = getattr(value, "item", None)
    if item is None:
        raise JournalError(f"an option of the sampler is {value!r}, which JSON cannot hold")
    return item()
