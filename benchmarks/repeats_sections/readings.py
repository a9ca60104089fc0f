"""Runs one sampler on one pool and keeps every reading, for the estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asking import Asking
from evalbudget.design import Reading
from evalbudget.repeats._array_book import ArrayBook, Asked
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import RepeatSampler


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


def run_sampler(pool: Pool, sampler: RepeatSampler, budget: int, seed: int, failures: float = 0.0) -> Run:
    """Buy as many; reading j of an item is the same for every sampler.

    Args:
        pool: where readings come from.
        sampler: freshly built.
        budget: readings to buy, failed ones included.
        seed: of the draws.
        failures: share of the readings that fail at random.
    """
    draws = Draws(pool, seed)
    if failures:
        return _failing(pool, sampler, draws, np.random.default_rng(seed).random(budget) < failures)
    book = ArrayBook(sampler)
    bought: list[Asked] = []
    values: list[NDArray[np.float64]] = []
    while book.n < budget and (asked := book.ask(budget - book.n)) is not None:
        values.append(draws.of(*asked))
        book.tell(values[-1])
        bought.append(asked)
    item, epoch = (np.concatenate(column) for column in zip(*bought, strict=True))
    found = book.bought()  # by item and epoch
    phase = np.empty(item.size)
    phase[np.lexsort((epoch, item))] = np.nan if found.phase is None else found.phase
    return Run(len(pool.items), item, epoch, np.concatenate(values), phase)


def _failing(pool: Pool, sampler: RepeatSampler, draws: Draws, fails: NDArray[np.bool_]) -> Run:
    book = Asking(sampler)
    rows: list[tuple[int, int, float, float]] = []
    for failed in fails.tolist():
        (request,) = book.ask()
        _, item, epoch, _ = request.cell
        value = None if failed else float(draws.of(np.array([item]), np.array([epoch]))[0])
        if value is not None:
            rows.append((item, epoch, value, np.nan if request.phase is None else request.phase))
        book.tell(Reading(request, value))
    item_, epoch_, value_, phase_ = (np.array(column) for column in zip(*rows, strict=True))
    return Run(len(pool.items), item_, epoch_, value_, phase_)
