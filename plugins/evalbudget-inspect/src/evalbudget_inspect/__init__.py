"""evalbudget for inspect-ai: adaptive repeats, judges that take turns, and races, on unmodified tasks."""

from evalbudget.racing import Leaderboard
from evalbudget_inspect.judging import cyclic_judge, rotate
from evalbudget_inspect.racing.leaderboard import leaderboard
from evalbudget_inspect.racing.task import race
from evalbudget_inspect.task import budgeted

__all__ = ["Leaderboard", "budgeted", "cyclic_judge", "leaderboard", "race", "rotate"]
