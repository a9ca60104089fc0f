"""Keeps a second process away from a file that one process writes."""

from __future__ import annotations

import errno
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from evalbudget.errors import HeldError, JournalError, reason
from evalbudget.secrets import mode_of_lock
from evalbudget.shown import shown_logger

log = shown_logger(__name__)

_NO_LOCKS = frozenset({errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What file systems without locks answer, such as some that are mounted over a network."""


def hold(path: Path, *, purpose: str = "", wait: bool = False) -> BaseFileLock | None:
    """Take the lock of a file; it ends with the process, however that ends, where the system has locks.

    The lock is a hidden file beside it, which stays there: removing it would let two processes in.

    Args:
        path: of the file, which need not exist yet; its folder must.
        purpose: others with the same are kept away, one word; empty to have the whole file.
        wait: until no other process holds it.

    Returns:
        The lock, to be released; None, with a warning in the log, on a file system without locks.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the lock file cannot be written.
    """
    if not path.parent.is_dir():  # it would be created
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path.parent))
    beside = path.with_name(f".{path.name}{'.' * bool(purpose)}{purpose}.lock")
    lock = FileLock(beside, blocking=wait, thread_local=False, **mode_of_lock(path.parent))
    try:
        lock.acquire()
    except Timeout:
        if not Path(lock.lock_file).exists():  # it could not be made, which is no sign of another process
            raise PermissionError(errno.EACCES, "Its folder takes no files", str(path.parent)) from None
        raise BlockingIOError(f"{path} is held by another process") from None
    except (NotImplementedError, OSError) as ex:
        if isinstance(ex, OSError) and ex.errno not in _NO_LOCKS:
            raise
        log.warning("%s cannot be locked (%s); make sure that only one process writes it", path, ex)
        return None
    return lock


def held(path: Path) -> BaseFileLock | None:
    """Take the lock of a file that one process at a time writes; see :func:`hold`.

    Raises:
        HeldError: another process holds it.
        JournalError: the lock file cannot be written.
    """
    try:
        return hold(path)
    except BlockingIOError:
        raise HeldError(f"{path} is being written by another process; wait for it to end") from None
    except OSError as ex:
        raise JournalError(f"{path} cannot be written: {reason(ex)}") from ex
