"""What both know: the names that inspect finds, and the race that asks it for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_ARMS = 64
"""Settings of one race by command: inspect knows a task by its name, so that each setting needs one."""
_PATHS = ("baseline", "history", "prices", "variances")


def entry_of_arm(number: int) -> str:
    """The registered name of a setting's task; numbers begin with 1."""
    return f"race_arm_{number}"


def whole_paths(given: Mapping[str, Any]) -> dict[str, Any]:
    """Our arguments with whole paths: inspect runs a task in the task's own folder.

    Raises:
        InvalidInputError: the store has an address that is none.
    """
    found = {name: str(Path(given[name]).resolve()) for name in _PATHS if given.get(name)}
    if given.get("store"):
        from evalbudget.store import Address  # it brings SQLAlchemy, which no other run needs

        found["store"] = str(Address.parse(given["store"]).resolved)
    return {**given, **found}
