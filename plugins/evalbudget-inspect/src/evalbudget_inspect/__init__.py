"""evalbudget for inspect-ai: adaptive repeats, judges that take turns, and races, on unmodified tasks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalbudget.racing import Leaderboard
    from evalbudget_inspect.judging import cyclic_judge, rotate
    from evalbudget_inspect.racing.leaderboard import leaderboard
    from evalbudget_inspect.racing.task import race
    from evalbudget_inspect.task import budgeted

__all__ = ["Leaderboard", "budgeted", "cyclic_judge", "leaderboard", "race", "rotate"]

_HOME = {
    "Leaderboard": "evalbudget.racing",
    "budgeted": "evalbudget_inspect.task",
    "cyclic_judge": "evalbudget_inspect.judging",
    "leaderboard": "evalbudget_inspect.racing.leaderboard",
    "race": "evalbudget_inspect.racing.task",
    "rotate": "evalbudget_inspect.judging",
}


def __getattr__(name: str) -> Any:
    # the host takes seconds to import: not for every command of evalbudget, nor for another host's runs
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
