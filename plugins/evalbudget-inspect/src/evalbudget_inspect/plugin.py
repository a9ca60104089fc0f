"""evalbudget's hooks: the ``evalbudget inspect`` command and the reader of ``.eval`` logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalbudget import hookimpl

if TYPE_CHECKING:
    import click

    from evalbudget.backtest import RecordedScores


@hookimpl
def evalbudget_add_commands(cli: click.Group) -> None:
    """``evalbudget inspect ...`` and ``evalbudget demo``."""
    from evalbudget.cli import LazyCommand

    cli.add_command(LazyCommand("inspect", _inspect, "Run inspect-ai with a sampler deciding what is asked."))
    cli.add_command(LazyCommand("demo", _demo, "A budgeted run against plain epochs, offline, in a minute."))


def _inspect() -> click.Command:
    from evalbudget_inspect.cli import inspect_command

    return inspect_command


def _demo() -> click.Command:
    from evalbudget_inspect.demo.command import demo

    return demo


@hookimpl
def evalbudget_open_scores(path: Path, task: str | None, category: str | None) -> RecordedScores | None:
    """An inspect log, or a folder of them."""
    from evalbudget_inspect.reading.files import logs_in

    if next(logs_in(path), None) is None:
        return None  # before the host is imported, which takes seconds

    from evalbudget_inspect.reading.open_logs import open_scores

    return open_scores(path, task=task, category=category)
