"""Replays of samplers of repeats on a pool: one run to the last budget, looked at on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.replay._contestant import Contestant
from evalbudget.sampler import Allocation
from repeats_sections.replays import fixed_errors

Floats = NDArray[np.float64]


def item_means(pool: Pool, entrant: Contestant, budgets: Sequence[int], seed: int) -> Iterator[Floats]:
    """Mean of every item's readings at each budget, shape (n_items,); nan before its first.

    Args:
        pool: where readings come from, the same ones for all samplers.
        entrant: the sampler, told the last budget if it wants to know.
        budgets: readings in all, increasing.
        seed: of the draws and of the sampler.
    """
    sampler = entrant.build(pool, objective="worst-item", seed=seed, budget=budgets[-1])
    draws, book = Draws(pool, seed), ArrayBook(sampler)
    for budget in budgets:
        while book.n < budget and (asked := book.ask(budget - book.n)) is not None:
            book.tell(draws.of(*asked))
        with np.errstate(invalid="ignore"):
            yield book.bought().moments.mean


def worst_errors(pool: Pool, entrant: Contestant, budgets: Sequence[int], seeds: int) -> Floats:
    """Largest error of an item's mean, shape (n_seeds, n_budgets)."""
    sampler = entrant.build(pool, objective="worst-item", seed=0, budget=budgets[-1])
    if sampler.allocation is Allocation.FIXED:
        return fixed_errors(pool, entrant, tuple(budgets), seeds)
    return np.array(
        [
            [np.abs(means - pool.means).max() for means in item_means(pool, entrant, budgets, seed)]
            for seed in range(seeds)
        ]
    )
