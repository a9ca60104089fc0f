"""backtest(): every sampler, budget, pool and seed, on the same draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.errors import BudgetError
from evalbudget.recorded._scores import RecordedScores
from evalbudget.repeats.backtest._pool import Pool, pools_of
from evalbudget.repeats.backtest._replay import Outcome
from evalbudget.repeats.backtest._replay import ReplayStage as ReplayStage
from evalbudget.repeats.backtest._result_table import RATIO_OF, Average, BacktestResult, PoolInfo, Row
from evalbudget.repeats.samplers import Objective
from evalbudget.replay._contestant import Contestant, checked_seeds, contestants
from evalbudget.replay._money import mean_costs, refuse_tokens
from evalbudget.replay._workers import Job, Progress, run_all
from evalbudget.sampler import Sampler

BASELINE = "uniform"


def backtest(
    recorded: RecordedScores | Sequence[RecordedScores],
    samplers: Sequence[str | type[Sampler]] = (BASELINE, "auto"),
    budgets: Sequence[str | int | Budget] = ("10x", "20x", "50x"),
    seeds: Iterable[int] | int = 20,
    *,
    objective: str = Objective.WORST_ITEM,
    model: str | None = None,
    rater: str | None = None,
    min_repeats: int = 2,
    sampler_options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    workers: int | None = None,
    progress: Progress | None = None,
) -> BacktestResult:
    """Replay recorded scores under several samplers and budgets, and compare the errors.

    Each pair of a model and a rater is a pool of items of its own. A sampler runs on every pool separately
    with the whole budget; a row of the result is the mean over pools and seeds. A reading is drawn uniformly,
    with replacement, from the cell's recorded repeats, and the cell's true score is their mean. Reading j of
    an item is the same under every sampler, so that comparisons are paired.

    Args:
        recorded: one recording, or several whose pools are averaged over.
        samplers: names or classes. A constructor with a parameter ``variances`` is given the true ones
            (robin); one with ``objective`` or ``budget`` is given these.
        budgets: readings per pool, as a number (5000) or per item (``20x``), or what they may cost per pool
            (``$5``): then every score needs a recorded cost, a reading begins if what is left covers the
            dearest so far, and samplers weigh costs.
        seeds: one replay each; a number n is the seeds 0 to n - 1.
        objective: ``worst-item``, ``mse`` or ``mean``, for samplers that take one; the ratio to uniform is
            that of worst-item error, rmse or mean error accordingly.
        model: only this model's pools; None for all.
        rater: only this rater's pools; None for all.
        min_repeats: items with fewer recorded repeats are dropped, and counted in the result. A cell with few
            recorded repeats looks less noisy than it is.
        sampler_options: further arguments by sampler, for example ``{"eb-bernstein": {"warmup": 4}}``.
        workers: processes; 1 for this one. None for one per processor, or this one if the work is small.
        progress: called with (replays finished, replays in all).

    Returns:
        The rows, with a table and JSON.

    Raises:
        UnknownNameError: no such sampler, objective, model or rater; suggests the nearest.
        BudgetError: no sampler can run at any of the budgets (the message has the least one), or a budget is
            in tokens, or in money while costs are not recorded. A sampler that cannot run at one of them has
            a row without numbers there.
        InvalidInputError: nothing to replay, an option the sampler does not have, or an argument out of
            range.
        EvalbudgetError: a worker died.
    """
    target = Objective.named(objective)
    recordings = (recorded,) if isinstance(recorded, RecordedScores) else tuple(recorded)
    entrants = contestants((samplers,) if isinstance(samplers, str) else samplers, sampler_options)
    seed_list = checked_seeds(seeds)
    found = pools_of(recordings, model=model, rater=rater, min_repeats=min_repeats)
    pools = tuple(pool for pool in found if pool.items)
    texts = [budgets] if isinstance(budgets, str | int | Budget) else list(budgets)
    amounts = [[_amount(text, pool) for text in texts] for pool in pools]
    reasons = [
        [_why_not(contestant, pools, [of_pool[b] for of_pool in amounts], target) for contestant in entrants]
        for b in range(len(texts))
    ]
    if not texts:
        raise BudgetError("no budgets; give at least one, for example 20x")
    impossible = [reason for at_budget in reasons for reason in at_budget if reason is not None]
    if len(impossible) == len(texts) * len(entrants):
        raise BudgetError(f"{impossible[0]}, or leave the sampler out")
    jobs = [
        Job(p, c, seed, budgets=group, usd=usd)
        for p, pool in enumerate(pools)
        for c, contestant in enumerate(entrants)
        for seed in seed_list
        for group, usd in _runs(
            contestant, pool, [n for b, n in enumerate(amounts[p]) if reasons[b][c] is None]
        )
    ]
    stage = ReplayStage(pools, entrants, target.value)
    outcomes: dict[tuple[int, int, int, Budget], Outcome] = {}
    for job, result in zip(jobs, run_all(stage, jobs, workers=workers, progress=progress), strict=True):
        served = [Budget(n) for n in job.budgets] if job.usd is None else [Budget(job.usd, Unit.USD)]
        for amount, outcome in zip(served, result, strict=True):
            outcomes[job.pool, job.contestant, job.seed, amount] = outcome
    rows: list[Row] = []
    for b, text in enumerate(texts):
        for c, contestant in enumerate(entrants):
            if reasons[b][c] is None and amounts[0][b].unit is Unit.USD:
                found_at = [[outcomes[p, c, s, amounts[p][b]] for s in seed_list] for p in range(len(pools))]
                reasons[b][c] = _too_little(contestant, pools, found_at, amounts[0][b])
        grids = {
            contestant.name: [
                [outcomes[p, c, seed, amounts[p][b]] for seed in seed_list] for p in range(len(pools))
            ]
            for c, contestant in enumerate(entrants)
            if reasons[b][c] is None
        }
        budget = float(np.mean([of_pool[b].amount for of_pool in amounts]))
        if amounts[0][b].unit is Unit.SCORES:
            budget = round(budget)
        for contestant, reason in zip(entrants, reasons[b], strict=True):
            if reason is None:
                rows.append(_row(contestant.name, grids, text, budget, target, pools))
            else:
                rows.append(
                    Row(
                        sampler=contestant.name,
                        budget=budget,
                        objective=target.value,
                        budget_asked=_asked(text),
                        reason=reason,
                    )
                )
    if all(row.reason is not None for row in rows):
        raise BudgetError(f"{rows[0].reason}, or leave the sampler out")
    infos = tuple(PoolInfo(p.model, p.rater, len(p.items), p.dropped, p.unrecorded) for p in found)
    return BacktestResult(tuple(rows), infos, min_repeats, target.value)


def _row(
    name: str,
    grids: Mapping[str, list[list[Outcome]]],
    text: str | int | Budget,
    budget: float,
    objective: Objective,
    pools: Sequence[Pool],
) -> Row:
    grid = grids[name]
    usd = float(_values(grid, "usd").mean())
    metric = RATIO_OF[objective.value]
    ratio = None
    if BASELINE in grids:
        ratio = Average.ratio(_values(grid, metric), _values(grids[BASELINE], metric))
    return Row(
        sampler=name,
        budget=budget,
        seeds=len(grid[0]),
        objective=objective.value,
        worst_item_error=Average.of(_values(grid, "worst_item_error")),
        rmse=Average.of(_values(grid, "rmse")),
        mean_error=Average.of(_values(grid, "mean_error")),
        readings=round(float(_values(grid, "readings").mean())),
        seconds=float(_values(grid, "seconds").mean()),
        mean_bias=Average.of(_values(grid, "bias")),
        ratio=ratio,
        budget_asked=_asked(text),
        pools=len(pools),
        items=sum(len(pool.items) for pool in pools),
        usd=None if math.isnan(usd) else usd,
    )


def _values(grid: list[list[Outcome]], metric: str) -> NDArray[np.float64]:
    """One number of every replay, shape (n_pools, n_seeds)."""
    if metric == "mean_error":
        return np.abs(_values(grid, "bias"))
    return np.array([[getattr(outcome, metric) for outcome in of_pool] for of_pool in grid], dtype=np.float64)


_COUNTS = "a number of scores (2000) or scores per item (20x)"


def _amount(text: str | int | Budget, pool: Pool) -> Budget:
    budget = Budget.parse(text, n_items=len(pool.items))
    refuse_tokens(text, budget, _COUNTS)
    if budget.unit is Unit.USD:
        mean_costs(pool.values, pool.costs, text, _COUNTS)
        free = (pool.costs == 0.0) & ~np.isnan(pool.values)
        if free.any():
            item = pool.items[int(np.argmax(free.any(axis=1)))]
            raise BudgetError(
                f"a score of item {item!r} of {pool} cost $0, and what is free is asked without end; record "
                f"what it would have cost, or write {_COUNTS}"
            )
    return budget


def _runs(
    contestant: Contestant, pool: Pool, amounts: Sequence[Budget]
) -> list[tuple[tuple[int, ...], float | None]]:
    """Readings and dollars of each run; a run for money serves one budget, since samplers plan with it."""
    counted = [int(budget.amount) for budget in amounts if budget.unit is Unit.SCORES]
    runs: list[tuple[tuple[int, ...], float | None]] = [(g, None) for g in contestant.groups(counted) if g]
    for usd in sorted({budget.amount for budget in amounts if budget.unit is Unit.USD}):
        typical = float(mean_costs(pool.values, pool.costs, f"${usd:g}", _COUNTS).mean())
        runs.append(((math.ceil(usd / typical),), usd))
    return runs


def _too_little(
    contestant: Contestant, pools: Sequence[Pool], found: Sequence[Sequence[Outcome]], budget: Budget
) -> str | None:
    """Why what the money bought is no estimate; None if every replay read every item."""
    for pool, outcomes in zip(pools, found, strict=True):
        unread = max(outcome.unread for outcome in outcomes)
        if unread:
            once = float(mean_costs(pool.values, pool.costs, str(budget), _COUNTS).sum())
            return (
                f"budget {budget} is too small for {contestant.name} on the {len(pool.items):,} items of "
                f"{pool}: it left up to {unread:,} of them without a reading, and one reading of each costs "
                f"{shown_amount(once, Unit.USD)} on average; give more"
            )
    return None


def _asked(text: str | int | Budget) -> str:
    if isinstance(text, Budget):
        return f"{text.amount:.0f}" if text.unit is Unit.SCORES else str(text)
    return str(text).strip()


def _why_not(
    contestant: Contestant, pools: Sequence[Pool], amounts: Sequence[Budget], objective: Objective
) -> str | None:
    """Why a sampler cannot run at a budget; None if it can.

    Every sampler is built once, here: what is wrong must show before anything runs, and in this process.
    """
    for pool, budget in zip(pools, amounts, strict=True):
        amount = int(budget.amount) if budget.unit is Unit.SCORES else None
        sampler = contestant.build(pool, objective=objective.value, seed=0, budget=amount)
        if amount is None:
            continue  # what money buys shows in the replays
        least: int = getattr(sampler, "minimum_readings", 1)
        if amount < least:
            k = len(pool.items)
            return (
                f"budget {amount:,} is too small for {contestant.name} on the {k:,} items of {pool}: its "
                f"warm-up alone takes {least:,} readings; give at least {least} ({-(-least // k)}x)"
            )
    return None
