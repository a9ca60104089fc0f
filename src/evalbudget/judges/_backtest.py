"""Backtests of judge rotation: bias, variance and coverage of the panel mean on recorded scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from evalbudget._fields import Shown, percent
from evalbudget.budget import Budget, Unit
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.estimate import check_level
from evalbudget.hooks._plugins import plugins
from evalbudget.judges._config import build_schedule
from evalbudget.judges.estimates import (
    JudgeScores,
    judge_mean_over_sampled_items,
    panel_mean,
    require_one_scale,
)
from evalbudget.judges.schedules import JudgeSchedule
from evalbudget.judges.schedules._panel import check_panel, per_judge
from evalbudget.recorded._rescale import rescale_raters
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._contestant import checked_seeds
from evalbudget.replay._rows import Replayed, asked, table_of
from evalbudget.replay._workers import Job, Progress, run_all
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.tables import PrintableTable

ROTATIONS = ("all", "random", "cyclic", "priced", "single")

_CALLS_AT_ONCE = 20
"""A replay's calls are drawn together, in the time that others take to decide on this many times fewer."""


@dataclass(frozen=True, slots=True)
class RotationRow:
    """One rotation at one budget; means over models (and seeds within each).

    Attributes:
        rotation: name of the schedule.
        budget: judge calls per model; the rounded mean where models have different numbers of items.
        bias: mean of estimate - truth. A single judge is drawn anew for each seed, so its bias is variance
            here.
        variance: of the estimate over seeds.
        rmse: root of the mean squared error.
        coverage: share of the replays whose interval holds the truth.
        without_interval: share of the replays that have none; they count as misses in the coverage.
        half_width: of the interval, mean over the replays that have one.
        seeds: replays per model.
        level: of the intervals.
        cost: of the judge calls of a replay, mean, at the prices given.
        calls: made per replay, mean; ``all`` leaves a rest of the budget that buys no whole item.
        models: averaged over.
        judges: in the panel.
        budget_asked: as written, for example ``2x``.
    """

    rotation: Annotated[str, Shown("rotation")]
    budget: int
    bias: Annotated[float, Shown("bias", "+.4f")]
    variance: Annotated[float, Shown("variance", ".4g")]
    rmse: Annotated[float, Shown("rmse", ".4f")]
    coverage: Annotated[float, Shown("coverage", ".3f")]
    without_interval: float
    half_width: Annotated[float, Shown("half-width", ".4f")]
    seeds: int
    level: float
    cost: Annotated[float, Shown("cost", "~")]
    calls: float
    models: int
    judges: int
    budget_asked: Annotated[str, Shown("budget", by=asked)]


@dataclass(frozen=True, slots=True, repr=False)
class RotationResult(Replayed):
    """Everything a backtest of rotations found.

    Attributes:
        rows: by budget, then by rotation, both as given.
        truth: panel mean of each model over all that was recorded.
    """

    rows: tuple[RotationRow, ...]
    truth: Mapping[str, float]

    def table(self) -> PrintableTable:
        """A rich table that fits 80 columns; it also prints itself as text."""
        first = self.rows[0]
        missing = max(row.without_interval for row in self.rows)
        lost = f" Up to {missing:.1%} of the replays of a row have no interval: misses." if missing else ""
        caption = (
            f"{first.models} models, {first.judges} judges, {first.seeds} seeds. Truth: mean over judges "
            "of their recorded means. Items are drawn with replacement. Coverage at "
            f"{percent(first.level)}.{lost}"
        )
        columns = ["rotation", "budget_asked", "bias", "variance", "rmse", "coverage", "half_width", "cost"]
        return table_of(self.rows, caption, only=columns, parted="budget_asked")


