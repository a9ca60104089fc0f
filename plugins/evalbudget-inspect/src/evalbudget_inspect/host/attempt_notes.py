"""A file beside the logs for what no log keeps of a run's attempts once its samples run again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from threading import Lock

import anyio.to_thread
import fsspec  # type: ignore[import-untyped]

from evalbudget.errors import InvalidInputError

_lock = Lock()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a task.

    Attributes:
        folder: of its log; empty if it has none.
        task_id: the same for all attempts.
        eval_id: its own.
    """

    folder: str
    task_id: str
    eval_id: str


@dataclass(slots=True)
class Note:
    """What is known of the attempts at one task.

    Attributes:
        begun: by attempt, the samples that it had begun and did not finish.
        held: samples among these that were not asked anything, since the user had pressed Ctrl-C.
        sent_again: by attempt, what calls cost that the provider's client sent again, in samples.
        failed: by attempt, how often its samples failed that were to be tried again and are not in its log.
        lost: by sample, how often it was asked, where a later attempt could not use its answer.
        folders: in which attempts have their logs, where there is more than one.
        guessed: by attempt of which nobody knows which samples it had begun, how many they were at most.
        went_on_from: by attempt, the one whose log it was given.
        here: in a file, the folder that it was in when it was written.
    """

    begun: dict[str, list[str]] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)
    sent_again: dict[str, float] = field(default_factory=dict)
    failed: dict[str, dict[str, int]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    guessed: dict[str, int] = field(default_factory=dict)
    went_on_from: dict[str, str] = field(default_factory=dict)
    here: str = ""

    def at_most(self, tries: int) -> float:
        """What attempts may have paid for that is in no log, in samples.

        For samples that were cut off, for calls that were sent again, and for what failed and was to be tried
        again. Of a sample that is known by its name, its log or this note has how often it had failed.

        Args:
            tries: how often the host runs a sample at most.
        """
        begun = {sample for samples in self.begun.values() for sample in samples} - set(self.held)
        parked = (n for samples in self.failed.values() for n in samples.values())
        return len(begun) + tries * sum(self.guessed.values()) + sum(self.sent_again.values()) + sum(parked)

    def lost_beside(self, names: Collection[str]) -> int:
        """How often samples were asked whose answers cannot be used, except those of these names."""
        return sum(times for name, times in self.lost.items() if name not in names)

    def join(self, other: Note) -> None:
        """Know what another note knows."""
        self.begun |= other.begun
        self.held = sorted({*self.held, *other.held})
        self.sent_again |= other.sent_again
        self.failed |= other.failed
        self.lost |= other.lost
        self.folders = sorted({*self.folders, *other.folders})
        self.guessed |= other.guessed
        self.went_on_from |= other.went_on_from


def folder_of(location: str) -> str:
    """Of a log."""
    return location.rpartition("/")[0] or "."


def full_name(folder: str) -> str:
    """Of a folder, the same from wherever it is named."""
    system, path = fsspec.core.url_to_fs(folder)
    return str(system.unstrip_protocol(path)).rstrip("/")


def read_note(folder: str, task_id: str) -> Note:
    """An empty one where there is none.

    Raises:
        InvalidInputError: it is damaged.
    """
    path = _path(folder, task_id)
    try:
        with fsspec.open(path, "r") as file:
            note = Note(**json.load(file))
        return Note(
            {str(attempt): list(map(str, samples)) for attempt, samples in note.begun.items()},
            list(map(str, note.held)),
            {str(attempt): float(cost) for attempt, cost in note.sent_again.items()},
            {
                str(attempt): {str(uuid): int(n) for uuid, n in samples.items()}
                for attempt, samples in note.failed.items()
            },
            {str(sample): int(n) for sample, n in note.lost.items()},
            [_where(str(each), str(note.here), folder, task_id) for each in note.folders],
            {str(attempt): int(n) for attempt, n in note.guessed.items()},
            {str(attempt): str(before) for attempt, before in note.went_on_from.items()},
        )
    except FileNotFoundError:
        return Note()
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as ex:
        raise InvalidInputError(
            f"{path} is damaged ({ex}): it says what was under way at earlier kills. Restore it, or delete "
            "it, and what no log of the folder tells of is not counted as spent"
        ) from ex


def write_note(folder: str, task_id: str, note: Note) -> None:
    """In place of the one that is there."""
    system, path = fsspec.core.url_to_fs(_path(folder, task_id))
    with system.open(f"{path}.new", "w") as file:
        json.dump(asdict(note) | {"here": full_name(folder)}, file)
    system.mv(f"{path}.new", path)


async def add_to_note(
    attempt: Attempt,
    *,
    held: Collection[str] = (),
    sent_again: float = 0.0,
    failed: Mapping[str, int] | None = None,
) -> None:
    """Add to what is known of the attempt that runs, before anything follows from it.

    Args:
        attempt: that runs.
        held: samples that wait, and are not asked anything.
        sent_again: what calls cost, in samples.
        failed: how often samples failed so far that are in no log; 0: it is in the log now.
    """

    def add() -> None:
        with _lock:
            note = read_note(attempt.folder, attempt.task_id)
            note.held = sorted({*note.held, *held})
            if sent_again:
                note.sent_again[attempt.eval_id] = note.sent_again.get(attempt.eval_id, 0.0) + sent_again
            for uuid, times in (failed or {}).items():
                of_attempt = note.failed.setdefault(attempt.eval_id, {})
                of_attempt[uuid] = times
                if not times:
                    del of_attempt[uuid]
            write_note(attempt.folder, attempt.task_id, note)

    if attempt.folder:
        await anyio.to_thread.run_sync(add)


def _where(named: str, here: str, folder: str, task_id: str) -> str:
    """Where a folder is that a note names, which may have been moved together with the note's own.

    Args:
        named: in the note.
        here: where the note was when it was written.
        folder: where it is now.
        task_id: whose attempts are in both.
    """
    now = full_name(folder)
    (of_here, _, _), (of_named, _, name), (of_now, _, _) = (s.rpartition("/") for s in (here, named, now))
    if here in ("", now) or (named != here and of_named != of_here):
        return named
    for each in (named, now if named == here else f"{of_now}/{name}"):
        system, path = fsspec.core.url_to_fs(_path(each, task_id))
        if system.exists(path):
            return each
    return named


def _path(folder: str, task_id: str) -> str:
    return f"{folder}/.evalbudget-{task_id}.json"
