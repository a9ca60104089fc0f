"""The choice of audit rates and of the way on, against brute force and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evalbudget.audits._always_valid_evidence import GAMMA, STEPS, pair_range, reach
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._label_rates import (
    LEAST,
    Pool,
    Rates,
    Task,
    _floors,
    _steps,
    audits_only,
    best_rates,
    expected_pass_labels,
    fits_disjoint,
    pool_cost,
    residual_variance,
    single_audits_only,
    single_needed,
    single_pool_cost,
    single_rates,
    skipping_cost,
)

M = np.array([[0.8, 0.5], [0.3, 0.6], [0.2, 0.4]])
G = np.array([[0.02, 0.05], [0.04, 0.03], [0.01, 0.06]])
SHARE = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
CALIBRATION = Calibration(np.array([0.5]), M, G, SHARE)


def task(*, gap: tuple[float, float] = (0.1, 0.2)) -> Task:
    return Task(0, np.array([1, 2]), np.array(gap), np.array([0.05, 0.03]), 5.0, 1.0, 20.0)


@pytest.mark.parametrize("leader", [0, 1])
def test_floors_are_the_least_rates_that_keep_each_width(leader: int) -> None:
    """Exactly the width, from the side that the arm is on: any smaller rate goes beyond it."""
    widths = (1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0)
    for width, floor in zip(widths, _floors(M, leader), strict=True):
        for k, c in itertools.product(range(3), range(2)):
            if k == leader:
                falls = M[k, c] * (1.0 / floor[k, c] - 1.0)
                assert 1.0 + falls == pytest.approx(width)
            else:
                rises = M[k, c] + (1.0 - M[k, c]) / floor[k, c]
                assert rises == pytest.approx(width)
        a, b = reach(M, np.clip(floor, LEAST, 1.0))
        disjoint = np.ones((3, 3), dtype=bool)
        for rival in {0, 1, 2} - {leader}:
            assert pair_range(a, b, disjoint)[leader, rival] <= width + 1e-9


def expected_cost(propensity: np.ndarray, to_do: Task, *, judged: bool, variance: np.ndarray | None) -> float:
    """Term by term."""
    total, most = 0.0, 0.0
    rate = [float((SHARE[k] * propensity[k]).sum()) for k in range(3)]
    price = [20.0 * r + (1.0 if judged else 0.0) for r in rate]
    for r, rival in enumerate(to_do.rivals):
        gap = to_do.gap[r]
        if variance is None:
            v = to_do.spread[r] + sum(
                SHARE[k, c] * G[k, c] / propensity[k, c] for k in (0, rival) for c in range(2)
            )
        else:
            v = variance[r]
        falls = max(M[0, c] * (1 / propensity[0, c] - 1) for c in range(2))
        rises = max(M[rival, c] + (1 - M[rival, c]) / propensity[rival, c] for c in range(2))
        apart = propensity[0].max() + propensity[rival].max() <= 1.0
        width = max(falls + 1.0, rises) if apart else falls + rises
        growth = 0.0
        for d in STEPS:
            bet = min(d / (v + d * d), GAMMA / width)
            growth = max(growth, bet * gap - bet**2 * (v + gap**2) / 2)
        steps = to_do.log_threshold / growth
        total += steps * price[rival]
        most = max(most, steps)
    return total + most * price[0]


def test_the_cost_of_rates_is_added_up_as_the_formula_says() -> None:
    to_do = task()
    found = best_rates(CALIBRATION, to_do)
    assert found.cost == pytest.approx(
        expected_cost(found.propensity, to_do, judged=True, variance=None), rel=1e-9
    )
    assert found.contexts == found.steps.max()
    everything = np.ones((3, 2))
    assert found.cost <= expected_cost(everything, to_do, judged=True, variance=None) + 1e-9
    for rate in (0.02, 0.1, 0.3, 0.6):
        uniform = np.full((3, 2), rate)
        assert found.cost <= 1.15 * expected_cost(uniform, to_do, judged=True, variance=None)
    spread = np.array([0.2, 0.3])
    alone = audits_only(CALIBRATION, to_do, spread)
    assert alone.cost == pytest.approx(expected_cost(everything, to_do, judged=False, variance=spread))


def test_disjoint_coins_fit_where_the_largest_rates_do() -> None:
    propensity = np.array([[0.3, 0.6], [0.2, 0.4], [0.5, 0.1]])
    np.testing.assert_array_equal(
        fits_disjoint(propensity, 0),
        [[False, True, False], [True, False, False], [False, False, False]],
    )


def test_residual_variance_is_the_mean_square_over_the_rate() -> None:
    propensity = np.array([[0.5, 0.1], [1.0, 0.25], [0.2, 0.4]])
    expected = [sum(SHARE[k, c] * G[k, c] / propensity[k, c] for c in range(2)) for k in range(3)]
    np.testing.assert_allclose(residual_variance(CALIBRATION, propensity), expected)


def test_labels_of_a_second_pass_against_the_sum_they_solve() -> None:
    """Adding up the gain of each label until the threshold is reached."""
    for n_items, gap, variance in ((2000, 0.05, 0.02), (500, 0.2, 0.1)):
        found = float(expected_pass_labels(n_items, np.array([gap]), np.array([variance]), 4.0)[0])
        gained, n = 0.0, 0
        while gained < 4.0:
            gained += (gap * n_items / (n_items - n)) ** 2 / (2 * (variance + gap**2))
            n += 1
        assert found == pytest.approx(n, rel=0.02, abs=2)
    assert single_needed(300, 0.1, 0.05, 0.05)[0] == pytest.approx(
        300 * _steps(0.1, 1.0, 0.05, 0.05) / (300 + _steps(0.1, 1.0, 0.05, 0.05))
    )


def test_steps_give_back_the_half_width() -> None:
    for variance, width, half, alpha in ((0.05, 1.0, 0.05, 0.05), (0.2, 6.0, 0.1, 0.01)):
        t, log = _steps(variance, width, half, alpha), math.log(2 / alpha)
        assert math.sqrt(2 * variance * log / t) + width * log / (3 * t) == pytest.approx(half)


def test_what_a_pool_costs_by_hand() -> None:
    """Rates .5 and .25: the first rival needs 40 items, the second 200 of the 100 left."""
    propensity = np.repeat([[0.5], [0.25], [0.25]], 2, axis=1)
    rates = Rates(propensity, 1.0, 200.0, np.array([40.0, 200.0]))
    pool = Pool(100, np.array([30.0, 70.0]))
    judged = 40 * (1 + 5) + 100 * (1 + 5) + 100 * (1 + 10) + 70 * 0.75 * 20 + 70 * 0.5 * 20
    assert pool_cost(CALIBRATION, rates, task(), pool, judged=True) == pytest.approx(judged)
    unjudged = 40 * 5 + 100 * 5 + 100 * 10 + 70 * 0.75 * 20 + 70 * 0.5 * 20
    assert pool_cost(CALIBRATION, rates, task(), pool, judged=False) == pytest.approx(unjudged)
    assert skipping_cost(task(), pool, judged=True) == pytest.approx(3 * 100 + 20 * (30 + 70 + 70))
    assert skipping_cost(task(), pool, judged=False) == pytest.approx(20 * (30 + 70 + 70))
    enough = Pool(900, np.array([30.0, 70.0]))
    plenty = 40 * 6 + 200 * 6 + 200 * 11
    assert pool_cost(CALIBRATION, rates, task(), enough, judged=True) == pytest.approx(plenty)


def test_one_system_by_hand() -> None:
    one = Calibration(np.array([0.5]), M[:1], G[:1], SHARE[:1])
    rates = Rates(np.full((1, 2), 0.25), 1.0, 200.0, np.array([200.0]))
    prices, short, enough = (1.0, 20.0), Pool(100, np.array([60.0])), Pool(800, np.array([60.0]))
    assert single_pool_cost(one, rates, short, prices, judged=True) == pytest.approx(100 * 6 + 60 * 15)
    assert single_pool_cost(one, rates, enough, prices, judged=False) == pytest.approx(200 * 5)
    alone = single_audits_only(one, 0.2, 0.05, 0.05, 20.0)
    assert alone.contexts == pytest.approx(_steps(0.2, 1.0, 0.05, 0.05))
    assert alone.cost == pytest.approx(20.0 * alone.contexts)
    best = single_rates(one, 0.05, 0.05, 0.05, prices)
    a, b = reach(M[:1], best.propensity)
    v = 0.05 + sum(SHARE[0, c] * G[0, c] / best.propensity[0, c] for c in range(2))
    price = 1.0 + 20.0 * sum(SHARE[0, c] * best.propensity[0, c] for c in range(2))
    assert best.cost == pytest.approx(price * _steps(v, float((a + b)[0]), 0.05, 0.05))
    assert best.cost <= single_audits_only(one, 0.05 + 0.029, 0.05, 0.05, 21.0).cost * 1.05
