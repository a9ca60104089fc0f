"""Words and numbers of the summary: sentences that fit the terminal, names that stay whole or end in ..."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

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


def aligned(
    head: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    width: int,
    *,
    most: Callable[[str, int], str] = shortened,
) -> list[str]:
    """A table in lines: names on the left, numbers on the right of their columns.

    Args:
        head: of all columns.
        rows: names, and the cells beside them.
        width: of the terminal.
        most: shortens a name to the room that there is.
    """
    columns = zip(head[1:], *(cells for _, cells in rows), strict=True)
    widths = [max(map(len, column)) for column in columns]
    room = max(20, width - sum(widths) - 2 * len(widths))
    names = [head[0], *(most(name, room) for name, _ in rows)]
    first = max(map(cell_len, names))
    lines = []
    for name, cells in zip(names, [head[1:], *(cells for _, cells in rows)], strict=True):
        numbers = "  ".join(f"{text:>{w}}" for text, w in zip(cells, widths, strict=True))
        lines.append(f"{name}{' ' * (first - cell_len(name))}  {numbers}")
    return lines


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
