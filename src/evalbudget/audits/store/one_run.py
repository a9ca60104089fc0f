"""One run at a time draws for a store; two would ask and pay for the same answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalbudget.errors import AuditStoreError

if sys.platform != "win32":
    import fcntl


@contextmanager
def only_run(store: Path) -> Iterator[None]:
    """Keep other runs away from a store while this one goes on with it; labellers are not kept away.

    Held by a lock on a file beside the store, which ends with the process however that ends.

    Args:
        store: the file, which need not exist yet.

    Raises:
        AuditStoreError: another run is at it, or there is no such folder.
    """
    if not store.parent.is_dir():
        raise AuditStoreError(f"{store}: the folder {store.parent} does not exist; create it first")
    if sys.platform == "win32":
        yield
        return
    beside = store.with_name(f".{store.name}.run")
    held = _held(beside, store)
    try:
        yield
    finally:
        if held is not None:
            beside.unlink(missing_ok=True)
            os.close(held)


def _held(beside: Path, store: Path) -> int | None:
    """The locked file; None where there are no locks."""
    while True:
        try:
            file = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as ex:
            raise AuditStoreError(f"{beside} cannot be written: {ex.strerror}") from ex
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.pread(file, 20, 0).decode(errors="replace")
            os.close(file)
            raise AuditStoreError(
                f"another run (process {number or 'unknown'}) goes on with {store}; both would pay for the "
                "same answers. Let it end, then run the command again"
            ) from None
        except OSError:  # a file system without locks
            os.close(file)
            return None
        try:
            if os.path.samestat(os.fstat(file), beside.stat()):
                os.ftruncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)
                return file
        except FileNotFoundError:
            pass
        os.close(file)  # whoever held it has removed it meanwhile
