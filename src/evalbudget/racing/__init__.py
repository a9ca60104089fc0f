"""What every host's races share: the configuration, the bookkeeping, history, the leaderboard."""

from evalbudget.racing.config import DEFAULT_SAMPLER, RaceConfig, is_racer
from evalbudget.racing.history import history_factors
from evalbudget.racing.leaderboard import LEVEL, Leaderboard, Standing, leaderboard_of
from evalbudget.racing.progress import RaceProgress
from evalbudget.racing.race import Asked, Key, KnownCell, Lane, Race
from evalbudget.racing.verdict import Finding, Status

__all__ = [
    "DEFAULT_SAMPLER",
    "LEVEL",
    "Asked",
    "Finding",
    "Key",
    "KnownCell",
    "Lane",
    "Leaderboard",
    "Race",
    "RaceConfig",
    "RaceProgress",
    "Standing",
    "Status",
    "history_factors",
    "is_racer",
    "leaderboard_of",
]
