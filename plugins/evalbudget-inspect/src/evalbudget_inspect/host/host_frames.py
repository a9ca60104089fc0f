"""What the host knows and does not hand over: looked up in the frames that are waiting for us."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TypeVar

_T = TypeVar("_T")


def held_by_caller(kind: type[_T]) -> _T | None:
    """The nearest local variable of this type among those awaiting this call; None if there is none.

    The host tells its task-start hook neither the dataset nor, when it scores a log, the scorer which log:
    both stand in its own frames. Whoever asks must know what to do without.
    """
    others: set[type] = set()  # to ask whether something follows a protocol takes long
    for variables in _variables(sys._getframe(1)):
        for value in variables.values():
            if type(value) not in others and isinstance(value, kind):
                return value
            others.add(type(value))
    return None


def held_as(name: str, kind: type[_T]) -> _T | None:
    """As :func:`held_by_caller`, of the variable of this name."""
    for variables in _variables(sys._getframe(1)):
        value = variables.get(name)
        if isinstance(value, kind):
            return value
    return None


def all_held_by_caller(kind: type[_T]) -> list[_T]:
    """As :func:`held_by_caller`, of all such variables and members of lists."""
    found: list[_T] = []
    for variables in _variables(sys._getframe(1)):
        for value in list(variables.values()):
            members = value if isinstance(value, list) else (value,)
            found += [member for member in members if isinstance(member, kind)]
    return found


def _variables(frame: FrameType | None) -> Iterator[Mapping[str, object]]:
    while frame is not None:
        yield frame.f_locals
        frame = frame.f_back
