"""``evalbudget backtest judges``: which judge scores what?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalbudget.cli._output import publish
from evalbudget.cli._shared_options import TASK, typed_prices
from evalbudget.cli._sources import tell
from evalbudget.cli.backtest._shared import FILE, JSON, MODEL, SEEDS, WORKERS, listed, names_option, progress
from evalbudget.hooks._plugins import plugins

EXAMPLES = """\b
Examples:
  evalbudget backtest judges scores.npz
  evalbudget backtest judges scores.npz --rotation cyclic,random,single --budget 500
  evalbudget backtest judges scores.npz --rotation cyclic,priced --judge-prices a=1,b=5
"""


@click.command(epilog=EXAMPLES)
@FILE
@names_option(
    "--rotation", "rotations", "all,random,cyclic,priced,single", "Rotations of the judges to compare."
)
@names_option("--budget", "budgets", "1x", "Judge calls per model (500) or per item (2x).", "N|Nx,...")
@click.option(
    "--judge-prices", metavar="A=1,B=5,...", help="Price of one call of each judge.  [default: 1 each]"
)
@click.option("--rescale", is_flag=True, help="Map each judge's observed range to 0..1.")
@MODEL
@TASK
@SEEDS
@WORKERS
@JSON
def judges(
    path: Path,
    rotations: tuple[str, ...],
    budgets: tuple[str, ...],
    judge_prices: str | None,
    rescale: bool,
    model: str | None,
    task: str | None,
    seeds: int,
    json_path: Path | None,
    **where: Any,
) -> None:
    """Which rotation of judges comes closest to their common mean?

    The raters of FILE are the judges.
    """
    from evalbudget.backtest import backtest_rotation  # numpy and tables take their time: not for --help
    from evalbudget.judges.schedules import per_judge

    classes = [plugins().schedule(name) for name in listed(rotations)]
    recorded = plugins().open_scores(path, task)
    tell(recorded)
    prices = None
    if judge_prices is not None:
        prices = per_judge("--judge-prices", typed_prices(judge_prices) or None, recorded.raters).tolist()
    with progress() as report:
        result = backtest_rotation(
            recorded,
            classes,
            listed(budgets),
            seeds,
            model=model,
            prices=prices,
            rescale=rescale,
            progress=report,
            **where,
        )
    publish(result.to_json(), json_path, result.table())
