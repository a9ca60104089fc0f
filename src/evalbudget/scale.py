"""The smallest and the largest possible score, as users write them."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget.errors import InvalidInputError


def parse_range(text: str | Sequence[float]) -> tuple[float, float]:
    """Read ``1..10`` or ``1,10``.

    Raises:
        InvalidInputError: it is not two numbers, the smaller first.
    """
    parts = text.replace("..", ",").split(",") if isinstance(text, str) else list(text)
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
