r"""Everything a race bought, in one file: answered documents, and answers on their way to become one.

::

    {"evalbudget": "lm-eval race", "format": 1, "version": "0.1.0", "task": "gsm8k", "settings": {...}}
    {"arm": "small", "model": {...}, "opened": {...}}                      when the arm was first loaded
    {"arm": "small", "asked": [[7, 0], [9, 0]], "at_once": 8}              before calls side by side
    {"arm": "small", "doc": 7, "epoch": 0, "request": 0, "said": "42"}     as soon as the model says it
    {"arm": "small", "doc": 7, "epoch": 0, "cost": 1.0, "metrics": {...}, "requests": 1, "samples": [...]}

A document that failed has an ``error`` and no ``metrics``. Which metric is the score is not recorded: a race
may go on by another one, with another sampler or with more arms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from lm_eval.utils import handle_non_serializable

from evalbudget import __version__
from evalbudget.errors import JournalError
from evalbudget.run import LinesFile, read_line, whole_lines
from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.races.arms import Arm

_KIND = "lm-eval race"
_FORMAT = 1

Said = dict[int, list[Any]]
"""What a model said to each of a document's requests."""


@dataclass(frozen=True, slots=True)
class Bought:
    """One document asked of one arm.

    Attributes:
        doc_id: the document.
        epoch: ordinal of the attempt, from 0.
        cost: evaluations paid for.
        answer: what came back; None if it failed.
        error: why it failed.
    """

    doc_id: int
    epoch: int
    cost: float
    answer: Answered | None
    error: str | None = None


@dataclass
class Known:
    """What earlier runs recorded of one arm.

    Attributes:
        model: its description.
        opened: what the host said of the run.
        bought: documents.
        said: what the model said to documents that were under way, by document.
        asked: documents of rounds that were never finished, and the ordinals of the attempts, in order.
        at_once: how many of them may have been under way at the same time.
    """

    model: dict[str, Any] | None = None
    opened: dict[str, Any] = field(default_factory=dict)
    bought: list[Bought] = field(default_factory=list)
    said: dict[int, Said] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    at_once: int = 0

    def cut_off(self) -> list[Bought]:
        """Documents that may have been under way when an earlier run was broken off: they count as paid."""
        silent = [(doc, epoch) for doc, epoch in self.asked.items() if doc not in self.said]
        why = "under way when the race was broken off"
        return [Bought(doc, epoch, 1.0, None, why) for doc, epoch in silent[: self.at_once]]


class RaceRecord:
    """The record of one race; see the module. Use :meth:`open`.

    Attributes:
        known: what earlier runs recorded, by arm.
    """

    def __init__(self, lines: LinesFile | None, known: Mapping[str, Known]) -> None:
        self._lines = lines
        self.known = known

    @property
    def path(self) -> Path | None:
        """Of the file."""
        return None if self._lines is None else self._lines.path

    @classmethod
    def open(cls, path: Path | None, task: str, settings: Mapping[str, Any]) -> Self:
        """Begin or continue a record.

        Args:
            path: of the file; None to record nothing.
            task: name of the task.
            settings: whatever else decides what a model answers; JSON values.

        Raises:
            JournalError: it cannot be read or written, is damaged, or of another task or other settings.
        """
        if path is None:
            return cls(None, {})
        if not path.exists():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as ex:
                raise JournalError(f"{path.parent} cannot be made: {ex.strerror}") from ex
            lines = LinesFile.create(path)
            header = {"evalbudget": _KIND, "format": _FORMAT, "version": __version__}
            lines.append({**header, "task": task, "settings": settings})
            return cls(lines, {})
        lines, (header, known) = LinesFile.open(path, _parse)
        try:
            _check(path, header, {"task": task, "settings": dict(settings)})
        except JournalError:
            lines.close()
            raise
        return cls(lines, known)

    def check(self, arms: Iterable[Arm]) -> None:
        """Refuse arms that were other models when the record began.

        Raises:
            JournalError: an arm has another model or other arguments.
        """
        for arm in arms:
            before = self.known[arm.name].model if arm.name in self.known else None
            if before is not None and before != arm.description:
                raise JournalError(
                    f"arm {arm.name} was {before} when {self.path} was begun, and is {arm.description} now; "
                    "give it a name of its own, or begin anew with another --journal"
                )

    def opened(self, arm: Arm, facts: Mapping[str, Any]) -> None:
        """Note which model an arm is, and what the host says of its run."""
        self._write({"arm": arm.name, "model": arm.description, "opened": facts})

    def asked(self, arm: str, documents: Sequence[tuple[int, int]], at_once: int) -> None:
        """Note which documents a round is about to ask, and which attempt of each that is."""
        self._write({"arm": arm, "asked": documents, "at_once": at_once})

    def said(self, arm: str, doc_id: int, epoch: int, request: int, said: Any) -> None:
        """Note what a model says as it says it."""
        self._write({"arm": arm, "doc": doc_id, "epoch": epoch, "request": request, "said": said})

    def bought(self, arm: str, bought: Bought) -> None:
        """Note what a document brought."""
        entry: dict[str, Any] = {"arm": arm, "doc": bought.doc_id, "epoch": bought.epoch, "cost": bought.cost}
        if bought.answer is None:
            entry["error"] = bought.error
        else:
            entry["metrics"] = dict(bought.answer.metrics)
            entry["requests"] = bought.answer.requests
            entry["samples"] = bought.answer.records
        self._write(entry)

    def close(self) -> None:
        """Let the file go."""
        if self._lines is not None:
            self._lines.close()

    def _write(self, entry: dict[str, Any]) -> None:
        if self._lines is not None:
            self._lines.append(entry, handle_non_serializable)


