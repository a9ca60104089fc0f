"""Samplers that weigh costs: every decision against the formulas, and what comes of it."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from tests.repeats.samplers.test_brute_force import K, Table, prior

from evalbudget import Cell, Design, Reading, Request
from evalbudget.repeats.samplers import Auto, EBBernstein, RepeatSampler, Robin, RobinHood, Uniform
from evalbudget.statistics._costs import Costs
from evalbudget.testing import gaussian, play


def cost_of(cell: Cell) -> float:
    """Items cost from 1 to 4096, give or take a factor."""
    return 4.0**cell.item * math.exp(random.Random(f"{cell}").gauss(0.0, 0.3))


def rating(cell: Cell) -> float:
    """One of five ratings."""
    return float(min(4, max(0, round(2.0 + 2.0 * gaussian(cell)))))


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("objective", ["worst-item", "mse"])
def test_eb_bernstein_with_costs_against_brute_force(objective: str, concurrency: int) -> None:
    sampler = EBBernstein(Design.of_items(K), objective=objective, warmup=4, hold_out=True)
    sampler.weigh_costs()
    table, costs, rng = Table(), Costs(K), random.Random(0)
    frozen = False
    gamma = 2.0 / (2.0 * math.log(K) + 2.0)

    def index(i: int) -> float:
        m, kappa = prior([statistics.variance(table.values[j][:3]) for j in range(K)], 2)
        v = (kappa * m + table.ss(i)) / (kappa + len(table.values[i]) - 1)
        n, c = table.asked[i], math.exp(costs.log_relative(i))
        if objective == "worst-item":
            return (math.sqrt(v / n) + math.sqrt(math.log(K) * m) / n) / c ** (gamma / 2)
        return v / (n * (n + 1)) / c

    in_flight: list[Request] = []
    checked = 0
    while sampler.asked < 200 or in_flight:
        while len(in_flight) < concurrency and sampler.asked < 200:
            warm = min(table.read) >= sampler.warmup
            if warm and not frozen:
                costs.fit()
                frozen = True
            asked = sampler.ask(1)
            if not asked:
                break
            item = asked[0].cell.item
            if warm:
                values = [index(i) for i in range(K)]
                assert values[item] == pytest.approx(max(values), rel=1e-9)
                checked += 1
            table.asked[item] += 1
            in_flight.append(asked[0])
        request = in_flight.pop(rng.randrange(len(in_flight)))
        cell = request.cell
        table.read[cell.item] += 1
        if request.weight is not None:  # not held out
            table.values[cell.item].append(gaussian(cell))
            costs.add(cell.item, cost_of(cell))
        sampler.tell([Reading(request, gaussian(cell), cost_of(cell))])
    assert checked > 150


def slope(sampler: RepeatSampler) -> float:
    """Of ln(1/n) on ln(cost) once every item has the same variance."""
    sampler.weigh_costs()
    play(sampler, 20_000, score=lambda cell: float(cell.epoch % 2), cost=lambda cell: 10.0 ** (cell.item % 3))
    n = sampler.counts()
    return (math.log(n[0]) - math.log(n[2])) / math.log(100.0)


@pytest.mark.parametrize(
    ("sampler", "power"),
    [
        (EBBernstein(Design.of_items(30), bonus=0.0), 1.0 / (1.0 + math.log(30))),
        (Auto(Design.of_items(30)), 1.0 / (1.0 + math.log(30))),
        (EBBernstein(Design.of_items(30), objective="mse"), 0.5),
        (Auto(Design.of_items(30), objective="mean"), 0.5),
        (Uniform(Design.of_items(30)), 0.0),
        (Robin(Design.of_items(30), variances=[1.0] * 30), 0.0),
        (RobinHood(Design.of_items(30)), 0.0),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
def test_at_equal_variances_readings_follow_a_power_of_the_cost(sampler: RepeatSampler, power: float) -> None:
    assert slope(sampler) == pytest.approx(power, abs=0.035)


def test_a_score_that_never_varies_is_asked_in_turn_whatever_it_costs() -> None:
    sampler = Auto(Design.of_items(5))
    sampler.weigh_costs()
    play(sampler, 100, score=lambda cell: 1.0, cost=cost_of)
    assert sampler.counts() == (20,) * 5


def test_dear_failures_make_an_item_dear() -> None:
    def counts(cost: float) -> tuple[int, ...]:
        sampler = Auto(Design.of_items(6), objective="mse")
        sampler.weigh_costs()
        play(
            sampler,
            600,
            score=lambda cell: None if cell.item == 0 and cell.epoch % 2 else rating(cell._replace(item=1)),
            cost=lambda cell: (cost if cell.item == 0 and cell.epoch % 2 else 1.0) + 0.01 * cell.item,
        )
        return sampler.counts()

    assert counts(100.0)[0] < 0.7 * counts(1.0)[0]


# weights


def test_at_equal_costs_money_gives_the_weights_of_its_number_of_readings() -> None:
    told, counted = Auto(Design.of_items(6)), Auto(Design.of_items(6), budget=120)
    told.weigh_costs(120 * 0.1)
    with_money = play(told, 120, score=rating, cost=lambda cell: 0.1)
    assert [e.request for e in with_money] == [e.request for e in play(counted, 120, score=rating)]


def test_a_budget_in_money_changes_weights_and_nothing_that_is_asked() -> None:
    asked = []
    for budget in (None, 1e4, 1e6):
        sampler = Auto(Design.of_items(6))
        sampler.weigh_costs(budget)
        asked.append([e.request for e in play(sampler, 120, score=rating, cost=cost_of)])
    assert asked[0] != asked[1] != asked[2]
    assert [[r.cell for r in of] for of in asked] == [[r.cell for r in asked[0]]] * 3


def test_weights_of_an_item_know_nothing_of_the_cost_of_its_held_out_reading() -> None:
    def weights(dear: float) -> tuple[list[float | None], list[float | None]]:
        sampler = Auto(Design.of_items(6))
        sampler.weigh_costs(5e3)
        played = play(
            sampler,
            150,
            # its first held-out reading fails, and costs too
            score=lambda cell: None if cell.item == 2 and cell.epoch == 0 else rating(cell),
            cost=lambda cell: dear * cost_of(cell) if cell.item == 2 and cell.epoch < 2 else cost_of(cell),
        ).readings
        held_out = [
            r.request.cell.epoch for r in played if r.request.cell.item == 2 and r.request.weight is None
        ]
        assert held_out == [0, 1]
        own = [r.request.weight for r in played if r.request.cell.item == 2]
        return own, [r.request.weight for r in played if r.request.cell.item != 2]

    assert weights(1.0)[0] == weights(50.0)[0]
    assert weights(1.0)[1] != weights(50.0)[1]
