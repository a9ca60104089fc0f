"""A race's leaderboard for a terminal: the sentence, the table, and what it cost."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.console import Console

from evalbudget.budget import Unit, shown_amount
from evalbudget.races._board import Board, Standing
from evalbudget.races._summary import closing_lines, decimals_of
from evalbudget.shown import shown

_WIDTH = 80
_GAP = "  "
_LEFT = ("all_lower to\nall_upper", "status")
_SHORTEST_NAME = 12


def render(board: Board, *, width: int | None = None) -> str:
    """The leaderboard as text.

    Args:
        board: to show.
        width: of the terminal; None to ask it.
    """
    width = width or Console().width or _WIDTH
    lines = [board.sentence, *(f"{label + ':':9}{text}" for label, text in closing_lines(board))]
    lines = [shown(line) for line in lines]
    paragraphs = [
        textwrap.fill(
            line, width, subsequent_indent=" " * 9 * bool(k), break_on_hyphens=False, break_long_words=False
        )
        for k, line in enumerate(lines)
    ]
    return f"{paragraphs[0]}\n\n{_table(board, width)}\n\n" + "\n".join(paragraphs[1:]) + "\n"


def _table(board: Board, width: int) -> str:
    decimals = decimals_of(board)
    dropped = any(s.dropped_at is not None for s in board.standings)
    failed = any(s.failed for s in board.standings)
    paid = any(s.paid is not None for s in board.standings)
    rows = [_cells(s, decimals, dropped=dropped, failed=failed) for s in board.standings]
    heads = ["estimate", "all_lower to\nall_upper", "asked", *(["failed"] if failed else []), "status"]
    heads += ["dropped\nat"] if dropped else []
    if paid:
        heads.append("paid")
        for row, standing in zip(rows, board.standings, strict=True):
            row.append(shown_amount(standing.paid or 0.0, Unit(board.unit)))
    split = [head.split("\n") for head in heads]
    sizes = [max(*map(len, head), *(len(row[k]) for row in rows)) for k, head in enumerate(split)]
    room = max(_SHORTEST_NAME, width - sum(sizes) - len(_GAP) * len(sizes))
    names = [wrapped(shown(standing.name), room).split("\n") for standing in board.standings]
    first = max(len(line) for lines in [["model"], *names] for line in lines)
    left = [head in _LEFT for head in heads]

    def line(name: str, cells: Sequence[str]) -> str:
        aligned = [
            c.ljust(n) if at_left else c.rjust(n) for c, n, at_left in zip(cells, sizes, left, strict=True)
        ]
        return _GAP.join([name.ljust(first), *aligned]).rstrip()

    lines = [
        line("", [head[0] if len(head) > 1 else "" for head in split]),
        line("model", [head[-1] for head in split]),
    ]
    lines.append("─" * max(first + sum(sizes) + len(_GAP) * len(sizes), *map(len, lines)))
    for name, row in zip(names, rows, strict=True):
        lines += [line(name[0], row), *name[1:]]
    return "\n".join(lines)


def _cells(standing: Standing, decimals: int, *, dropped: bool, failed: bool) -> list[str]:
    cells = [
        "–" if standing.estimate is None else f"{standing.estimate:.{decimals}f}",
        _range(standing, decimals),
        f"{standing.evaluations:,}",
    ]
    if failed:
        cells.append(f"{standing.failed:,}" if standing.failed else "")
    cells.append(standing.status.value)
    if dropped:
        cells.append("" if standing.dropped_at is None else f"{standing.dropped_at:,}")
    return cells


def _range(standing: Standing, decimals: int) -> str:
    """Where all items were read: no doubt about these scores, and some about another answer to each."""
    if standing.all_lower == standing.all_upper:
        return "as scored once"
    return f"{standing.all_lower:.{decimals}f} to {standing.all_upper:.{decimals}f}"


_PARTS = re.compile(r"[^/:,=_ -]*[/:,=_ -]?")


def wrapped(name: str, width: int) -> str:
    """The name in lines of at most ``width``, broken after a separator, or within a part that is longer."""
    lines = [""]
    for part in filter(None, _PARTS.findall(name)):
        if len(lines[-1]) + len(part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines if line)


def shortened(name: str, width: int) -> str:
    """The name on one line: its last parts, which tell models apart, after an ellipsis."""
    name = shown(name)
    if len(name) <= width:
        return name
    parts = [part for part in _PARTS.findall(name) if part]
    kept = ""
    for part in reversed(parts):
        if len(kept) + len(part) + 1 > width:
            break
        kept = part + kept
    return f"…{kept or name[-(width - 1) :]}"
