"""The leaderboard of a race, from its logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from inspect_ai.log import EvalLog
from pydantic import TypeAdapter

from evalbudget.errors import InvalidInputError
from evalbudget.races import Leaderboard as Leaderboard
from evalbudget_inspect.host.how_bought import entries_of

_BOARD = TypeAdapter(Leaderboard)


def leaderboard(logs: EvalLog | Iterable[EvalLog]) -> Leaderboard:
    """The leaderboard of a race, from the logs that ``eval`` or ``eval_set`` returned, or read again.

    Args:
        logs: of one race, header-only or whole; those of other tasks are left out.

    Raises:
        InvalidInputError: none of the logs is of a race, they are of several, or one is damaged.
    """
    found: dict[str, tuple[Leaderboard, EvalLog]] = {}
    for log in [logs] if isinstance(logs, EvalLog) else logs:
        for entry in entries_of(log):
            if "race" in entry and "gate" not in entry:
                with _damage_refused(log):
                    board = _BOARD.validate_python(entry["race"])
                known = found.get(str(entry.get("race_id")))
                if known is None or board.spent >= known[0].spent:
                    found[str(entry.get("race_id"))] = board, log
    if len(found) != 1:
        raise InvalidInputError(
            f"the logs hold {len(found)} races; give the logs of one race (their results say race_id)"
            if found
            else "none of these logs is of a race in which a model has a score"
        )
    ((board, log),) = found.values()
    with _damage_refused(log):
        board.table(width=80)  # whose numbers no float may hold
    return board


@contextmanager
def _damage_refused(log: EvalLog) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as ex:
        raise InvalidInputError(
            f"{log.location or log.eval.model} is damaged: what it says of its race cannot be "
            f"read ({' '.join(str(ex).split())[:200]}); leave it out"
        ) from ex
