"""What the next reading will cost: against the formulas in plain Python, and in worlds with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from evalbudget.statistics._costs import model_effects


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
