"""What several commands that read recorded scores ask alike: the task, and the judges' prices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

TASK = click.option(
    "--task", metavar="NAME", help="Of several tasks in a folder of logs or a table, this one."
)
PATHS = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
MODELS = click.option(
    "--model", "models", metavar="NAME", multiple=True, help="Only this model; may be repeated."
)


def store_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument ``STORE``, where an audit is kept; the command gets it as ``where``."""
    return click.argument("where", metavar="STORE")(command)


def level_option(what: str) -> _Decorator:
    """``--level``, with what it is of."""
    return click.option("--level", type=float, default=0.95, show_default=True, help=what)


def whole(
    flag: str, what: str, *, default: int | None = None, least: int = 1, metavar: str = "N"
) -> _Decorator:
    """An option that is a whole number."""
    kind = click.IntRange(min=least)
    shown = default is not None
    return click.option(flag, type=kind, metavar=metavar, default=default, show_default=shown, help=what)


def typed_prices(text: str) -> dict[str, float]:
    """``judge=price,...`` by judge; empty if nothing is given.

    Raises:
        InvalidInputError: something that is not a price, or a judge twice.
    """
    from evalbudget.judges.schedules import parse_prices

    return parse_prices(
        filter(None, (part.strip() for part in text.split(","))),
        wrong="--judge-prices has {entry!r}; write JUDGE=PRICE, separated by commas, for example gpt=0.004",
        twice="--judge-prices has judge {judge!r} twice; give each once",
    )
