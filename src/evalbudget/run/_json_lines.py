"""Files of JSON objects, one per line, appended and flushed as things happen.

A process that is killed leaves at most one line without its newline; that line is dropped on reading.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from filelock import BaseFileLock

from evalbudget.errors import JournalError, reason
from evalbudget.run._lock import held
from evalbudget.secrets import mode_in
from evalbudget.shown import shown_logger

log = shown_logger(__name__)
T = TypeVar("T")
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_REMEDY = ". Make room, or make it writable, then run the same command again: it goes on from what is in it"


class LinesFile:
    """A file of JSON lines that one process at a time appends to; a second one is refused.

    Lines survive the process being killed; what the system had not written when it lost power does not.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, stream: IO[bytes], lock: BaseFileLock | None) -> None:
        self.path = path
        self._stream = stream
        self._lock = lock

    @classmethod
    def create(cls, path: Path) -> Self:
        """Begin a file.

        Raises:
            JournalError: the file exists, or cannot be written.
        """
        if path.exists():
            raise JournalError(f"{path} exists; continue it, or choose another path")
        lock = held(path)
        try:
            return cls(path, open(path, "xb", opener=_private), lock)
        except OSError as ex:
            _release(lock)
            if isinstance(ex, FileExistsError):
                raise JournalError(f"{path} exists; continue it, or choose another path") from None
            raise JournalError(f"{path} cannot be written: {reason(ex)}") from ex

    @classmethod
    def open(cls, path: Path, read: Callable[[bytes, Path], tuple[T, int]]) -> tuple[Self, T]:
        """Continue a file; a last line that was cut off is removed from it.

        Args:
            path: of the file.
            read: makes of the content what is returned, and says how many bytes are whole lines.

        Raises:
            JournalError: the file cannot be read, or another process writes it.
        """
        try:
            stream = path.open("r+b")
        except OSError as ex:
            raise JournalError(f"{path} cannot be opened: {reason(ex)}") from ex
        lock = None
        try:
            lock = held(path)
            content, whole = read(stream.read(), path)
            stream.seek(whole)
            stream.truncate()
        except BaseException:
            stream.close()
            _release(lock)
            raise
        return cls(path, stream, lock), content

    def append(self, entry: dict[str, Any]) -> None:
        """Write one line; it is in the file when this returns.

        Args:
            entry: JSON object.

        Raises:
            JournalError: the file cannot be written.
        """
        line = _ENCODER.encode(entry).encode() + b"\n"
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError) as ex:  # ValueError: closed
            raise JournalError(f"{self.path} cannot be written: {ex}{_REMEDY}") from ex

    def close(self) -> None:
        """Let the file go.

        Raises:
            JournalError: what could not be written before cannot be written now either.
        """
        try:
            self._stream.close()
        except OSError as ex:
            raise JournalError(f"{self.path} cannot be written: {ex}{_REMEDY}") from ex
        finally:
            _release(self._lock)


def whole_lines(data: bytes, path: Path | str) -> tuple[list[bytes], int]:
    """The lines, and how many bytes they are; a last one that was cut off is dropped with a warning."""
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        log.warning("%s: dropped the last line, which was cut off: %r", path, data[whole : whole + 80])
    return data[:whole].split(b"\n")[:-1], whole


def read_line(line: bytes, place: str, convert: Callable[[dict[str, Any]], T]) -> T:
    """Convert one line.

    Raises:
        JournalError: it is damaged; names the place.
    """
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise TypeError("not a JSON object")
        return convert(entry)
    except JournalError as ex:
        raise JournalError(f"{place}: {ex}") from None
    except KeyError as ex:
        raise JournalError(f"{place} is damaged: no {ex}") from ex
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as ex:
        # numbers that no float holds, lists in place of objects, brackets without end
        raise JournalError(f"{place} is damaged: {ex}") from ex


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode_in(Path(path).parent))


def _release(lock: BaseFileLock | None) -> None:
    if lock is not None:
        lock.release()
