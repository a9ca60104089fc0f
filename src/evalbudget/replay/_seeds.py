"""Seeds as users give them."""

from __future__ import annotations

from collections.abc import Iterable

from evalbudget.errors import InvalidInputError

_MOST = 1_000_000


def checked_seeds(seeds: Iterable[int] | int) -> list[int]:
    """The seeds of all replays; InvalidInputError if there are none, or not of the kind."""
    if isinstance(seeds, int) and seeds < 1:
        raise InvalidInputError(f"seeds is {seeds}; give at least 1")
    if isinstance(seeds, int) and seeds > _MOST:
        raise InvalidInputError(f"seeds is {str(seeds)[:20]}...; give at most {_MOST:,}, one replay each")
    result = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not result:
        raise InvalidInputError("there are no seeds; give at least 1")
    if min(result) < 0 or len(set(result)) != len(result):
        raise InvalidInputError("seeds must be different integers of at least 0")
    return result
