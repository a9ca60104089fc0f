"""``evalbudget backtest`` with samplers that race models."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from evalbudget.errors import InvalidInputError
from evalbudget.hooks.plugins import get_sampler, plugins
from evalbudget.sampler import Kind
from evalbudget.scale import parse_range

if TYPE_CHECKING:
    from evalbudget.backtest import RaceResult, RecordedScores
    from evalbudget.races.prediction import FactorModel


def race_on(
    recorded: RecordedScores,
    samplers: list[str],
    budgets: list[str],
    *,
    seeds: int,
    rater: str | None,
    score_range: str | None,
    batch: int | None,
    history: str | None,
    epsilon: float,
    until_proved: bool,
    intervals: bool,
    workers: int | None,
    progress: Callable[[int, int], None],
) -> RaceResult:
    """Race the models of a recording, with what a user typed."""
    from evalbudget.backtest import backtest_race  # numpy takes its time: not for --help

    bounds = None if score_range is None else parse_range(score_range)
    return backtest_race(
        recorded,
        samplers,
        budgets,
        seeds,
        rater=rater,
        score_range=bounds,
        batch=batch,
        history=None if history is None else _history(Path(history), recorded, rater, bounds),
        epsilon=epsilon,
        intervals=intervals,
        sampler_options=_until_proved(samplers) if until_proved else {},
        workers=workers,
        progress=progress,
    )


def _until_proved(samplers: list[str]) -> dict[str, dict[str, bool]]:
    """Options of those that take it; the others are there to compare with."""
    able = [
        name
        for name in dict.fromkeys(samplers)
        if "until_proved" in signature(get_sampler(name, Kind.MODELS)).parameters
    ]
    return {name: {"until_proved": True} for name in able}


def _history(
    path: Path, recorded: RecordedScores, rater: str | None, bounds: tuple[float, float] | None
) -> FactorModel:
    from evalbudget.backtest import factors_of, history_of

    factors = factors_of(path, recorded.items)
    if factors is not None:
        return factors
    raters = recorded.raters if rater is None else (rater,)
    earlier = plugins().open_scores(path)
    try:
        return history_of(earlier, raters=raters, without=recorded.models, score_range=bounds or (0.0, 1.0))
    except InvalidInputError as ex:
        raise InvalidInputError(f"--history {path}: {ex}") from None
