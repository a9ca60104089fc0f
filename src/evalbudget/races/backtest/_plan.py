"""How many evaluations until the best model is proved, from a pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Annotated

from evalbudget._fields import Shown
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.races.backtest._compare_samplers import backtest_race
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._workers import Progress
from evalbudget.replay._worlds import WORLDS, median_and_most, worlds
from evalbudget.sampler import Kind

EVERYTHING = "every model, every item"


@dataclass(frozen=True, slots=True)
class RacePlan:
    """What a race needs.

    Attributes:
        sampler: its name, or every model asked every item.
        evaluations: median over benchmarks that fit the pilot.
        evaluations_most: the most in any of them.
        proved: share of them in which the best is proved before everything is asked.
        best: share of them in which the model named is the best.
    """

    sampler: Annotated[str, Shown("")]
    evaluations: Annotated[int, Shown("evaluations", ",")]
    evaluations_most: Annotated[int, Shown("at most", ",")]
    proved: Annotated[float, Shown("proved before the end", ".0%")]
    best: Annotated[float, Shown("named is best", ".0%")]


def plan_race(
    pilot: RecordedScores,
    samplers: Sequence[str] = ("race",),
    *,
    n_items: int | None = None,
    rater: str | None = None,
    score_range: tuple[float, float] | None = None,
    n_worlds: int = WORLDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[RacePlan, ...]:
    """Evaluations until the best of these models is proved, by replays of races in resampled pilots.

    Models are as far apart in a resampled pilot as they may be for all that the pilot says.

    Args:
        pilot: scores of two models or more.
        samplers: registered names of samplers that prove.
        n_items: of the evaluation planned; None for the pilot's.
        rater: whose scores decide; needed if there are several.
        score_range: the smallest and the largest possible score; None for 0 and 1.
        n_worlds: resampled pilots.
        seed: of these and of the races.
        progress: called with (resampled pilots done, in all).

    Returns:
        Every model asked every item, then the samplers in their order.

    Raises:
        InvalidInputError: a single model, several raters, a score outside the range, or a sampler that ends
            without a proof.
        InvalidInferenceError: too few items have a score of every model.
        UnknownNameError: no such sampler or rater.
    """
    chosen = pilot.select(rater=rater)
    n = len(chosen.items) if n_items is None else n_items
    proves = {}
    for name in samplers:
        takes = signature(plugins().sampler(name, Kind.MODELS)).parameters
        if "delta" not in takes:
            raise InvalidInputError(
                f"sampler {name!r} ends without a proof, and a race is planned until the best is proved; use "
                "race or lucb"
            )
        if "until_proved" in takes:
            proves[name] = {"until_proved": True}
    found: dict[str, list[tuple[float, bool]]] = {name: [] for name in samplers}
    for number, world in enumerate(worlds(chosen, n, n_worlds=n_worlds, seed=seed)):
        result = backtest_race(
            world,
            samplers,
            ["100%"],
            [seed],
            score_range=score_range,
            top=0.0,
            intervals=False,
            sampler_options=proves,
            workers=1,
        )
        for row in result.rows:
            found[row.sampler].append((row.evaluations, row.p_best == 1.0))
        if progress is not None:
            progress(number + 1, n_worlds)
    grid = len(chosen.models) * n
    plans = [RacePlan(EVERYTHING, grid, grid, 0.0, 1.0)]
    for name, own in found.items():
        counts = [evaluations for evaluations, _ in own]
        early = sum(count < grid for count in counts) / len(own)
        best = sum(right for _, right in own) / len(own)
        plans.append(RacePlan(name, *median_and_most(counts), early, best))
    return tuple(plans)
