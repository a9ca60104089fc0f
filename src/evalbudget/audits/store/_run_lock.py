"""One run at a time draws for a store; two would ask and pay for the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalbudget.errors import AuditStoreError
from evalbudget.run._lock import hold


@contextmanager
def only_run(store: Path) -> Iterator[None]:
    """Keep other runs away from a store while this one goes on with it; labellers are not kept away.

    Args:
        store: the file, which need not exist yet.

    Raises:
        AuditStoreError: another run is at it, or there is no such folder.
    """
    if not store.parent.is_dir():
        raise AuditStoreError(f"{store}: the folder {store.parent} does not exist; create it first")
    try:
        lock = hold(store)
    except BlockingIOError:
        raise AuditStoreError(
            f"another run goes on with {store}; both would pay for the same answers. Let it end, then run "
            "the command again"
        ) from None
    except OSError as ex:
        raise AuditStoreError(f"{store}: its folder cannot be written: {ex.strerror}") from ex
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
