r"""The record of a run or a race: one file with everything that was paid for, written as it comes.

::

    {"evalbudget": "lm-eval run", "format": 1, "version": "0.1.0", "settings": {...}}
    {"order": "09af...", "known": 40}                      what a gate's order of documents goes by; how many
                                                           answers of its baseline were there before it
    {"opened": {...}, "model": {...}}                      when a model was first loaded (races)
    {"asked": [["gsm8k", 7, 0, 1], ...], "at_once": 8}     before calls side by side: cells, calls of each
    {"of": ["gsm8k", 7, 0], "request": 0, "said": "42"}    as soon as the model says it
    {"of": ["gsm8k", 7, 0], "asks": "gpt-5"}               before a judge behind a server is asked
    {"of": ["gsm8k", 7, 0], "calls": 1, "samples": [...]}  once the host has scored it
    {"of": ["gsm8k", 7, 0], "error": "...", "cost": 1.0, "alone": true}   it failed, asked by itself (races;
                                                           a run's book says so)
    {"unanswered": 1}                                      calls that may be billed and brought no answer
    {"worker": "09af..."}                                  of a run: what it is called in its book
    {"counted": {"score_range": [0, 1]}}                   by what settings answers count as scores
    {"scoring": "09af..."}                                 of a run: how its task scored the answers
    {"stopped": "ConnectionError"}                         an error ended it; nothing is under way
    {"finished": "budget used up", "with": 5.0, "seconds": 60.1, "readings": 400}   the budget, in money or
                                                           tokens; how long its last attempt took for what

A cell is a task, a document and the ordinal of the attempt. In a race every line but the header has the
``arm`` too. What a run decided and counted is in its book (:mod:`evalbudget_lm_eval.repeats.book_file`). A
race may go on by another score or sampler, with another budget or with more arms, so its decisions are kept
nowhere. How it goes on after it was killed is in :mod:`evalbudget_lm_eval.run.resume`.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from lm_eval.utils import handle_non_serializable

from evalbudget import __version__
from evalbudget.errors import JournalError, differences, reason
from evalbudget.run import LinesFile, read_line, whole_lines
from evalbudget.secrets import cleaned, without_known, without_secrets
from evalbudget_lm_eval.host.answers import SCORED, Answered, Asked, Sample, numbers_of
from evalbudget_lm_eval.judges.readings import Reading

FOLDER = "evalbudget-journals"
RUN, RACE, AUDIT = "run", "race", "audit"
_FORMAT = 1
_REPEATED = frozenset({"error", "model", "opened", "said", "samples"})
"""What models, servers and the host say."""
_FOREIGN = {
    RUN: "{path} is of another run ({shown}); continue with the recorded arguments, or choose another "
    "--journal",
    RACE: "{path} holds answers to other questions ({shown}); use the settings recorded, or begin anew with "
    "another --journal or --output_path",
    AUDIT: "{path} holds answers to other questions ({shown}); use the settings recorded, or begin "
    "another audit",
}

Said = dict[int, list[Any]]
"""What a model said to each of a document's requests."""


@dataclass(frozen=True, slots=True)
class Bought:
    """One cell that was asked of one model.

    Attributes:
        asked: the cell.
        cost: evaluations paid for.
        samples: the host's records; None if it failed.
        calls: of the model, for an answer.
        error: why it failed.
        alone: it failed when it was asked by itself, not with a round that was cut off.
    """

    asked: Asked
    cost: float
    samples: Sequence[Sample] | None = None
    calls: int = 0
    error: str | None = None
    alone: bool = False

    @property
    def answer(self) -> Answered | None:
        """What came back; None if it failed."""
        return None if self.samples is None else Answered.of(self.asked, self.samples, self.calls)


