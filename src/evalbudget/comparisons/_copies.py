"""Whether two logs that are compared look like one: then nothing is compared."""

from __future__ import annotations

from collections.abc import Sequence

_FEWEST = 5
"""Items on which chance makes two models equal too often to be told."""


def copy_notes(of: str, scores: Sequence[Sequence[float | None]]) -> list[str]:
    """A note where two have the same score on every item, which are not all alike; otherwise none.

    Args:
        of: the names of the two.
        scores: of both, by item; None or nan where one has none.
    """
    first = {a for a, _ in scores}
    if len(scores) < _FEWEST or len(first) < 2 or any(a is None or a != b for a, b in scores):
        return []
    return [
        f"{of} have the same score on each of {len(scores):,} items: if one log is a copy of the other, or "
        "both are of the same answers, nothing was compared."
    ]
