"""evalbudget for inspect-ai: adaptive repeats, judges that take turns, and races, on unmodified tasks."""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["Leaderboard", "budgeted", "cyclic_judge", "leaderboard", "race", "rotate"]

if TYPE_CHECKING:
    from evalbudget.races import Leaderboard
    from evalbudget_inspect.judges.cyclic_judge import cyclic_judge, rotate
    from evalbudget_inspect.races.leaderboard import leaderboard
    from evalbudget_inspect.races.task import race
    from evalbudget_inspect.repeats.task import budgeted
else:
    # evalbudget loads this package as a plugin for every command; the host takes seconds to import
    _HOME = {
        "Leaderboard": "evalbudget.races._leaderboard",
        "budgeted": "evalbudget_inspect.repeats.task",
        "cyclic_judge": "evalbudget_inspect.judges.cyclic_judge",
        "leaderboard": "evalbudget_inspect.races.leaderboard",
        "race": "evalbudget_inspect.races.task",
        "rotate": "evalbudget_inspect.judges.cyclic_judge",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
