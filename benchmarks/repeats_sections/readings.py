"""Runs one sampler on one pool and keeps every reading, for the estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget._asked import AskedSampler
from evalbudget.design import Reading
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.estimates import ItemReadings


@dataclass(frozen=True, slots=True)
class Run:
    """Readings in the order in which they were bought.

    Attributes:
        n_items: of the pool.
        item: of each reading, shape (n_readings,).
        epoch: of each reading.
        value: the scores.
        phase: in which each was bought; nan where there are none.
    """

    n_items: int
    item: NDArray[np.int64]
    epoch: NDArray[np.int64]
    value: NDArray[np.float64]
    phase: NDArray[np.float64]

    def readings(self) -> ItemReadings:
        """All of them, for an estimator."""
        return self.until(self.item.size)

    def until(self, budget: int) -> ItemReadings:
        """What the first ``budget`` readings leave an estimator with."""
        first = slice(0, budget)
        return ItemReadings.of(
            self.item[first],
            self.epoch[first],
            self.value[first],
            n_items=self.n_items,
            phase=None if np.isnan(self.phase).all() else self.phase[first],
        )


def run_sampler(pool: Pool, sampler: AskedSampler, budget: int, seed: int, failures: float = 0.0) -> Run:
    """Ask and tell one by one; reading j of an item is the same for every sampler.

    Args:
        pool: where readings come from.
        sampler: freshly built.
        budget: readings to buy, failed ones included.
        seed: of the draws.
        failures: share of the readings that fail at random.
    """
    draws = Draws(pool, seed, budget)
    fails = np.random.default_rng(seed).random(budget) < failures
    items: list[int] = []
    epochs: list[int] = []
    values: list[float] = []
    phases: list[float] = []
    for failed in fails.tolist():
        (request,) = sampler.ask()
        _, item, epoch, _ = request.cell
        if failed:
            sampler.tell((Reading(request, None),))
            continue
        value = draws.further(item, epoch)
        phases.append(np.nan if request.phase is None else request.phase)
        items.append(item)
        epochs.append(epoch)
        values.append(value)
        sampler.tell((Reading(request, value),))
    return Run(len(pool.items), np.array(items), np.array(epochs), np.array(values), np.array(phases))
