"""A race's leaderboard for a terminal."""

from __future__ import annotations

from io import StringIO
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

from evalbudget.racing.leaderboard import Leaderboard, Standing, Status


def render(board: Leaderboard, *, width: int | None = None) -> str:
    """The leaderboard as text.

    Args:
        board: to show.
        width: of the terminal; None to ask it.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    decimals = _decimals(board)
    eliminated = any(s.eliminated_at is not None for s in board.standings)
    failed = any(s.failed for s in board.standings)
    columns: list[tuple[str, Literal["left", "right"]]] = [
        ("rank", "right"),
        ("model", "left"),
        ("score", "right"),
        (f"{board.level:.0%} interval", "left"),
        ("asked", "right"),
        *([("failed", "right")] if failed else []),  # type: ignore[list-item]
        ("status", "left"),
        *([("left at", "right")] if eliminated else []),  # type: ignore[list-item]
    ]
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name != "model")
    for standing in board.standings:
        table.add_row(
            "–" if standing.rank is None else str(standing.rank),
            standing.name,
            "–" if standing.estimate is None else f"{standing.estimate:.{decimals}f}",
            f"{standing.lower:.{decimals}f} to {standing.upper:.{decimals}f}",
            f"{standing.evaluations:,}",
            *([f"{standing.failed:,}" if standing.failed else ""] if failed else []),
            _status(standing),
            *(
                ["" if standing.eliminated_at is None else f"{standing.eliminated_at:,}"]
                if eliminated
                else []
            ),
        )
    out = StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False)
    console.print(table)
    return f"{out.getvalue().rstrip()}\n\n{board.sentence}\n{_cost(board)}\n" + "".join(
        f"{note}\n" for note in [*_why_lost(board), *board.notes]
    )


def _status(standing: Standing) -> str:
    return standing.status.value


def _decimals(board: Leaderboard) -> int:
    """Enough to tell scores on 0 to 1 apart; fewer on wider scales."""
    return 3 if max(abs(s.upper) for s in board.standings) < 10 else 2


def _cost(board: Leaderboard) -> str:
    share = board.spent / board.grid
    text = (
        f"{board.spent:,} of {board.grid:,} evaluations ({share:.1%} of {len(board.standings)} models x "
        f"{board.items:,} items)"
    )
    if board.spent < board.budget and board.grid > board.spent:
        text += f"; {board.budget - board.spent:,} of the budget of {board.budget:,} left"
    return f"{text}. {board.sampler}: {board.stop_reason}."


def _why_lost(board: Leaderboard) -> list[str]:
    lines = []
    for standing in board.standings:
        if standing.status is Status.LOST:
            errors = sorted(standing.errors.items(), key=lambda e: -e[1])
            why = ", ".join(f"{kind} ({count})" for kind, count in errors[:3])
            reason = standing.left or "it kept failing"
            lines.append(f"{standing.name} was lost: {reason}{': ' + why if why else ''}.")
    return lines
