"""Attributes of the host's objects that are others for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
