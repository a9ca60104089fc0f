"""The leaderboard of a race, from its logs."""

from __future__ import annotations

from collections.abc import Iterable

from inspect_ai.log import EvalLog

from evalbudget.errors import InvalidInputError
from evalbudget.races import Leaderboard as Leaderboard
from evalbudget_inspect.host.scoring import METADATA


def leaderboard(logs: EvalLog | Iterable[EvalLog]) -> Leaderboard:
    """The leaderboard of a race, from the logs that ``eval`` or ``eval_set`` returned, or read again.

    Args:
        logs: of one race, header-only or whole; those of other tasks are left out.

    Raises:
        InvalidInputError: none of the logs is of a race, or they are of several.
    """
    found: dict[str, Leaderboard] = {}
    for log in [logs] if isinstance(logs, EvalLog) else logs:
        for score in log.results.scores if log.results else []:
            entry = (score.metadata or {}).get(METADATA) or {}
            if "race" in entry and "gate" not in entry:
                board = Leaderboard.from_json(entry["race"])
                known = found.get(str(entry.get("race_id")))
                if known is None or board.spent >= known.spent:
                    found[str(entry.get("race_id"))] = board
    if len(found) != 1:
        raise InvalidInputError(
            f"the logs hold {len(found)} races; give the logs of one race (their results say race_id)"
            if found
            else "none of these logs is of a race in which a model has a score"
        )
    return next(iter(found.values()))