class Kept:
    """One model in a record: what earlier runs bought of it, and what is under way.

    Args:
        write: appends a line.

    Attributes:
        model: its description; None if it was never loaded.
        opened: what the host said of its run.
        bought: in earlier runs and this one, in order; of an answer that was scored again, the last scores.
        said: what it said to cells that are not scored yet.
        at_once: how many of those asked last may be under way at the same time.
        unanswered: calls that may be billed, and brought no answer.
        order: what a gate's order of items goes by; empty where there is none.
        known: answers of its baseline that were there before it.
    """

    def __init__(self, write: Callable[[dict[str, Any]], None]) -> None:
        self._write = write
        self.model: dict[str, Any] | None = None
        self.opened: dict[str, Any] = {}
        self.bought: list[Bought] = []
        self.said: dict[Asked, Said] = {}
        self.at_once = 0
        self.unanswered = 0
        self.order = ""
        self.known = 0
        self._asked: dict[Asked, int] = {}
        self._scored: dict[Asked, int] = {}  # places of answers in what was bought
        self._judging: Counter[tuple[Asked, str]] = Counter()

    def open(self, model: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Note which model it is, and what the host says of its run."""
        self._note({"opened": cleaned(facts), "model": model})

    def begin_gate(self, known: int = 0) -> str:
        """What the order of items goes by: its own of every gate, and the same when it goes on.

        Args:
            known: answers of the baseline that are there, if it is begun now.
        """
        if not self.order:
            self._note({"order": secrets.token_hex(8), "known": known})
        return self.order

    def ask(self, calls: Mapping[Asked, int], at_once: int) -> None:
        """Note which cells a round is about to ask, and how many calls each takes."""
        entry = {"asked": [[*asked, n] for asked, n in calls.items()], "at_once": at_once}
        (self._note if at_once else self.take)(entry)

    def lend(self, asked: Asked, said: Mapping[int, Sequence[Any]]) -> None:
        """Have an earlier answer stand for this cell's, with what judges said of the cell so far."""
        heard = self.said.get(asked, {}).get(SCORED)
        self.said[asked] = {number: list(texts) for number, texts in said.items()}
        if heard is not None:
            self.said[asked][SCORED] = heard

    def hear(self, asked: Asked, request: int, said: Any) -> None:
        """Note what a model, or a judge, says as it says it."""
        self._note({"of": asked, "request": request, "said": said})

    def begin(self, asked: Asked, judge: str) -> None:
        """Note that a judge is about to be asked; its reply is heard, or was lost."""
        self._note({"of": asked, "asks": judge})

    def lose_judging(self) -> None:
        """The process that asked judges is gone: whose reply is not on record brought none."""
        self.unanswered += self._judging.total()
        self._judging.clear()

    def answer(self, answer: Answered) -> None:
        """Note what the host made of it."""
        self._note({"of": answer.asked, "calls": answer.requests, "samples": answer.records})

    def fail(self, asked: Asked, cost: float, error: str, *, alone: bool = False) -> None:
        """Note that a cell failed, by itself or with a round that was cut off."""
        self._note({"of": asked, "error": without_secrets(error), "cost": cost, "alone": alone})

    def pay(self, calls: int) -> None:
        """Note that so many calls brought no answer, and may be billed."""
        self._note({"unanswered": calls})

    def stop(self, reason: str) -> None:
        """Note that nothing is under way any more."""
        self._note({"stopped": reason})

    def settle(self, asked: Asked) -> None:
        """Forget what was said to a cell: it is scored, or failed."""
        self.said.pop(asked, None)
        self._asked.pop(asked, None)

    @property
    def took_part(self) -> bool:
        """Whether anything was ever asked."""
        return bool(self.bought or self.said or self._asked)

    @property
    def under_way(self) -> list[Asked]:
        """Cells of the last round that were not answered in full, in the order they were asked."""
        return [asked for asked in self._asked if self.unheard(asked)]

    def unheard(self, asked: Asked) -> int:
        """Calls of a cell of the last round that were not answered."""
        said = self.said.get(asked, {})
        return max(0, self.calls_of(asked) - sum(len(texts) for number, texts in said.items() if number >= 0))

    def calls_of(self, asked: Asked) -> int:
        """How many calls a cell of the last round takes."""
        return self._asked[asked]

    def take(self, entry: dict[str, Any]) -> None:
        """Take in a line: of an earlier run, or of this one as it is written."""
        if "order" in entry:
            self.order = str(entry["order"])
            self.known = int(entry.get("known", 0))
        elif "opened" in entry:
            self.model, self.opened = entry["model"], entry["opened"]
        elif "asked" in entry:
            self._asked = {Asked(*cell): int(n) for *cell, n in entry["asked"]}
            self.at_once = int(entry["at_once"])
        elif "stopped" in entry:
            self._asked.clear()
        elif "unanswered" in entry:
            self.unanswered += int(entry["unanswered"])
        elif "of" not in entry:
            raise ValueError(f"an entry {sorted(entry)}")
        elif "said" in entry:
            said = self.said.setdefault(Asked(*entry["of"]), {})
            said.setdefault(int(entry["request"]), []).append(entry["said"])
            if entry["request"] == SCORED and (reading := Reading.parse(entry["said"])) is not None:
                self._judging -= Counter([(Asked(*entry["of"]), reading.judge)])
        elif "asks" in entry:
            self._judging[Asked(*entry["of"]), entry["asks"]] += 1
        else:
            asked, samples = Asked(*entry["of"]), entry.get("samples")
            paid = float(entry["cost"]) if samples is None else 1.0
            if not 0.0 <= paid < math.inf:
                raise ValueError(f"a cost of {paid}")
            if samples is not None:
                numbers_of(samples)  # lest it is damaged
            failed = (entry.get("error"), entry.get("alone", False))
            bought = Bought(asked, paid, samples, entry.get("calls", 0), *failed)
            before = self._scored.get(asked) if samples is not None else None
            if before is not None:
                self.bought[before] = bought
            else:
                self.bought.append(bought)
            if samples is not None:
                self._scored.setdefault(asked, len(self.bought) - 1)
            self.settle(asked)

    def _note(self, entry: dict[str, Any]) -> None:
        self._write(entry)
        self.take(entry)


class Lines(Protocol):
    """Lines that are no file, but are read and added to as one is."""

    @property
    def path(self) -> str:
        """Where they are, for people."""

    def read(self) -> bytes:
        """All that are there."""

    def append(self, entry: dict[str, Any], default: Callable[[Any], object] | None = None) -> None:
        """One more."""

    def close(self) -> None:
        """Let them go."""


class Record:
    """The record of one run or race; see the module. Use :meth:`open`.

    Attributes:
        settings: that decide what a model answers.
        counted: by what settings its answers count as scores; None before the first does.
        scoring: how its task scored the answers; None before the first was.
        finished: whether its last line says that it is over.
        finished_with: the budget in money or tokens that it was over with; None where scores were counted.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.counted: dict[str, Any] | None = None
        self.scoring: str | None = None
        self.finished = False
        self.finished_with: float | None = None
        self._kept: dict[str, Kept] = {}
        self._lines: LinesFile | Lines | None = None
        self._lock = Lock()
        self._worker = ""

    @classmethod
    def open(cls, path: Path | Lines | None, kind: str, settings: Mapping[str, Any]) -> Record:
        """Begin or continue a record.

        Args:
            path: of the file, or lines in a store; None to record nothing.
            kind: ``run``, ``race`` or ``audit``.
            settings: whatever decides what a model answers.

        Raises:
            JournalError: it cannot be read or written, is damaged, or of another kind or other settings.
        """
        here = json.loads(json.dumps(settings, default=handle_non_serializable))
        if path is None:
            return cls(here)
        lines: LinesFile | Lines
        if not isinstance(path, Path):
            lines, data = path, path.read()
            if not data:
                return cls._begin(lines, kind, here)
            record, _ = _parse(data, path.path, kind)
        elif path.exists():
            lines, record = LinesFile.open(path, partial(_parse, kind=kind))
        else:
            return cls._begin(_created(path), kind, here)
        if shown := differences(record.settings, here):
            lines.close()
            raise JournalError(_FOREIGN[kind].format(path=lines.path, shown=shown))
        return record._on(lines)

    @classmethod
    def _begin(cls, lines: LinesFile | Lines, kind: str, settings: dict[str, Any]) -> Record:
        entry = {"evalbudget": f"lm-eval {kind}", "format": _FORMAT, "version": __version__}
        lines.append({**entry, "settings": settings}, handle_non_serializable)
        return cls(settings)._on(lines)

    def _on(self, lines: LinesFile | Lines) -> Record:
        self._lines = lines
        return self

    @property
    def path(self) -> Path | None:
        """Of the file; None where there is none."""
        return self._lines.path if isinstance(self._lines, LinesFile) else None

    @property
    def where(self) -> str:
        """It is kept, for people."""
        return "" if self._lines is None else str(self._lines.path)

    def of(self, arm: str = "") -> Kept:
        """What is recorded of one arm of a race, or of a run's only model."""
        if arm not in self._kept:
            self._kept[arm] = Kept(partial(self._append, arm))
        return self._kept[arm]

    def count_by(self, settings: dict[str, Any]) -> None:
        """Note how answers count as scores, before the first does."""
        if self.counted is None:
            self.counted = settings
            self._append("", {"counted": settings})

    def score_by(self, scoring: str) -> None:
        """Note how answers are scored, before the first is, or before all are scored again."""
        if self.scoring != scoring:
            self.scoring = scoring
            self._append("", {"scoring": scoring})

    @property
    def worker(self) -> str:
        """What this process is called in the book of its run; the same when it goes on."""
        if not self._worker:
            self._worker = secrets.token_hex(8)
            self._append("", {"worker": self._worker})
        return self._worker

    def finish(
        self, reason: str, amount: float | None = None, *, seconds: float = 0.0, readings: int = 0
    ) -> None:
        """Note that it is over.

        Args:
            reason: why.
            amount: of the budget, where that is money or tokens.
            seconds: that the last attempt took.
            readings: that it brought.
        """
        if not self.finished or amount != self.finished_with:
            entry = {"finished": reason} | ({} if amount is None else {"with": amount})
            if readings:
                entry |= {"seconds": round(seconds, 3), "readings": readings}
            self._append("", entry)

    def close(self) -> None:
        """Let the file go."""
        if self._lines is not None:
            self._lines.close()

    def take(self, entry: dict[str, Any]) -> None:
        """Take in a line that an earlier run wrote."""
        self.finished = "finished" in entry
        self.finished_with = entry.get("with") if self.finished else self.finished_with
        if "counted" in entry:
            self.counted = entry["counted"]
        elif "scoring" in entry:
            self.scoring = str(entry["scoring"])
        elif "worker" in entry:
            self._worker = str(entry["worker"])
        elif not self.finished:
            self.of(entry.get("arm", "")).take(entry)

    def _append(self, arm: str, entry: dict[str, Any]) -> None:
        with self._lock:  # arms that are asked at once write from threads of their own
            self.finished = "finished" in entry
            if self._lines is not None:
                # models and servers repeat what they were given; names of tasks stay
                entry = entry | {name: without_known(entry[name]) for name in _REPEATED & entry.keys()}
                self._lines.append({"arm": arm, **entry} if arm else entry, _plain)


def _plain(value: Any) -> Any:
    return without_known(handle_non_serializable(value))


def _created(path: Path) -> LinesFile:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as ex:
        raise JournalError(f"{path.parent} cannot be made: {reason(ex)}") from ex
    return LinesFile.create(path)


def _parse(data: bytes, path: Path | str, kind: str) -> tuple[Record, int]:
    lines, whole = whole_lines(data, path)
    if not lines:
        raise JournalError(f"{path} is no record of a {kind}: it has no header line; delete it")
    record = read_line(lines[0], f"{path}, line 1", partial(_header, kind=kind))
    for number, line in enumerate(lines[1:], start=2):
        read_line(line, f"{path}, line {number}", record.take)
    for kept in record._kept.values():
        kept.lose_judging()
    return record, whole


def _header(entry: dict[str, Any], kind: str) -> Record:
    if entry.get("evalbudget") != f"lm-eval {kind}":
        raise JournalError(f"this is not the record of a {kind} on lm-eval")
    if entry["format"] != _FORMAT:
        raise JournalError(
            f"the record has format {entry['format']!r} (evalbudget {entry.get('version')}); this version "
            f"reads format {_FORMAT}. Install the version that wrote it, or begin anew with another --journal"
        )
    return Record(dict(entry["settings"]))


def beside(record: Path, end: str) -> Path:
    """A file that belongs to a record: of its name, whatever dots that has."""
    return record.with_name((record.stem if record.suffix == ".jsonl" else record.name) + end)


def digest_of(identity: Mapping[str, Any]) -> str:
    """A short hash of whatever must be the same for two records to be the same file."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:8]


def state_of(path: Path) -> tuple[bool, dict[str, Any] | None]:
    """Whether the run of a record is over, and by what settings its answers count; None if none does yet.

    Raises:
        JournalError: it cannot be read, or is damaged.
    """
    finished, counted = False, None
    try:
        lines = path.read_bytes().splitlines()
    except OSError as ex:
        raise JournalError(f"{path} cannot be read: {reason(ex)}") from ex
    for number, line in enumerate(lines, start=1):
        finished = line.startswith(b'{"finished":') and line.endswith(b"}")
        if line.startswith(b'{"counted":') and line.endswith(b"}"):
            counted = read_line(line, f"{path}, line {number}", lambda entry: dict(entry["counted"]))
    return finished, counted
