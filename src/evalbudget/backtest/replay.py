"""One sampler against one pool: asks, draws, tells, and measures the errors at every budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from evalbudget.backtest.contestant import Contestant
from evalbudget.backtest.pool import Draws, Pool
from evalbudget.design import Reading
from evalbudget.errors import BudgetError
from evalbudget.sampler import Allocation


@dataclass(frozen=True, slots=True)
class Outcome:
    """Errors of one replay at one budget.

    Attributes:
        worst_item_error: max_i abs(estimate_i - true_i), an item's estimate being the mean of its readings.
        rmse: root of mean_i (estimate_i - true_i)^2.
        bias: estimated minus true benchmark mean.
        readings: at most the budget; less if the sampler stopped.
        seconds: wall clock until then, drawing and the sampler's decisions together.
    """

    worst_item_error: float
    rmse: float
    bias: float
    readings: int
    seconds: float


def replay(
    pool: Pool, contestant: Contestant, *, seed: int, budgets: Sequence[int], objective: str, batch: int
) -> tuple[Outcome, ...]:
    """Run to the last budget and look at the readings so far at each of them.

    Args:
        pool: where readings come from.
        contestant: the sampler, built with the last budget.
        seed: of the draws, which are the same for all samplers, and of the sampler's own choices.
        budgets: numbers of readings, increasing.
        objective: for samplers that take one.
        batch: how many readings are asked before any of them is told.

    Raises:
        BudgetError: an item is left without a reading.
    """
    started = perf_counter()
    last = budgets[-1]
    sampler = contestant.build(pool, objective=objective, seed=seed, budget=last)
    draws = Draws(pool, seed, last)
    ask, tell, values, further = sampler.ask, sampler.tell, draws.values, draws.further
    arms: list[int] = []  # 2 * item + epoch % 2: cross-fit estimates need to know the half
    scores: list[float] = []
    add_arm, add_score = arms.append, scores.append
    seconds: list[float] = []
    asked, going = 0, True
    for budget in budgets:
        while going and asked < budget:
            # batches run across the smaller budgets, so that these see what a run of their own would
            requests = ask(min(batch, last - asked))
            readings: list[Reading] = []
            for request in requests:
                _, item, epoch, _ = request.cell
                try:
                    value = values[item][epoch]
                except IndexError:
                    value = further(item, epoch)
                add_arm(2 * item + (epoch & 1))
                add_score(value)
                readings.append(Reading(request, value))
            tell(readings)
            asked += len(requests)
            going = bool(requests)
        seconds.append(perf_counter() - started)
    by_arm, by_score = np.asarray(arms, dtype=np.int64), np.asarray(scores)
    halves = sampler.allocation is Allocation.CROSS_FIT
    return tuple(
        _outcome(pool, contestant.name, by_arm[:budget], by_score[:budget], halves, elapsed)
        for budget, elapsed in zip(budgets, seconds, strict=True)
    )


def _outcome(
    pool: Pool,
    sampler: str,
    arms: np.ndarray[tuple[int], np.dtype[np.int64]],
    scores: np.ndarray[tuple[int], np.dtype[np.float64]],
    halves: bool,
    seconds: float,
) -> Outcome:
    k = len(pool.items)
    counts = np.bincount(arms, minlength=2 * k).reshape(k, 2)
    sums = np.bincount(arms, weights=scores, minlength=2 * k).reshape(k, 2)
    per_item = counts.sum(axis=1)
    unread = int((per_item == 0).sum())
    if unread:
        raise BudgetError(
            f"{sampler} left {unread} of {k} items of {pool} without a reading after {len(arms)}; "
            "give a larger budget"
        )
    estimates = sums.sum(axis=1) / per_item
    errors = estimates - pool.means
    benchmark = estimates
    if halves and counts.all():
        benchmark = (sums / counts).mean(axis=1)
    return Outcome(
        worst_item_error=float(np.abs(errors).max()),
        rmse=float(np.sqrt(np.mean(errors * errors))),
        bias=float(benchmark.mean() - pool.means.mean()),
        readings=len(arms),
        seconds=seconds,
    )
