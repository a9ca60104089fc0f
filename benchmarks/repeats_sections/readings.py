"""Runs one sampler on one pool and keeps every reading, for the estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest.pool import Draws, Pool
from evalbudget.design import Reading
from evalbudget.estimators import ItemReadings
from evalbudget.sampler import Sampler


@dataclass(frozen=True, slots=True)
class Run:
    """Readings in the order in which they were bought.

    Attributes:
        n_items: of the pool.
        item: of each reading, shape (n_readings,).
        epoch: of each reading.
        value: the scores.
    """

    n_items: int
    item: NDArray[np.int64]
    epoch: NDArray[np.int64]
    value: NDArray[np.float64]

    def readings(self) -> ItemReadings:
        """All of them, for an estimator."""
        return self.until(self.item.size)

    def until(self, budget: int) -> ItemReadings:
        """What the first ``budget`` readings leave an estimator with."""
        first = slice(0, budget)
        return ItemReadings.of(self.item[first], self.epoch[first], self.value[first], n_items=self.n_items)


def run_sampler(pool: Pool, sampler: Sampler, budget: int, seed: int) -> Run:
    """Ask and tell one by one; reading j of an item is the same for every sampler."""
    draws = Draws(pool, seed, budget)
    items: list[int] = []
    epochs: list[int] = []
    values: list[float] = []
    for _ in range(budget):
        (request,) = sampler.ask()
        _, item, epoch, _ = request.cell
        value = draws.further(item, epoch)
        items.append(item)
        epochs.append(epoch)
        values.append(value)
        sampler.tell((Reading(request, value),))
    return Run(len(pool.items), np.array(items), np.array(epochs), np.array(values))
