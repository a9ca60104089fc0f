"""backtest_race(): who finds the best of several models with how few evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.estimate import check_level
from evalbudget.races.backtest._replay import Grid, RaceOutcome, race_replay
from evalbudget.races.backtest._result_table import RaceResult, RaceRow
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._contestant import Contestant, checked_seeds, contestants
from evalbudget.replay._money import mean_costs, refuse_tokens
from evalbudget.replay._workers import Job, Progress, run_all
from evalbudget.sampler import Kind, Sampler
from evalbudget.statistics._means import mean_of_known


def backtest_race(
    recorded: RecordedScores,
    samplers: Sequence[str | type[Sampler]] = ("uniform", "race"),
    budgets: Sequence[str | int | Budget] = ("5%", "10%", "20%"),
    seeds: Iterable[int] | int = 20,
    *,
    rater: str | None = None,
    score_range: tuple[float, float] | None = None,
    batch: int | None = None,
    history: FactorModel | None = None,
    top: float = 0.01,
    level: float = 0.95,
    intervals: bool = True,
    sampler_options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    workers: int | None = None,
    progress: Progress | None = None,
) -> RaceResult:
    """Race the recorded models under several samplers and budgets.

    Every cell (model and item) is answered at most once, by one of its recorded repeats, the same one under
    every sampler; a cell without any fails and costs. A model's true score is the mean of its answers.

    Args:
        recorded: of two or more models.
        samplers: names or classes of racing samplers. A constructor with a parameter ``budget`` (it plans
            with it), ``batch``, ``predictor`` or ``score_range`` is given these.
        budgets: evaluations in all, as a number (5000), a share of models x items (``5%``) or per item
            (``2x``); or what they may cost (``$5``): then every score needs a recorded cost, an evaluation
            begins if what is left covers the dearest so far, samplers weigh costs, and those that plan with a
            number of evaluations plan for all of them.
        seeds: one replay each; a number n is the seeds 0 to n - 1.
        rater: whose scores to go by; needed if there are several.
        score_range: the smallest and the largest possible score; None for 0 and 1.
        batch: items per decision, for samplers that take it; None for their own.
        history: learned from earlier models; matched by item id, and ignored if it knows too few of them.
        top: how far below the best still counts as the top, as a share of the score range.
        level: of the intervals, for all models together.
        intervals: whether to compute them; they take longer than the races.
        sampler_options: further arguments by sampler, for example ``{"ucb-e": {"a": 0.25}}``.
        workers: processes; 1 for this one. None for one per processor, or this one if the work is small.
        progress: called with (replays finished, replays in all).

    Returns:
        The rows, with a table and JSON.

    Raises:
        UnknownNameError: no such sampler, or rater; suggests the nearest.
        BudgetError: a budget below a sampler's first readings (the message has the least one), in tokens, or
            in money while costs are not recorded.
        InvalidInputError: one model only, several raters, scores outside the range, an option the sampler
            does not have, or an argument out of range.
        EvalbudgetError: a worker died.
    """
    check_level(level)
    if not 0.0 <= top <= 1.0:
        raise InvalidInputError(f"top is {top:g}; it is a share of the score range, in 0 to 1")
    if batch is not None and batch < 1:
        raise InvalidInputError(f"batch is {batch}; it must be 1 or more")
    names = (samplers,) if isinstance(samplers, str) else samplers
    entrants = contestants(names, sampler_options, Kind.MODELS)
    seed_list = checked_seeds(seeds)
    grid = Grid.of(recorded.select(rater=rater), score_range)
    match = None if history is None else match_items(history, grid.items)
    stage = _Stage(
        grid,
        entrants,
        batch,
        None if match is None else match.model,
        top * (grid.bounds[1] - grid.bounds[0]),
        level,
        intervals,
    )
    texts = [budgets] if isinstance(budgets, str | int | Budget) else list(budgets)
    amounts = [_amount(text, grid) for text in texts]
    for contestant in entrants:
        stage.check(contestant, amounts)
    counted = [int(amount.amount) for amount in amounts if amount.unit is Unit.SCORES]
    money = sorted({amount.amount for amount in amounts if amount.unit is Unit.USD})
    jobs = [
        Job(0, c, seed, budgets=group, usd=usd)
        for c, contestant in enumerate(entrants)
        for seed in seed_list
        for group, usd in (
            *((group, None) for group in contestant.groups(counted) if group),
            *(((grid.n_cells,), usd) for usd in money),
        )
    ]
    outcomes: dict[tuple[int, int, Budget], RaceOutcome] = {}
    for job, result in zip(jobs, run_all(stage, jobs, workers=workers, progress=progress), strict=True):
        served = [Budget(n) for n in job.budgets] if job.usd is None else [Budget(job.usd, Unit.USD)]
        for amount, outcome in zip(served, result, strict=True):
            outcomes[job.contestant, job.seed, amount] = outcome
            if outcome.unasked:
                raise BudgetError(_too_little(entrants[job.contestant], amount, grid))
    rows = [
        _row(contestant.name, [outcomes[c, seed, amount] for seed in seed_list], amount, text, stage)
        for text, amount in zip(texts, amounts, strict=True)
        for c, contestant in enumerate(entrants)
    ]
    reason = "" if match is None else match.reason
    return RaceResult(tuple(rows), len(grid.models), len(grid.items), grid.n_missing, reason)


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """What all jobs share."""

    grid: Grid
    contestants: tuple[Contestant, ...]
    batch: int | None
    predictor: FactorModel | None
    top: float
    level: float
    intervals: bool

    def run(self, job: Job) -> tuple[RaceOutcome, ...]:
        return race_replay(
            self.grid,
            self.contestants[job.contestant],
            seed=job.seed,
            budgets=job.budgets,
            batch=self.batch,
            predictor=self.predictor,
            top=self.top,
            level=self.level,
            intervals=self.intervals,
            usd=job.usd,
        )

    def check(self, contestant: Contestant, amounts: Sequence[Budget]) -> None:
        """Build every sampler once, here: what is wrong must show before anything runs."""
        if not amounts:
            raise BudgetError("no budgets; give at least one, for example 5%")
        known = self._known()
        counted = [int(amount.amount) for amount in amounts if amount.unit is Unit.SCORES]
        if len(counted) < len(amounts):
            contestant.construct(self.grid.design, seed=0, known=known)
        for amount in counted if contestant.plans_with_budget else counted and [min(counted)]:
            sampler = contestant.construct(self.grid.design, seed=0, known={**known, "budget": amount})
            least = sampler.minimum_readings
            if amount < least:
                m = len(self.grid.models)
                raise BudgetError(
                    f"budget {amount:,} is too small for {contestant.name} with {m} models: its first "
                    f"readings alone take {least:,}; give at least {least}"
                    + (", a smaller batch" if "batch" in contestant.accepts else "")
                    + f", or leave {contestant.name} out"
                )

    def _known(self) -> dict[str, Any]:
        known: dict[str, Any] = {"score_range": self.grid.bounds}
        if self.batch is not None:
            known["batch"] = self.batch
        if self.predictor is not None:
            known["predictor"] = self.predictor
        return known


_COUNTS = "a number of evaluations (5000) or a share of all of them (5%)"


def _amount(text: str | int | Budget, grid: Grid) -> Budget:
    budget = Budget.parse(text, n_items=len(grid.items), n_cells=grid.n_cells)
    refuse_tokens(text, budget, _COUNTS)
    if budget.unit is Unit.USD:
        mean_costs(grid.scores, grid.costs, text, _COUNTS)
        return budget
    return Budget(min(int(budget.amount), grid.n_cells))


def _row(
    name: str, found: Sequence[RaceOutcome], budget: Budget, text: str | int | Budget, stage: _Stage
) -> RaceRow:
    def mean(attribute: str) -> float:
        return float(np.mean([getattr(outcome, attribute) for outcome in found]))

    return RaceRow(
        sampler=name,
        budget=int(budget.amount) if budget.unit is Unit.SCORES else budget.amount,
        p_best=mean("best"),
        p_top=mean("top"),
        simple_regret=mean("regret"),
        evaluations=mean("evaluations"),
        coverage=mean("covered"),
        half_width=mean("half_width"),
        seconds=mean("seconds"),
        seeds=len(found),
        top=stage.top,
        level=stage.level,
        budget_asked=_asked(text),
        usd=None if budget.unit is Unit.SCORES else mean("usd"),
    )


def _asked(text: str | int | Budget) -> str:
    if isinstance(text, Budget):
        return f"{text.amount:.0f}" if text.unit is Unit.SCORES else str(text)
    return str(text).strip()


def _too_little(contestant: Contestant, budget: Budget, grid: Grid) -> str:
    """Why what the money bought names no best model."""
    typical = mean_costs(grid.scores, grid.costs, str(budget), _COUNTS)
    once = float(np.nansum(mean_of_known(typical, 1)))
    return (
        f"budget {budget} is too small for {contestant.name} with {len(grid.models)} models: it ended before "
        f"each had one evaluation, and one of each costs {shown_amount(once, Unit.USD)} on average; give more"
    )
