"""A race's leaderboard for a terminal: the sentence, the table, and what it cost."""

from __future__ import annotations

import textwrap
from io import StringIO
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

from evalbudget.racing.leaderboard import Leaderboard, Standing
from evalbudget.racing.names import wrapped
from evalbudget.racing.summary import closing_lines, decimals_of

_WIDTH = 80
_GAP = 2  # columns between two columns
_SHORTEST_NAME = 12


def render(board: Leaderboard, *, width: int | None = None) -> str:
    """The leaderboard as text.

    Args:
        board: to show.
        width: of the terminal; None to ask it.
    """
    width = width or Console().width or _WIDTH
    lines = [board.sentence, *(f"{label + ':':9}{text}" for label, text in closing_lines(board))]
    paragraphs = [
        textwrap.fill(
            line, width, subsequent_indent=" " * 9 * bool(k), break_on_hyphens=False, break_long_words=False
        )
        for k, line in enumerate(lines)
    ]
    return f"{paragraphs[0]}\n\n{_table(board, width)}\n\n" + "\n".join(paragraphs[1:]) + "\n"


def _table(board: Leaderboard, width: int) -> str:
    decimals = decimals_of(board)
    dropped = any(s.dropped_at is not None for s in board.standings)
    failed = any(s.failed for s in board.standings)
    rows = [_cells(s, decimals, dropped=dropped, failed=failed) for s in board.standings]
    columns: list[tuple[str, Literal["left", "right"]]] = [
        ("estimate", "right"),
        ("all_lower to\nall_upper", "left"),
        ("asked", "right"),
    ]
    if failed:
        columns.append(("failed", "right"))
    columns.append(("status", "left"))
    if dropped:
        columns.append(("dropped\nat", "right"))
    taken = sum(
        _GAP + max(*(len(part) for part in head.split("\n")), *(len(row[k]) for row in rows))
        for k, (head, _) in enumerate(columns)
    )
    room = max(_SHORTEST_NAME, width - taken)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP, 0, 0), show_edge=False)
    table.add_column("model", no_wrap=True)
    for head, justify in columns:
        table.add_column(head, justify=justify, no_wrap=True)
    for standing, row in zip(board.standings, rows, strict=True):
        table.add_row(wrapped(standing.name, room), *row)
    out = StringIO()
    Console(file=out, width=max(width, taken + room) + _GAP, highlight=False, markup=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))


def _cells(standing: Standing, decimals: int, *, dropped: bool, failed: bool) -> list[str]:
    cells = [
        "–" if standing.estimate is None else f"{standing.estimate:.{decimals}f}",
        f"{standing.all_lower:.{decimals}f} to {standing.all_upper:.{decimals}f}",
        f"{standing.evaluations:,}",
    ]
    if failed:
        cells.append(f"{standing.failed:,}" if standing.failed else "")
    cells.append(standing.status.value)
    if dropped:
        cells.append("" if standing.dropped_at is None else f"{standing.dropped_at:,}")
    return cells
