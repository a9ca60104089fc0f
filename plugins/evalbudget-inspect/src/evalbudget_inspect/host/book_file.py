"""The file that has the book of a run, beside its logs: all attempts at its tasks go on with what is in it.

An attempt whose log is in another folder than that of the log it goes on from, and a task that races others,
have a file there that says where the book is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fsspec  # type: ignore[import-untyped]

from evalbudget.errors import InvalidInputError, JournalError, StoreError, reason
from evalbudget.run import UNANSWERED, file_of_own
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.current_run import Run, at_the_end

if TYPE_CHECKING:
    from evalbudget.store import Database

logger = shown_logger(__name__)

BILL = ".bill"
"""How the name of a file ends that has the bill of a run in money or tokens."""
_BOOK, _PLACE, _NAME = ".book", ".place", ".evalbudget-"
KNOWN = "answers of earlier attempts"
"""Why something was paid before a run goes on from its log, which says for what."""
_NOT_YET = -1
"""In the place of how many calls a book may lack, until its attempt has looked at what logs have."""
_STATE = "XDG_STATE_HOME"
"""Where users say what folder has what programs keep on one machine."""


class BookFile:
    """One that is open, which no other process can have open.

    Args:
        path: of it.
        db: it.
        lacks: as below.
        lacked: as many calls may not be in it as earlier attempts said; None if none did.
        opened: to be let go with it.

    Attributes:
        path: of it.
        db: it.
        lacks: what earlier attempts paid may not all be in it.
        ends: called before it is let go.
    """

    def __init__(self, path: Path, db: Database, lacks: bool, lacked: int | None, opened: ExitStack) -> None:
        self.path, self.db, self.lacks = path, db, lacks
        self.ends: Callable[[], None] = lambda: None
        self._lacked, self._opened = lacked, opened

    def let_go(self) -> None:
        """The attempt is over; more than once does nothing."""
        from evalbudget.book import end_well

        if _open.get(self.path) is self:
            del _open[self.path]
            with self._opened:
                self.ends()
                end_well(self.db)

    def lacking(self, lacks: bool, at_most: int) -> str:
        """What to say each time an attempt goes on; empty if all that was paid counts.

        Args:
            lacks: neither the book nor a log had all that the attempts before this one paid.
            at_most: so many calls were under way when the last one was killed.
        """
        from evalbudget.book import keep_lacking

        if lacks:
            self._lacked = (self._lacked or 0) + at_most
        keep_lacking(self.db, self._lacked)
        return "" if self._lacked is None else self._said(self._lacked)

    def _said(self, at_most: int) -> str:
        calls = "1 call" if at_most == 1 else f"{at_most:,} calls"
        uncounted = (
            f"what was under way at the kill ({calls} at most), and not written by then, may not count"
            if at_most
            else "what no log tells of, such as tries that failed, may not count"
        )
        return (
            f"the book of what earlier attempts paid ({self.path}) was missing, or without what stood beside "
            f"it ({self.path.name}-wal), or older than the log. What logs have counts as spent; {uncounted}"
        )


_open: dict[Path, BookFile] = {}
"""Those of this process."""


def open_book(runs: Sequence[Run]) -> BookFile | None:
    """Open the book of a run, or of runs that race: begun anew, with what earlier attempts paid.

    Args:
        runs: that are about to make their first call.

    Returns:
        The file, which is let go at the end of the run; None where there are no logs.

    Raises:
        InvalidInputError: the folder that has it is gone.
        JournalError: it is damaged, cannot be written, or another process writes it.
    """
    if not all(run.log_location for run in runs):
        return None
    paths = [book_path(folders_of(run), run.spec.task_id) for run in runs]
    there = [path for path in dict.fromkeys(paths) if path.exists()]
    path = _to_be_written(there[0], runs[0]) if there else paths[0]
    lacks = not there and any(run.goes_on_from is not None for run in runs)
    for run in runs:
        say_where(path, folders_of(run)[0], run.spec.task_id)
    file = _opened(path, [other for other in there if other != path], lacks=lacks)
    at_the_end(file.let_go)
    return file


def _to_be_written(path: Path, run: Run) -> Path:
    """A book; one beside the run's own log where that cannot be written."""
    own = _beside(folders_of(run)[0], run.spec.task_id, _BOOK)
    if path == own or (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)):
        return path
    logger.warning(
        f"{path} cannot be written, so what this attempt pays stands in {own}, after what earlier ones paid. "
        "A run that goes on from their log once more does not know of it: go on from the log of this one only"
    )
    return own


def folders_of(run: Run) -> list[str]:
    """That of a run's log, and that of the log it goes on from."""
    log = run.goes_on_from
    own = [folder_of(at) for at in (run.log_location, "" if log is None else log.location) if at]
    return list(dict.fromkeys(own))


def folder_of(location: str) -> str:
    """Of a log."""
    return location.rpartition("/")[0] or "."


def is_here(folder: str) -> bool:
    """Whether a folder of logs is one of this machine."""
    system, _ = fsspec.core.url_to_fs(folder)
    return "file" in (system.protocol if isinstance(system.protocol, tuple) else (system.protocol,))


def book_path(folders: Sequence[str], task_id: str) -> Path:
    """Of the book of a task, whether it is there or not.

    Args:
        folders: of logs of its attempts, the latest first.
        task_id: the same for all attempts.

    Raises:
        InvalidInputError: the folder that has it is gone.
    """
    for folder in folders:
        own, place = (_beside(folder, task_id, kind) for kind in (_BOOK, _PLACE))
        if place.exists():
            return _named_in(place)
        if own.exists() or own.with_suffix(BILL).exists():
            return own
    return _beside(folders[0], task_id, _BOOK)


