"""What the next reading will cost: against the formulas in plain Python, and in worlds with known answers."""

from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest

from evalbudget.statistics._costs import Costs, MeanCost, model_effects

READINGS = {0: [0.01, 0.02], 1: [4.0, 5.0, 3.0], 2: [0.3, 0.3], 3: [], 4: [1.0]}


def fitted(readings: dict[int, list[float]]) -> Costs:
    costs = Costs(len(readings))
    for item, of_item in readings.items():
        for cost in of_item:
            costs.add(item, cost)
    costs.fit()
    return costs


def test_the_formulas() -> None:
    costs = fitted(READINGS)
    y = {item: [math.log(c) for c in of_item] for item, of_item in READINGS.items() if of_item}
    N, K = sum(map(len, y.values())), len(y)
    grand = statistics.fmean(v for of_item in y.values() for v in of_item)
    mean = {item: statistics.fmean(of_item) for item, of_item in y.items()}
    within = sum((v - mean[item]) ** 2 for item, of_item in y.items() for v in of_item) / (N - K)
    around = sum(len(y[item]) * (mean[item] - grand) ** 2 for item in y)
    between = (around - (K - 1) * within) / (N - sum(len(v) ** 2 for v in y.values()) / N)
    mu = statistics.fmean(mean.values())
    for item in y:
        n = len(y[item])
        expected = between / (between + within / n) * (mean[item] - mu)
        assert costs.log_relative(item) == pytest.approx(expected, rel=1e-9)
    assert costs.log_relative(3) == 0.0


def test_readings_after_the_fit_move_an_item_and_nothing_else() -> None:
    costs = fitted(READINGS)
    before = [costs.log_relative(item) for item in range(5)]
    costs.add(4, 0.001)
    after = [costs.log_relative(item) for item in range(5)]
    assert after[:4] == before[:4]
    assert after[4] < before[4] - 1.0


def test_the_order_does_not_matter_and_the_unit_hardly() -> None:
    pairs = [(item, cost) for item, of_item in READINGS.items() for cost in of_item]
    shuffled, scaled = Costs(5), Costs(5)
    for item, cost in random.Random(1).sample(pairs, len(pairs)):
        shuffled.add(item, cost)
        scaled.add(item, 1e6 * cost)
    shuffled.fit()
    scaled.fit()
    there = [fitted(READINGS).log_relative(item) for item in range(5)]
    assert [shuffled.log_relative(item) for item in range(5)] == there
    assert [scaled.log_relative(item) for item in range(5)] == pytest.approx(there, rel=1e-9)


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param({0: [0.1] * 3, 1: [0.1] * 2, 2: [0.1]}, id="equal"),
        pytest.param({0: [0.1], 1: [4.0], 2: [1.0]}, id="nothing-read-twice"),
        pytest.param({0: [0.1, 4.0], 1: [4.0, 0.1], 2: [0.1, 4.0]}, id="items-do-not-differ"),
        pytest.param({0: [0.0, 0.0], 1: [0.0], 2: []}, id="free"),
    ],
)
def test_everything_is_typical_where_items_show_no_difference(readings: dict[int, list[float]]) -> None:
    costs = fitted(readings)
    assert [costs.log_relative(item) for item in readings] == [0.0] * 3


def test_shrinking_beats_the_plain_mean_and_no_mean() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(0.0, 0.5, 500)
    y = true[:, None] + rng.normal(0.0, 1.0, (500, 2))
    costs = fitted({item: np.exp(row).tolist() for item, row in enumerate(y)})
    errors = np.array([costs.log_relative(item) for item in range(500)]) - true
    best = 1.0 / (1.0 / 0.25 + 2.0)  # variance of the posterior
    assert np.mean(errors**2) == pytest.approx(best, rel=0.15)
    assert np.mean(errors**2) < 0.6 * np.mean((y.mean(axis=1) - true) ** 2)


# what a budget pays


@pytest.mark.parametrize("cost", [1e-9, 0.1, 0.7, 1.0, 3e7])
def test_a_budget_pays_as_many_equal_readings_as_it_was_made_of(cost: float) -> None:
    seen = MeanCost()
    assert seen.affordable(600 * cost) is None
    for _ in range(7):
        seen.add(cost)
    assert seen.affordable(600 * cost) == 600


def test_a_budget_pays_as_many_as_there_are_of_the_mean() -> None:
    seen = MeanCost()
    for cost in (1.0, 2.0, 6.0):
        seen.add(cost)
    assert seen.affordable(30.0) == 10


def test_a_budget_pays_any_number_of_readings_that_cost_nothing() -> None:
    seen = MeanCost()
    seen.add(0.0)
    assert seen.affordable(1.0) is None


# models


def test_model_effects_are_found_whatever_items_they_read() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.0, 1.2, 12), rng.normal(0.0, 1.2, 400)
    a -= a.mean()
    # each model reads another stretch of the items, so that plain means would be off
    cells = [(m, i) for m in range(12) for i in range(20 * m, 20 * m + 60)]
    model, item = (np.array(column) for column in zip(*cells, strict=True))
    cost = np.exp(3.0 + a[model] + b[item] + rng.normal(0.0, 0.3, model.size))
    found = model_effects(model, item, cost, 12)
    found -= found.mean()
    assert found == pytest.approx(a, abs=0.35)
    plain = np.array([np.log(cost[model == m]).mean() for m in range(12)])
    assert np.mean((found - a) ** 2) < 0.7 * np.mean((plain - plain.mean() - a) ** 2)
    assert model_effects(model, item, 1e-6 * cost, 12) - found.mean() == pytest.approx(
        model_effects(model, item, cost, 12) - found.mean(), abs=1e-6
    )


def test_model_effects_solve_their_equations_where_readings_are_balanced() -> None:
    # without noise and with many items the shrinkage is nothing: effects are differences of means
    model, item = (axis.ravel() for axis in np.indices((3, 200)))
    cost = np.exp(np.array([-1.0, 0.0, 1.0])[model] + 0.01 * np.sin(item))
    assert model_effects(model, item, cost, 3) == pytest.approx([-1.0, 0.0, 1.0], abs=1e-3)


def test_model_effects_of_equal_costs_are_exactly_nothing() -> None:
    model, item = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])
    for cost in (np.full(4, 0.1), np.zeros(4), np.array([0.0, 0.1, 0.1, 0.0])):
        assert model_effects(model, item, cost, 4).tolist() == [0.0] * 4


def test_a_model_without_a_cell_is_typical() -> None:
    found = model_effects(np.array([0, 0, 2, 2]), np.array([0, 1, 0, 1]), np.array([1.0, 2, 10, 20]), 3)
    assert found[1] == 0.0
    assert found[0] < -0.5 < 0.5 < found[2]
