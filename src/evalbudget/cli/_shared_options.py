"""What several commands that read recorded scores ask alike: the task, and the judges' prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evalbudget.statistics._bounds import FloatArray

TASK = click.option(
    "--task", metavar="NAME", help="Of several tasks in a folder of logs or a table, this one."
)


def panel_prices(text: str, judges: tuple[str, ...]) -> FloatArray:
    """``judge=price,...`` in the order of the panel; ones if empty.

    Raises:
        UnknownNameError: a judge that is not in the panel.
        InvalidInputError: something that is not a price, a judge twice or without a price.
    """
    from evalbudget.judges.schedules import per_judge

    return per_judge("--judge-prices", typed_prices(text) or None, judges)


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
