"""The record of a run, a race or an audit: what was paid for, row by row, in one file with book and bill.

A row has a kind, a cell (task, document, ordinal of the attempt) where it is of one, and in JSON:

- ``begun``: what it is a record of, by what settings, and what a run is called in its book;
- ``opened``: when a model was first loaded, which it is, and what the host says of its run;
- ``order``: what a gate's documents go by, and how many answers of its baseline were there before it;
- ``asked``: before calls side by side, cells with the calls of each, and how many may be on their way;
- ``said``: as soon as a model or a judge says something to a cell, to which request, and what;
- ``asks``: before a judge behind a server is asked about a cell, which judge;
- ``came``: once the host has scored a cell, its samples, and the calls it took;
- ``failed``: why a cell did, what that cost, whether it was asked by itself (a run's book says so);
- ``unanswered``: calls that may be billed and brought no answer;
- ``stopped``: an error ended it, and nothing is under way;
- ``counted``, ``scoring``: by what settings answers count as scores, how a run's task scored them;
- ``finished``: with what budget in money or tokens, how long its last attempt took, for how many readings.

A race may go on by another score or sampler, with another budget or with more arms, so its decisions are kept
nowhere. How it goes on after it was killed is in :mod:`evalbudget_lm_eval.run.resume`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval.utils import handle_non_serializable
from sqlalchemy import Column, Integer, MetaData, Table, Text, func, insert, or_, select

from evalbudget import __version__
from evalbudget.book import ALONE, Told, told_in
from evalbudget.budget import Unit
from evalbudget.errors import InvalidInputError, JournalError, differences, reason
from evalbudget.run import file_of_own, unit_in
from evalbudget.secrets import without_known
from evalbudget.store import Address, Database, looked_into
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.run.kept import NO_CELL, Kept

FOLDER = "evalbudget-journals"
END = ".db"
RUN, RACE, AUDIT = "run", "race", "audit"
_TABLES = MetaData()
for _each in ALONE.tables.sorted_tables:
    _each.to_metadata(_TABLES)
_TEXTS, _NUMBERS = ("arm", "kind", "task", "what"), ("document", "epoch")
ANSWERS = Table(
    "answers",
    _TABLES,
    Column("number", Integer, primary_key=True),
    *(Column(name, Text, nullable=False) for name in _TEXTS),
    *(Column(name, Integer, nullable=False) for name in _NUMBERS),
)
FILE = replace(
    ALONE,
    kind="record",
    tables=_TABLES,
    application_id=0x6576626C,
    error=JournalError,
    remedy="move it away to begin anew",
)
_OWN = ("begun", "counted", "scoring", "finished")
"""Of the record as a whole, not of a model."""
_NAMED = ("begun", "asked")
"""What has names of tasks, which stay as they are; models and servers repeat secrets that they were given."""
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Numbers that no float holds, lists in place of objects, brackets without end."""
_FOREIGN = {
    RUN: "{path} is of another run ({shown}); continue with the recorded arguments, or choose another "
    "--journal",
    RACE: "{path} holds answers to other questions ({shown}); use the settings recorded, or begin anew with "
    "another --journal or --output_path",
    AUDIT: "{path} holds answers to other questions ({shown}); use the settings recorded, or begin "
    "another audit",
}


