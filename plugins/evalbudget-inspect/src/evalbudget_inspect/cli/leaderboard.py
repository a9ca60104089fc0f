"""``evalbudget inspect leaderboard``: the leaderboard of a race, from its logs."""

from __future__ import annotations

from pathlib import Path

import click

from evalbudget.cli import check_target, say
from evalbudget.cli.flags import options_of
from evalbudget.flags import JSON
from evalbudget.secrets import without_known


@click.command(name="leaderboard")
@click.argument("logs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@options_of((JSON,))
def leaderboard(logs: tuple[Path, ...], json_path: str | None) -> None:
    """Print the leaderboard of a race from its logs.

    LOGS are .eval files or folders of them.
    """
    if json_path is not None:
        check_target(Path(json_path))
    from evalbudget_inspect.races.command import write_boards
    from evalbudget_inspect.races.leaderboard import leaderboard
    from evalbudget_inspect.reading.logs import read_headers

    board = without_known(leaderboard(header for path in logs for header in read_headers(path)))
    if json_path != "-":
        say(board.table())
    if json_path is not None:
        write_boards(json_path, [board])
