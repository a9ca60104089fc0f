"""By simulation: costs that tell of the score bias nothing that is printed, and intervals stay honest."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from tests.asking import Asking
from tests.claims import binomial_claim, replications
from tests.repeats.estimates import worlds

from evalbudget import Allocation, Design, Reading
from evalbudget.repeats.estimates import ItemReadings, betting, mean_over_fixed_items
from evalbudget.repeats.samplers import Auto

pytestmark = pytest.mark.claim


def bought(seed: int, *, n_items: int, times: int, money: bool) -> tuple[ItemReadings, float]:
    """A run in money; a reading costs e^(-2 score) times its item's cost, 8 are in flight in any order.

    Args:
        seed: of all.
        n_items: of the benchmark.
        times: readings of every item that the money pays on average.
        money: the sampler is told the budget.
    """
    rng, order = np.random.default_rng([seed, 5]), random.Random(seed)
    world = worlds.bernoulli(rng.beta(9, 1, n_items), rng)
    dear = np.exp(rng.normal(0.0, 1.175, n_items))
    scores = world.draw(40 * times)
    budget = times * float((dear * np.exp(-2.0 * scores).mean(axis=1)).sum())
    sampler = Auto(Design.of_items(n_items), seed=seed)
    sampler.weigh_costs(budget if money else None)
    book = Asking(sampler)
    flying: list[Reading] = []
    told: list[Reading] = []
    spent = largest = 0.0
    while True:
        while len(flying) < 8 and budget - spent >= (len(flying) + 1) * largest:
            asked = book.ask(1)
            if not asked:
                break  # the warm-up must come back first
            request = asked[0]
            item, epoch = request.cell.item, request.cell.epoch
            value = float(scores[item, epoch % scores.shape[1]])
            flying.append(Reading(request, value, float(dear[item]) * math.exp(-2.0 * value)))
        if not flying:
            return ItemReadings.of_bought(told, n_items), float(world.mean.mean())
        reading = flying.pop(order.randrange(len(flying)))
        book.tell((reading,))
        told.append(reading)
        spent += reading.cost
        largest = max(largest, reading.cost)


@pytest.mark.parametrize("money", [True, False])
def test_the_benchmark_mean_where_failures_are_dear(money: bool) -> None:
    R, n_items = replications(12, 1000), replications(24, 100)
    missed, errors = 0, []
    for seed in range(R):
        readings, truth = bought(seed, n_items=n_items, times=12, money=money)
        found = mean_over_fixed_items(readings, allocation=Allocation.PHASED)
        interval = found.confidence_interval(0.95)
        missed += not interval.low <= truth <= interval.high
        errors.append(found.value - truth)
    assert abs(np.mean(errors)) < 4.0 * np.std(errors, ddof=1) / math.sqrt(R)
    binomial_claim(missed, R, at_most=0.07)


def test_guaranteed_intervals_of_items_where_failures_are_dear() -> None:
    R, n_items = replications(6, 300), 40
    missed = 0
    for seed in range(R):
        rng = np.random.default_rng([seed, 5])
        mean = worlds.bernoulli(rng.beta(9, 1, n_items), rng).mean
        readings, _ = bought(seed, n_items=n_items, times=12, money=True)
        intervals = betting(readings, bounds=(0.0, 1.0)).confidence_intervals(0.95)
        missed += int((~intervals.contains(mean)).sum())
    binomial_claim(missed, R * n_items, at_most=0.05)