def backtest_rotation(
    recorded: RecordedScores,
    rotations: Sequence[str | type[JudgeSchedule]] = ROTATIONS,
    budgets: Sequence[str | int | Budget] = ("1x",),
    seeds: Iterable[int] | int = 200,
    *,
    model: str | None = None,
    prices: Mapping[str, float] | Sequence[float] | None = None,
    level: float = 0.95,
    rescale: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> RotationResult:
    """Replay recorded scores under several rotations with the same number of judge calls.

    In every replay items are drawn with replacement from those recorded (the benchmark is a sample of them),
    the same ones for every rotation, and each call is answered by a recorded repeat of that judge, or fails
    if there is none. ``all`` scores fewer items, each by the whole panel. The estimate is the mean of judge
    means, for ``random`` and ``single`` (schedules with ``weighs_judges`` False) the raw mean.

    Args:
        recorded: raters are the judges.
        rotations: names or classes. A constructor with a parameter ``prices`` is given the prices.
        budgets: judge calls per model, as a number (2000) or per item (``2x``).
        seeds: one replay each; a number n is the seeds 0 to n - 1.
        model: only this one; None for all.
        prices: of one call of each judge; None if equal.
        level: of the intervals.
        rescale: map each judge's observed range to 0..1 first; otherwise judges that seem to be on different
            scales are refused.
        workers: processes; 1 for this one. None for one per processor, or this one if the work is small.
        progress: called with (replays finished, replays in all).

    Raises:
        UnknownNameError: no such rotation, model or judge.
        BudgetError: a budget below two calls per judge, or in money or tokens.
        InvalidInferenceError: the judges seem to score on different scales.
        InvalidInputError: one judge only, nothing to compare, or an argument out of range.
        EvalbudgetError: a worker died.
    """
    check_level(level)
    entrants = _entrants(rotations)
    judges = check_panel(recorded.as_panel().raters, needed_by="a backtest of rotation")
    recorded = recorded.select(model=model)
    if rescale:
        recorded = rescale_raters(recorded)
    else:
        flat = recorded.scores.reshape(-1, *recorded.scores.shape[2:])
        require_one_scale(JudgeScores.from_table(flat, judges=judges))
    price = per_judge("prices", prices, judges)
    seed_list = checked_seeds(seeds)
    texts = [budgets] if isinstance(budgets, str | int | Budget) else list(budgets)
    if not texts:
        raise BudgetError("no budgets; give at least one, for example 2x")
    pools = [_Pool.of(recorded, m) for m in range(len(recorded.models))]
    amounts = [[_amount(text, pool, judges) for pool in pools] for text in texts]
    jobs = [
        Job(p, c, seed, (budget,))
        for of_text in amounts
        for c in range(len(entrants))
        for p, budget in enumerate(of_text)
        for seed in seed_list
    ]
    stage = _Stage(tuple(pools), tuple(entrants), judges, price, level)
    calls = sum(job.budgets[0] for job in jobs) // _CALLS_AT_ONCE
    replays = np.array(run_all(stage, jobs, workers=workers, progress=progress, readings=calls))
    grid = replays.reshape(len(texts), len(entrants), len(pools), len(seed_list), -1)
    rows = [
        _row(cls.name, text, amounts[t], grid[t, c], level, len(judges))
        for t, text in enumerate(texts)
        for c, cls in enumerate(entrants)
    ]
    return RotationResult(tuple(rows), {pool.model: pool.truth for pool in pools})


@dataclass(frozen=True, slots=True)
class _Pool:
    """One model's recorded scores, repeats first, and their panel mean."""

    model: str
    scores: FloatArray
    counts: IntArray
    categories: tuple[str, ...] | None
    truth: float

    @classmethod
    def of(cls, recorded: RecordedScores, model: int) -> _Pool:
        counts = recorded.counts[model]
        keep = counts.any(axis=1)
        silent = [name for name, n in zip(recorded.raters, counts.sum(axis=0), strict=True) if n == 0]
        if silent:
            raise InvalidInputError(
                f"judge {silent[0]!r} has no recorded score of model {recorded.models[model]!r}; "
                "record some, or leave the judge or the model out"
            )
        scores = np.asarray(recorded.scores[model][keep], dtype=np.float64)
        scores = np.take_along_axis(scores, np.argsort(np.isnan(scores), axis=2, kind="stable"), axis=2)
        categories = recorded.categories
        if categories is not None:
            categories = tuple(c for c, kept in zip(categories, keep.tolist(), strict=True) if kept)
        truth = float(np.nanmean(recorded.true_scores[model], axis=0).mean())
        return cls(recorded.models[model], scores, counts[keep], categories, truth)


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """What all jobs share."""

    pools: tuple[_Pool, ...]
    rotations: tuple[type[JudgeSchedule], ...]
    judges: tuple[str, ...]
    price: FloatArray
    level: float

    def run(self, job: Job) -> tuple[float, float, float, float, float]:
        """Error, whether the interval covers, half-width, cost, calls."""
        pool, cls = self.pools[job.pool], self.rotations[job.contestant]
        (budget,), seed, judges, price = job.budgets, job.seed, self.judges, self.price
        draws = np.random.default_rng([seed, budget])
        items = draws.integers(len(pool.scores), size=budget)
        luck = draws.random((budget, len(judges)))
        prices = price.tolist()
        n = budget // build_schedule(cls, ("0",), judges, prices=prices, seed=seed).calls_per_generation
        items = items[:n]
        categories = None if pool.categories is None else [pool.categories[i] for i in items.tolist()]
        schedule = build_schedule(cls, [""] * n, judges, prices=prices, categories=categories, seed=seed)
        asked = schedule.assign()
        cell = items[asked.item]
        count = pool.counts[cell, asked.judge]
        value = pool.scores[cell, asked.judge, (luck[asked.item, asked.judge] * count).astype(np.int64)]
        cost = float(price[asked.judge].sum())
        scores = JudgeScores.of(
            asked.item, asked.epoch, asked.judge, value, judges=judges, n_items=n, cost=cost
        )
        estimate = panel_mean(scores) if cls.weighs_judges else judge_mean_over_sampled_items(scores)
        interval = estimate.confidence_interval(self.level)
        covers = float(interval.low <= pool.truth <= interval.high)
        return estimate.value - pool.truth, covers, interval.half_width, cost, float(asked.item.size)


def _row(
    name: str,
    text: str | int | Budget,
    budgets: Sequence[int],
    replays: FloatArray,
    level: float,
    judges: int,
) -> RotationRow:
    """Of what :meth:`_Stage.run` found, shape (models, seeds, 5)."""
    error, covers, width, cost, calls = np.moveaxis(replays, -1, 0)
    models, seeds = error.shape
    return RotationRow(
        rotation=name,
        budget=round(float(np.mean(budgets))),
        bias=float(error.mean()),
        variance=float(error.var(axis=1, ddof=1).mean()) if seeds > 1 else float("nan"),
        rmse=float(np.sqrt((error**2).mean())),
        coverage=float(covers.mean()),
        without_interval=float(np.isnan(width).mean()),
        half_width=float(np.nanmean(width)) if not np.isnan(width).all() else float("nan"),
        seeds=seeds,
        level=level,
        cost=float(cost.mean()),
        calls=float(calls.mean()),
        models=models,
        judges=judges,
        budget_asked=f"{text.amount:.0f}" if isinstance(text, Budget) else str(text).strip(),
    )


def _amount(text: str | int | Budget, pool: _Pool, judges: tuple[str, ...]) -> int:
    budget = Budget.parse(text, n_items=len(pool.scores))
    if budget.unit is not Unit.SCORES:
        raise BudgetError(
            f"budget {text!s} is {budget}; write a number of judge calls (2000) or calls per item (2x)"
        )
    if budget.amount < 2 * len(judges):
        raise BudgetError(
            f"budget {text!s} is too small for {len(judges)} judges on model {pool.model!r}: an interval "
            f"needs two calls of each; give at least {2 * len(judges)}"
        )
    return int(budget.amount)


def _entrants(rotations: Sequence[str | type[JudgeSchedule]]) -> list[type[JudgeSchedule]]:
    given = [rotations] if isinstance(rotations, str) else list(rotations)
    classes = [plugins().schedule(r) if isinstance(r, str) else r for r in given]
    if not classes:
        raise InvalidInputError("no rotations to compare; give at least one, for example cyclic and random")
    names = [cls.name for cls in classes]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"rotation {name!r} is listed {names.count(name)} times; list it once")
    return classes