def say_where(path: Path, folder: str, task_id: str) -> None:
    """Have whoever goes on from a log in this folder find the book."""
    if not is_here(folder):
        logger.warning(
            f"the logs are in {folder}, which is no folder of this machine; what is paid stands in {path}, "
            "and a run that goes on finds it on this machine only"
        )
    place = _beside(folder, task_id, _PLACE)
    book = path.with_suffix(_BOOK)
    if book == _beside(folder, task_id, _BOOK):
        place.unlink(missing_ok=True)
        return
    here = place.parent.absolute()
    named = book.name if book.parent == place.parent else f"{book.absolute()}\n{os.path.relpath(book, here)}"
    try:
        if not place.exists() or place.read_text(encoding="utf-8") != named:
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh = place.with_name(f"{place.name}.new")
            fresh.write_text(named, encoding="utf-8")
            fresh.replace(place)
    except OSError as ex:
        raise JournalError(f"{place} cannot be written: {reason(ex)}") from ex


def spent_by(folders: Sequence[str], task_id: str) -> float | None:
    """What the attempts at a task have spent, in scores; None if there is no book of theirs.

    Raises:
        InvalidInputError: the folder that has it is gone.
        StoreError: it is damaged.
    """
    path = book_path(folders, task_id)
    return sum(_looked_into(path).paid.values()) if path.exists() else None


def _beside(folder: str, task_id: str, kind: str) -> Path:
    name = f"{_NAME}{task_id}{kind}"
    system, path = fsspec.core.url_to_fs(folder)
    if is_here(folder):
        return Path(path) / name
    full = str(system.unstrip_protocol(path)).rstrip("/")
    state = Path(os.environ.get(_STATE) or Path.home() / ".local" / "state")
    return state / "evalbudget" / hashlib.sha256(full.encode()).hexdigest()[:16] / name


def _named_in(place: Path) -> Path:
    """Where a book is: there, or as it lies from here, since folders may have been moved together."""
    try:
        lines = place.read_text(encoding="utf-8").split("\n")
        named = [Path(os.path.normpath(place.parent / line)) for line in lines]
        for path in named:
            if not path.name.startswith(_NAME) or path.suffix != _BOOK:
                raise ValueError(f"{path.name[:40]!r} is no name of a book")
    except (OSError, ValueError) as ex:
        raise InvalidInputError(
            f"{place} is damaged ({ex}): it says where the book of a run is. Restore it, or delete it, and "
            "what no log tells of is not counted as spent"
        ) from ex
    there = [path for path in named if path.exists() or path.with_suffix(BILL).exists()]
    there += [path for path in named if path.parent.is_dir()]
    if not there:
        raise InvalidInputError(
            f"an attempt at this run has its book in {named[0].parent}, which is gone, and what it spent is "
            "unknown. Put that folder back; or make an empty one there, and what no log tells of is not "
            "counted as spent"
        )
    return there[0]


def _opened(path: Path, others: Sequence[Path], *, lacks: bool) -> BookFile:
    # it brings SQLAlchemy, and hosts start without
    from evalbudget.book import BESIDE_LOGS, begin_anew

    before = _open.get(path)
    if before is not None:  # of a task that the host tries again within one run
        before.let_go()
    with ExitStack() as opened:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            has_latest = _has_latest(path)
            db = opened.enter_context(file_of_own(path, BESIDE_LOGS))
            # only now: until then another attempt may have paid
            looks = [_look(db, has_latest), *map(_looked_into, filter(Path.exists, others))]
            lacks = lacks or not all(look.is_whole for look in looks)
            lacked = max((look.lacked for look in looks if look.lacked is not None), default=None)
            paid: dict[str, float] = {}
            for why, cost in chain.from_iterable(each.items() for each, *_ in looks):
                paid[why] = paid.get(why, 0.0) + cost
            begin_anew(db, paid, _NOT_YET if lacks else lacked)
        except StoreError as ex:
            raise JournalError(
                f"{ex}. It is the book of this run, which has what earlier attempts paid: restore it; or "
                "move it away, and what no log tells of is not counted as spent"
            ) from ex
        _open[path] = file = BookFile(path, db, lacks, lacked, opened.pop_all())
    return file


class _Look(NamedTuple):
    """What was paid by a book, whether all that was written is there, and how many calls it may lack."""

    paid: dict[str, float]
    is_whole: bool
    lacked: int | None


def _looked_into(path: Path) -> _Look:
    from evalbudget.book import BESIDE_LOGS
    from evalbudget.store import looked_into

    has_latest = _has_latest(path)
    with looked_into(path, BESIDE_LOGS) as db:
        return _look(db, has_latest)


def _has_latest(path: Path) -> bool:
    """Whether what a killed attempt wrote last is beside its book."""
    whole = path.resolve()
    return whole.with_name(f"{whole.name}-wal").exists()


def _look(db: Database, has_latest: bool) -> _Look:
    from evalbudget.book import lacking_in, paid_in, was_killed

    paid, lacked = paid_in(db, came=KNOWN, begun=UNANSWERED), lacking_in(db)
    is_whole = (has_latest or not was_killed(db)) and lacked != _NOT_YET
    return _Look(paid, is_whole, None if lacked == _NOT_YET else lacked)
