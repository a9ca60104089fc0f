"""What every backtest prints, writes and asks alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evalbudget.cli._output import json_option
from evalbudget.cli._shared_options import whole

FILE = click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
SEEDS = whole("--seeds", "Replays behind each row of the table.", default=20)
MODEL = click.option("--model", metavar="NAME", help="Only this model; all of them otherwise.")
RATER = click.option("--rater", metavar="NAME", help="Only this rater; all of them otherwise.")
TOP = click.option(
    "--top",
    metavar="E",
    type=float,
    default=0.01,
    show_default=True,
    help="Models within this share of the score range of the best count as top.",
)
WORKERS = whole("--workers", "Processes to use; chosen for you otherwise.")
JSON = json_option("result as JSON; - writes it to stdout instead of the table")


def names_option(
    flag: str, parameter: str, default: str, text: str, metavar: str = "NAME,..."
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that takes several values, by commas or by being given again."""
    return click.option(
        flag,
        parameter,
        metavar=metavar,
        multiple=True,
        default=(default,),
        help=f"{text}  [default: {default}]",
    )


def listed(values: tuple[str, ...]) -> list[str]:
    """Names separated by commas, of an option that may be given several times."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


@contextmanager
def progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while it is a terminal, and nothing in logs and pipes."""
    with Progress(
        TextColumn("replays"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("replays", total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report
