"""One sampler against one pool: asks, draws, tells, and measures the errors at every budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from time import perf_counter

import numpy as np

from evalbudget.errors import BudgetError
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items
from evalbudget.replay._contestant import Contestant
from evalbudget.replay._money import Purse
from evalbudget.replay._workers import Job
from evalbudget.sampler import Sampler


@dataclass(frozen=True, slots=True)
class Outcome:
    """Errors of one replay at one budget.

    Attributes:
        worst_item_error: max_i abs(estimate_i - true_i), an item's estimate being the mean of its readings.
        rmse: root of mean_i (estimate_i - true_i)^2.
        bias: estimated minus true benchmark mean; the estimate is the one a host would print.
        readings: at most the budget; less if the sampler stopped.
        seconds: wall clock until then, drawing and the sampler's decisions together.
        usd: dollars paid; nan where readings are counted.
        unread: items left without a reading, where the budget is in money; then there are no errors.
    """

    worst_item_error: float
    rmse: float
    bias: float
    readings: int
    seconds: float
    usd: float = nan
    unread: int = 0


@dataclass(frozen=True, slots=True)
class ReplayStage:
    """What all jobs share.

    Attributes:
        pools: where readings come from.
        contestants: the samplers, each built with the last budget of a job.
        objective: for samplers that take one.
    """

    pools: tuple[Pool, ...]
    contestants: tuple[Contestant, ...]
    objective: str

    def run(self, job: Job) -> tuple[Outcome, ...]:
        """Run to the last budget and look at the readings so far at each of them.

        Its seed is that of the draws, which are the same for all samplers, and of the sampler's own choices.

        Raises:
            BudgetError: an item is left without a reading, and readings are counted.
        """
        if job.usd is not None:
            return (self._run_for_money(job, job.usd),)
        started = perf_counter()
        budgets, last = job.budgets, job.budgets[-1]
        pool = self.pools[job.pool]
        sampler = self.contestants[job.contestant].build(
            pool, objective=self.objective, seed=job.seed, budget=last
        )
        draws, book = Draws(pool, job.seed), ArrayBook(sampler)
        seconds: list[float] = []
        for budget in budgets:
            while book.n < budget and (asked := book.ask(budget - book.n)) is not None:
                book.tell(draws.of(*asked))
            seconds.append(perf_counter() - started)
        return tuple(
            _outcome(pool, sampler, book.bought(budget), elapsed)
            for budget, elapsed in zip(budgets, seconds, strict=True)
        )

    def _run_for_money(self, job: Job, usd: float) -> Outcome:
        """Run until no further reading may begin, each at its recorded cost."""
        started = perf_counter()
        pool, purse = self.pools[job.pool], Purse(usd)
        sampler = self.contestants[job.contestant].build(
            pool, objective=self.objective, seed=job.seed, budget=None
        )
        sampler.weigh_costs(usd)
        draws, book = Draws(pool, job.seed), ArrayBook(sampler)
        while purse.affords_another and (asked := book.ask(1)) is not None:
            cost = draws.costs_of(*asked)
            purse.pay(float(cost[0]))
            book.tell(draws.of(*asked), cost)
        seconds, readings = perf_counter() - started, book.bought()
        unread = int((readings.counts == 0).sum())
        if unread:
            return Outcome(nan, nan, nan, book.n, seconds, purse.spent, unread)
        return replace(_outcome(pool, sampler, readings, seconds), usd=purse.spent)


def _outcome(pool: Pool, sampler: Sampler, readings: ItemReadings, seconds: float) -> Outcome:
    k, n = len(pool.items), readings.value.size
    unread = int((readings.counts == 0).sum())
    if unread:
        raise BudgetError(
            f"{sampler.name} left {unread} of {k} items of {pool} without a reading after {n}; "
            "give a larger budget"
        )
    errors = readings.moments.mean - pool.means
    benchmark = mean_over_fixed_items(
        readings, allocation=sampler.allocation, fixed_repeats=max(sampler.fixed_repeats, 1)
    )
    return Outcome(
        worst_item_error=float(np.abs(errors).max()),
        rmse=float(np.sqrt(np.mean(errors * errors))),
        bias=float(benchmark.value - pool.means.mean()),
        readings=n,
        seconds=seconds,
    )
