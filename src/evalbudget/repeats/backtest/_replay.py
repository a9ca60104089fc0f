"""One sampler against one pool: asks, draws, tells, and measures the errors at every budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from time import perf_counter
from typing import Any

import numpy as np

from evalbudget._asked import AskedSampler
from evalbudget.design import Reading
from evalbudget.errors import BudgetError
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items
from evalbudget.replay._contestant import Contestant
from evalbudget.replay._money import Purse
from evalbudget.replay._workers import Job
from evalbudget.sampler import Allocation


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
        in_flight: how many readings are asked before any of them is told.
    """

    pools: tuple[Pool, ...]
    contestants: tuple[Contestant, ...]
    objective: str
    in_flight: int

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
        pool, in_flight = self.pools[job.pool], self.in_flight
        entrant = self.contestants[job.contestant]
        sampler = entrant.build(pool, objective=self.objective, seed=job.seed, budget=last)
        draws = Draws(pool, job.seed, last)
        ask, tell, values, further = sampler.ask, sampler.tell, draws.values, draws.further
        items: list[int] = []
        epochs: list[int] = []
        scores: list[float] = []
        phases: list[float] = []
        seconds: list[float] = []
        asked, going = 0, True
        for budget in budgets:
            while going and asked < budget:
                # asked across the smaller budgets, so that these see what a run of their own would
                requests = ask(min(in_flight, last - asked))
                readings: list[Reading] = []
                for request in requests:
                    _, item, epoch, _ = request.cell
                    try:
                        value = values[item][epoch]
                    except IndexError:
                        value = further(item, epoch)
                    items.append(item)
                    epochs.append(epoch)
                    scores.append(value)
                    phases.append(nan if request.phase is None else request.phase)
                    readings.append(Reading(request, value))
                tell(readings)
                asked += len(requests)
                going = bool(requests)
            seconds.append(perf_counter() - started)
        columns = (np.array(items), np.array(epochs), np.array(scores), np.array(phases))
        return tuple(
            _outcome(pool, sampler, [column[:budget] for column in columns], elapsed)
            for budget, elapsed in zip(budgets, seconds, strict=True)
        )

    def _run_for_money(self, job: Job, usd: float) -> Outcome:
        """Run until no further reading may begin, each at its recorded cost."""
        started = perf_counter()
        pool, purse = self.pools[job.pool], Purse(usd)
        entrant = self.contestants[job.contestant]
        sampler = entrant.build(pool, objective=self.objective, seed=job.seed, budget=None)
        sampler.weigh_costs(usd)
        draws = Draws(pool, job.seed, job.budgets[-1], priced=True)
        bought: list[tuple[int, int, float, float]] = []
        while requests := sampler.ask(purse.affordable(self.in_flight)):
            readings: list[Reading] = []
            for request in requests:
                _, item, epoch, _ = request.cell
                value = draws.further(item, epoch)
                cost = draws.costs[item][epoch]
                purse.pay(cost)
                bought.append((item, epoch, value, nan if request.phase is None else request.phase))
                readings.append(Reading(request, value, cost))
            sampler.tell(readings)
        seconds = perf_counter() - started
        columns = [np.array(column) for column in zip(*bought, strict=True)]
        unread = len(pool.items) - np.unique(columns[0]).size
        if unread:
            return Outcome(nan, nan, nan, len(bought), seconds, purse.spent, unread)
        return replace(_outcome(pool, sampler, columns, seconds), usd=purse.spent)


def _outcome(
    pool: Pool, sampler: AskedSampler, columns: list[np.ndarray[Any, Any]], seconds: float
) -> Outcome:
    k = len(pool.items)
    item, epoch, value, phase = columns
    phased = sampler.allocation is Allocation.PHASED
    readings = ItemReadings.of(item, epoch, value, n_items=k, phase=phase if phased else None)
    unread = int((readings.counts == 0).sum())
    if unread:
        raise BudgetError(
            f"{sampler.name} left {unread} of {k} items of {pool} without a reading after {item.size}; "
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
        readings=item.size,
        seconds=seconds,
    )
