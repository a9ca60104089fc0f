"""What is another in the host for a while: attributes of its objects, and what all threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Any


@contextmanager
def patched(changes: Iterator[tuple[Any, Mapping[str, Any]]]) -> Iterator[None]:
    """Within this block objects have other attributes; afterwards their own again.

    Args:
        changes: objects, and their attributes by name; what is raised on the way undoes what was done.
    """
    before: list[tuple[dict[str, Any], dict[str, Any], Mapping[str, Any]]] = []
    try:
        for thing, values in changes:
            own = vars(thing)
            before.append((own, {name: own[name] for name in values if name in own}, values))
            own.update(values)
        yield
    finally:
        for own, old, values in reversed(before):
            for name in values:
                own.pop(name, None)
            own.update(old)


class WhileAnyone:
    """A change of what all threads share: made by the first that wants it, undone after the last.

    Args:
        change: makes it, and undoes it on leaving.
    """

    def __init__(self, change: Callable[[], AbstractContextManager[None]]) -> None:
        self._change = change
        self._lock = Lock()
        self._wanted = 0
        self._made = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._wanted:
                self._made.enter_context(self._change())
            self._wanted += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                self._made.close()
