"""evalbudget for inspect-ai: adaptive repeats and races of models on unmodified tasks."""

from evalbudget_inspect.racing.leaderboard import Leaderboard, leaderboard
from evalbudget_inspect.racing.task import race
from evalbudget_inspect.task import budgeted

__all__ = ["Leaderboard", "budgeted", "leaderboard", "race"]