def _parse(data: bytes, path: Path) -> tuple[tuple[dict[str, Any], dict[str, Known]], int]:
    lines, whole = whole_lines(data, path)
    if not lines:
        raise JournalError(f"{path} is no record of a race: it has no header line; delete it")
    header = read_line(lines[0], f"{path}, line 1", _header)
    known: dict[str, Known] = defaultdict(Known)
    for number, line in enumerate(lines[1:], start=2):
        read_line(line, f"{path}, line {number}", lambda entry: _take_in(entry, header["task"], known))
    return (header, dict(known)), whole


def _header(entry: dict[str, Any]) -> dict[str, Any]:
    if entry.get("evalbudget") != _KIND:
        raise JournalError("this is not the record of a race on lm-eval")
    if entry["format"] != _FORMAT:
        raise JournalError(
            f"the record has format {entry['format']!r} (evalbudget {entry.get('version')}); this version "
            f"reads format {_FORMAT}. Install the version that wrote it, or begin anew with another --journal"
        )
    return {"task": entry["task"], "settings": entry["settings"]}


def _take_in(entry: dict[str, Any], task: str, known: dict[str, Known]) -> None:
    arm = known[entry["arm"]]
    if "model" in entry:
        arm.model, arm.opened = entry["model"], entry["opened"]
        return
    if "asked" in entry:
        arm.asked = {int(doc): int(epoch) for doc, epoch in entry["asked"]}
        arm.at_once = int(entry["at_once"])
        return
    doc_id, epoch = int(entry["doc"]), int(entry["epoch"])
    if "said" in entry:
        arm.said.setdefault(doc_id, {}).setdefault(int(entry["request"]), []).append(entry["said"])
        return
    answer = None
    if "metrics" in entry:
        records = tuple(entry["samples"])
        answer = Answered(task, doc_id, epoch, entry["metrics"], int(entry["requests"]), records)
    arm.said.pop(doc_id, None)
    arm.asked.pop(doc_id, None)
    arm.bought.append(Bought(doc_id, epoch, float(entry["cost"]), answer, entry.get("error")))


def _check(path: Path, recorded: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    there, here = ({"task": each["task"], **each["settings"]} for each in (recorded, now))
    differing = sorted(k for k in there.keys() | here.keys() if there.get(k) != here.get(k))
    if differing:
        shown = ", ".join(f"{k} = {there.get(k)!r} there, {here.get(k)!r} here" for k in differing)
        raise JournalError(
            f"{path} holds answers to other questions ({shown}); use the settings recorded, or begin anew "
            "with another --journal or --output_path"
        )
