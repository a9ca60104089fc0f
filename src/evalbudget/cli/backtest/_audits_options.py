"""``evalbudget backtest audits``: which answer should a human label?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalbudget.audits.flags import LABEL_PRICE, MARGIN, MAX_LABELS, SCORE_RANGE
from evalbudget.cli._output import publish
from evalbudget.cli._shared_options import TASK
from evalbudget.cli._sources import tell
from evalbudget.cli.backtest._shared import (
    FILE,
    JSON,
    RATER,
    SEEDS,
    TOP,
    WORKERS,
    listed,
    names_option,
    progress,
)
from evalbudget.cli.flags import option_of, options_of
from evalbudget.hooks._plugins import plugins
from evalbudget.scale import parse_range

EXAMPLES = """\b
Examples:
  evalbudget backtest audits labelled.npz --score-range 1..5
  evalbudget backtest audits labelled.npz --sampler audit-eprocess --label-price 50
  evalbudget backtest audits labelled.npz --sampler pp-lucb --allocator uniform,neyman
"""


@click.command(epilog=EXAMPLES)
@FILE
@names_option(
    "--sampler",
    "samplers",
    "audit-eprocess,pp-lucb,human-only",
    "Audit policies to compare; evalbudget plugins lists them.",
)
@names_option(
    "--allocator",
    "allocators",
    "uniform",
    "What pp-lucb labels more often: uniform, price-of-precision, uncertainty-weighted, neyman, oracle.",
)
@options_of((SCORE_RANGE,))
@click.option("--judge-range", metavar="LOW..HIGH", help="Range of the judge's scores, if it is another.")
@option_of(LABEL_PRICE, LABEL_PRICE.option, default=20.0)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability of a wrong verdict.",
)
@option_of(MARGIN, MARGIN.option, default=0.0)
@options_of((MAX_LABELS,))
@TOP
@RATER
@TASK
@SEEDS
@WORKERS
@JSON
def audits(
    path: Path,
    samplers: tuple[str, ...],
    allocators: tuple[str, ...],
    score_range: str | None,
    judge_range: str | None,
    label_price: float,
    max_labels: int | None,
    task: str | None,
    json_path: Path | None,
    **settings: Any,
) -> None:
    """Who finds the best system of FILE with a judge, and how few human labels?

    FILE needs human labels as its reference.
    """
    from evalbudget.backtest import backtest_audits  # numpy and tables take their time: not for --help

    recorded = plugins().open_scores(path, task)
    tell(recorded)
    names = listed(samplers)
    options: dict[str, dict[str, Any]] = {}
    if max_labels is not None:
        options = {name: {"max_labels": max_labels} for name in names}
    with progress() as report:
        result = backtest_audits(
            recorded,
            names,
            listed(allocators),
            score_range=None if score_range is None else parse_range(score_range),
            judge_range=None if judge_range is None else parse_range(judge_range),
            prices=(1.0, label_price),
            sampler_options=options,
            progress=report,
            **settings,
        )
    publish(result.to_json(), json_path, result.table())
