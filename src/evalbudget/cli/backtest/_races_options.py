"""``evalbudget backtest races``: which model is best?"""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from evalbudget.cli.flags import options_of
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.races.flags import BATCH, HISTORY, SCORE_RANGE
from evalbudget.sampler import Kind
from evalbudget.scale import parse_range

if TYPE_CHECKING:
    from evalbudget.backtest import RecordedScores
    from evalbudget.races.prediction import FactorModel

EXAMPLES = """\b
Examples:
  evalbudget backtest races models.npz
  evalbudget backtest races models.npz --sampler uniform,ucb-e,race --budget 5%,10%
  evalbudget backtest races models.csv --budget '$5'
  evalbudget backtest races models.npz --sampler race,lucb --until-proved
  evalbudget backtest races models.npz --sampler race,pulse --history earlier.npz
"""


@click.command(epilog=EXAMPLES)
@FILE
@names_option("--sampler", "samplers", "uniform,race", "Samplers to compare; evalbudget plugins lists them.")
@click.option(
    "--budget",
    "budgets",
    metavar="N|Nx|N%|$N,...",
    multiple=True,
    help="Evaluations in all (5000), per item (20x) or as a share of models x items (5%), or what they cost "
    "in all ($5), if the file says that.  [default: 5%,10%,20%; with --until-proved 100%]",
)
@click.option(
    "--until-proved",
    is_flag=True,
    help="Samplers that can go on until the best is proved do so; the others are as without it.",
)
@options_of((SCORE_RANGE, BATCH, HISTORY))
@TOP
@click.option("--no-intervals", is_flag=True, help="Leave intervals out, to save time.")
@RATER
@TASK
@SEEDS
@WORKERS
@JSON
def races(
    path: Path,
    samplers: tuple[str, ...],
    budgets: tuple[str, ...],
    until_proved: bool,
    score_range: str | None,
    history: str | None,
    no_intervals: bool,
    rater: str | None,
    task: str | None,
    json_path: Path | None,
    **settings: Any,
) -> None:
    """Who finds the best model of FILE, with how many evaluations?"""
    from evalbudget.backtest import backtest_race  # numpy and tables take their time: not for --help

    recorded = plugins().open_scores(path, task).select(rater=rater)
    tell(recorded)
    names = listed(samplers)
    bounds = None if score_range is None else parse_range(score_range)
    factors = None
    if history is not None:
        recorded, factors = _with_history(recorded, Path(history), rater, bounds)
    with progress() as report:
        result = backtest_race(
            recorded,
            names,
            listed(budgets) if budgets else ["100%"] if until_proved else ["5%", "10%", "20%"],
            rater=rater,
            score_range=bounds,
            history=factors,
            intervals=not no_intervals,
            sampler_options=_until_proved(names) if until_proved else {},
            progress=report,
            **settings,
        )
    publish(result.to_json(), json_path, result.table())


def _until_proved(samplers: list[str]) -> dict[str, dict[str, bool]]:
    """Options of those that take it; the others are there to compare with."""
    able = [
        name
        for name in dict.fromkeys(samplers)
        if "until_proved" in signature(plugins().sampler(name, Kind.MODELS)).parameters
    ]
    return {name: {"until_proved": True} for name in able}


def _with_history(
    recorded: RecordedScores, path: Path, rater: str | None, bounds: tuple[float, float] | None
) -> tuple[RecordedScores, FactorModel]:
    """The scores with the direction that they or earlier ones declare, and predictions in that direction.

    Raises:
        InvalidInputError: the two declare different directions, or there is nothing to learn from.
    """
    from evalbudget.backtest import factors_of, history_of
    from evalbudget.recorded._direction import is_lower_better, with_lower_better

    factors = factors_of(path, recorded.items)
    if factors is not None:
        return recorded, factors
    raters = recorded.raters if rater is None else (rater,)
    earlier = plugins().open_scores(path).select(rater=rater)
    try:
        lower = is_lower_better(recorded) or is_lower_better(earlier)
        if lower:
            recorded, earlier = with_lower_better(recorded), with_lower_better(earlier)
        factors = history_of(
            earlier,
            raters=raters,
            without=recorded.models,
            score_range=bounds or (0.0, 1.0),
            lower_is_better=lower,
        )
    except InvalidInputError as ex:
        raise InvalidInputError(f"--history {path}: {ex}") from None
    return with_lower_better(recorded) if lower else recorded, factors