class Record:
    """The record of one run, race or audit; see the module. Use :meth:`open`.

    Attributes:
        db: that has it, and the book of a run.
        path: of the file; None where there is none.
        settings: that decide what a model answers.
        worker: what this process is called in the book of its run; the same when it goes on.
        counted: by what settings its answers count as scores; None before the first does.
        scoring: how its task scored the answers; None before the first was.
        finished: whether its last row says that it is over.
        finished_with: the budget in money or tokens that it was over with; None where scores were counted.
        seconds: that attempts took which came to their end.
        timed: readings that they brought.
    """

    def __init__(self, db: Database, path: Path | None) -> None:
        self.db, self.path = db, path
        self.settings: dict[str, Any] = {}
        self._kind = self.worker = ""
        self.counted: dict[str, Any] | None = None
        self.scoring: str | None = None
        self.finished = False
        self.finished_with: float | None = None
        self.seconds, self.timed = 0.0, 0
        self._kept: dict[str, Kept] = {}
        self._open = ExitStack()
        self._is_kept = True

    @classmethod
    def open(cls, where: Path | Database | None, kind: str, settings: Mapping[str, Any]) -> Record:
        """Begin or continue a record.

        Args:
            where: a path; or a database that is there, and has it among other things; None to keep it no
                longer than this process goes on.
            kind: ``run``, ``race`` or ``audit``.
            settings: whatever decides what a model answers.

        Raises:
            HeldError: another process writes it.
            JournalError: it cannot be read or written, is damaged, or of another kind or other settings.
        """
        here = as_recorded(settings)
        with ExitStack() as opened:
            if isinstance(where, Path):
                _make_folder_of(where)
                db = opened.enter_context(file_of_own(where, FILE))
            else:
                db = Database.in_memory(FILE, {"version": __version__}) if where is None else where
                opened.callback(db.close)
            record = cls(db, where if isinstance(where, Path) else None)
            record._is_kept = where is not None
            if isinstance(where, Database):
                with db.write() as connection:
                    ANSWERS.create(connection, checkfirst=True)
            record.read(kind)
            if not record.worker:
                record._append("begun", [kind, here, secrets.token_hex(8)])
            if shown := differences(record.settings, here):
                raise JournalError(_FOREIGN[kind].format(path=record.where, shown=shown))
            record._open = opened.pop_all()
        return record

    @property
    def where(self) -> str:
        """It is kept, for people."""
        return str(self.db.address)

    def of(self, arm: str = "") -> Kept:
        """What is recorded of one arm of a race, or of a run's only model."""
        name = arm.encode(errors="backslashreplace").decode()  # of a command's bytes
        if name not in self._kept:
            self._kept[name] = Kept(partial(self._write, name))
        return self._kept[name]

    def count_by(self, settings: dict[str, Any]) -> None:
        """Note how answers count as scores, before the first does."""
        if self.counted is None:
            self._append("counted", settings)

    def score_by(self, scoring: str) -> None:
        """Note how answers are scored, before the first is, or before all are scored again."""
        if self.scoring != scoring:
            self._append("scoring", scoring)

    def finish(self, amount: float | None = None, *, seconds: float = 0.0, readings: int = 0) -> None:
        """Note that it is over.

        Args:
            amount: of the budget, where that is money or tokens.
            seconds: that the last attempt took.
            readings: that it brought.
        """
        if not self.finished or amount != self.finished_with:
            self._append("finished", [amount, round(seconds, 3) if readings else 0.0, readings])

    def close(self) -> None:
        """Let it go."""
        self._open.close()

    def read(self, kind: str, *, all_of_it: bool = True) -> None:
        """Take in what earlier runs wrote.

        Args:
            kind: that it must be of.
            all_of_it: also what was bought, and not only what is known of the whole.

        Raises:
            JournalError: it is damaged, or of another kind.
        """
        query = select(ANSWERS).order_by(ANSWERS.c.number)
        if not all_of_it:
            last = select(func.max(ANSWERS.c.number)).scalar_subquery()
            query = query.where(or_(ANSWERS.c.kind.in_(_OWN), ANSWERS.c.number == last))
        for row in self.db.rows(query):
            try:
                asked = Asked(str(row.task), int(row.document), int(row.epoch))
                self._take(str(row.arm), row.kind, json.loads(row.what), asked)
            except _DAMAGE as ex:
                where = f"{self.where}, row {row.number} of {ANSWERS.name}"
                raise JournalError(f"{where} is damaged: {ex!r}{FILE.advice}") from ex
        if self._kind and self._kind != kind:
            said = f"{self.where} is the record of a {self._kind} on lm-eval, not of a {kind}"
            raise JournalError(said + FILE.advice)
        for kept in self._kept.values():
            kept.lose_judging()

    def _take(self, arm: str, kind: str, what: Any, asked: Asked = NO_CELL) -> None:
        self.finished = kind == "finished"
        match kind:
            case "begun":
                self._kind, self.settings, self.worker = str(what[0]), dict(what[1]), str(what[2])
            case "counted":
                self.counted = dict(what)
            case "scoring":
                self.scoring = str(what)
            case "finished":
                self.finished_with = what[0]
                self.seconds += float(what[1])
                self.timed += int(what[2])
            case _:
                self.of(arm).take(kind, what, asked)

    def _append(self, kind: str, what: Any) -> None:
        self._write("", kind, what)
        self._take("", kind, what)

    def _write(self, arm: str, kind: str, what: Any, asked: Asked = NO_CELL) -> None:
        told = what if kind in _NAMED else without_known(what)
        row: dict[str, object] = {"task": asked.task, "document": asked.doc_id, "epoch": asked.epoch}
        row |= {"arm": arm, "kind": kind, "what": json.dumps(told, default=_plain)}
        if self._is_kept:
            with self.db.write() as connection:
                connection.execute(insert(ANSWERS), row)
        self.finished = kind == "finished"


def look(path: Path) -> tuple[Record, Told, Unit]:
    """Into the record of a run, its book and its bill, which stay as they are; what was bought is left out.

    Nothing may stand in it yet: its process is about to begin, or was killed then.

    Raises:
        JournalError: it cannot be read, is damaged, or none of a run.
    """
    with looked_into(path, FILE) as db:
        record = Record(db, path)
        record.read(RUN, all_of_it=False)
        return record, told_in(db), unit_in(db) or Unit.SCORES


def as_recorded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """As a record has them."""
    recorded: dict[str, Any] = json.loads(json.dumps(settings, default=handle_non_serializable))
    return recorded


def _plain(value: Any) -> Any:
    return without_known(handle_non_serializable(value))


def _make_folder_of(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as ex:
        raise JournalError(f"{path.parent} cannot be made: {reason(ex)}") from ex


def path_named(journal: str, store: str | None = None) -> Path:
    """The file that somebody calls so.

    Raises:
        InvalidInputError: it is a folder, or the store that several processes share.
    """
    path = Path(journal)
    if path.name in ("", ".."):
        raise InvalidInputError(f"--journal {journal!r} names a folder; name a file in it")
    path = path if path.suffix else path.with_suffix(END)
    shared = None if store is None else Address.parse(store).path
    if shared is not None and shared.resolve() == path.resolve():
        raise InvalidInputError(f"--journal {path} is the --store, and each process has a journal of its own")
    return path


def digest_of(identity: Mapping[str, Any]) -> str:
    """A short hash of whatever must be the same for two records to be the same file."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:8]
