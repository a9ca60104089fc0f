"""What ``--until`` says: a run may end before its budget is used up, once something is known well enough."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evalbudget.errors import InvalidInputError

_LEAST = 1e-100  # so that its square is a number
_FORM = re.compile(r"(?P<what>item)?\s*(?:(?:±|\+-|\+/-|:)\s*)?(?P<number>[0-9.eE+-]+)")


@dataclass(frozen=True, slots=True)
class Until:
    """A half-width to reach.

    Attributes:
        half_width: in the units of the scores, above 0.
        of_items: of every item's interval, rather than of the estimate's.
    """

    half_width: float
    of_items: bool

    def __str__(self) -> str:
        return f"{'item' if self.of_items else ''}±{self.half_width:g}"


def parse_until(text: str | float) -> Until:
    """Read ``±0.02`` (or ``+-0.02``, or ``0.02``) and ``item±0.5``.

    Raises:
        InvalidInputError: it is something else, or not above 0.
    """
    match = _FORM.fullmatch(str(text).strip())
    try:
        half_width = float(match["number"]) if match else math.nan
    except ValueError:
        half_width = math.nan
    if not (math.isfinite(half_width) and half_width > _LEAST):
        raise InvalidInputError(
            f"--until {text}: write a half-width above 0, ±0.02 for the estimate or item±0.5 for every item"
        )
    assert match is not None
    return Until(half_width, match["what"] is not None)
