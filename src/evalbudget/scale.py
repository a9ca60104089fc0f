"""The smallest and the largest possible score, as users write them."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget.errors import InvalidInputError

STEP = " by "
"""Before the distance of neighbouring scores."""


def parse_range(text: str | Sequence[float]) -> tuple[float, float]:
    """Read ``1..10``, ``1,10`` or two numbers: any score between them is possible.

    Which of them people may give is a matter of their labels (``1..10 by 1``), and of no interval.

    Raises:
        InvalidInputError: it is not two numbers, the smaller first.
    """
    parts = _bounds(text) if isinstance(text, str) else list(text)
    try:
        low, high = (float(part) for part in parts)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise InvalidInputError(
            f"score range {text!r} is not a range; write the smallest and the largest possible score, "
            "for example 1..10"
        )
    return low, high


def _bounds(text: str) -> list[str]:
    return text.partition(STEP)[0].replace("..", ",").split(",")
