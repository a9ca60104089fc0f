"""``evalbudget backtest repeats``: which item again?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from evalbudget.cli._output import publish, say
from evalbudget.cli._shared_options import TASK, whole
from evalbudget.cli._sources import tell
from evalbudget.cli.backtest._shared import (
    JSON,
    MODEL,
    RATER,
    SEEDS,
    WORKERS,
    listed,
    names_option,
    progress,
)
from evalbudget.hooks._plugins import plugins

if TYPE_CHECKING:
    from evalbudget.backtest import RecordedScores

EXAMPLES = """\b
Examples:
  evalbudget backtest repeats scores.npz
  evalbudget backtest repeats scores.csv --sampler uniform,auto --budget 10x,5000
  evalbudget backtest repeats trajectories.csv --budget '$100'
  evalbudget backtest repeats scores.npz --rater gpt-5 --json result.json
  evalbudget backtest repeats scores.npz --objective mean --json - | jq '.[].ratio'
"""


@click.command(epilog=EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@names_option("--sampler", "samplers", "uniform,auto", "Samplers to compare; evalbudget plugins lists them.")
@names_option(
    "--budget",
    "budgets",
    "10x,20x,50x",
    "Readings per pool (5000) or per item (20x), or what they cost per pool ($5).",
    "N|Nx|$N,...",
)
@click.option(
    "--objective",
    metavar="NAME",
    default="worst-item",
    show_default=True,
    help="Error to minimise: worst-item, mse or mean. The ratio to uniform is that of worst-item "
    "error, rmse or mean error.",
)
@whole("--min-repeats", "Drop items with fewer recorded repeats.", default=2)
@MODEL
@RATER
@TASK
@SEEDS
@WORKERS
@JSON
def repeats(
    files: tuple[Path, ...],
    samplers: tuple[str, ...],
    budgets: tuple[str, ...],
    model: str | None,
    rater: str | None,
    task: str | None,
    json_path: Path | None,
    **settings: Any,
) -> None:
    """Which sampler knows the items of FILE best, with how many readings?

    Each pair of a model and a rater is a pool of items of its own; results are means over pools and seeds.
    Readings (scores) are drawn from the recorded repeats, the same ones for every sampler. With a budget in
    money each has its recorded cost, and begins if what is left covers the dearest so far.
    """
    from evalbudget.backtest import backtest  # numpy and tables take their time: not for --help

    names = [plugins().sampler(name) for name in listed(samplers)]
    recordings = [plugins().open_scores(path, task) for path in files]
    for recorded in recordings:
        tell(recorded)
    with progress() as report:
        result = backtest(
            recordings,
            samplers=names,
            budgets=listed(budgets),
            model=model,
            rater=rater,
            progress=report,
            **settings,
        )
    publish(result.to_json(), json_path, result.table())
    if json_path != Path("-"):
        _show_items(files, recordings, model, rater)


def _show_items(
    paths: Sequence[Path], recordings: Sequence[RecordedScores], model: str | None, rater: str | None
) -> None:
    """How much items vary: a first look at whether adaptive repeats can pay."""
    from evalbudget.report import Items, Study

    for path, recorded in zip(paths, recordings, strict=True):
        found = Items.of(Study(recorded.select(model, rater)))
        if found is not None:
            if len(paths) > 1:
                say(f"{path}:")
            Console().print(found.table())
