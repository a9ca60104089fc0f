"""Words and numbers of the summary: sentences that fit the terminal, names that stay whole or end in ..."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from statistics import median

from rich.cells import cell_len, set_cell_size

from evalbudget.shown import shown

WIDTH = 80
_ELLIPSIS = "…"


def shortened(name: str, room: int) -> str:
    """A name on one line; cut at its end, with an ellipsis, where it does not fit.

    Args:
        name: may hold anything.
        room: columns of the terminal.
    """
    plain = shown(name)
    if cell_len(plain) <= room:
        return plain
    return set_cell_size(plain, room - 1).rstrip() + _ELLIPSIS


def padded(text: str, room: int) -> str:
    """Text filled up with spaces to so many columns of the terminal."""
    return text + " " * max(0, room - cell_len(text))


def wrapped(text: str, width: int, *, first: str = "", rest: str | None = None) -> list[str]:
    """Text in lines of at most ``width``, broken between words only.

    Args:
        text: of one paragraph.
        width: of the terminal.
        first: what its first line begins with.
        rest: what the others begin with; None for as many spaces.
    """
    return textwrap.wrap(
        shown(text),
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def count(number: int, what: str) -> str:
    """``1 item``, ``2,000 items``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def decimals(errors: Iterable[float]) -> int:
    """Decimals that show two digits of the median of these errors; three where there is none."""
    known = [error for error in errors if math.isfinite(error) and error > 0.0]
    if not known:
        return 3
    return max(0, min(6, 1 - math.floor(math.log10(median(known)))))
