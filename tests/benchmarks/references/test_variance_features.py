"""The variance prior from features, against a minimiser, brute force and the sampler without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from evalbudget import Cell, Design
from evalbudget.repeats.samplers import Auto
from evalbudget.testing import gaussian, play
from references.variance_features import FeaturedAuto, expected_squares, log_linear

K = 12


def rating(cell: Cell) -> float:
    return float(min(4, max(0, round(2 + (1 + cell.item % 3) * gaussian(cell) / 2))))


def test_the_regression_minimises_its_quasi_deviance() -> None:
    rng = np.random.default_rng(0)
    z, offset, weight = rng.normal(size=(40, 2)), rng.uniform(0.5, 2, 40), rng.uniform(0.2, 1, 40)
    response = offset * np.exp(1 + z @ [0.7, -0.4]) * rng.exponential(size=40) * (rng.random(40) < 0.5)
    unit = (weight * response).sum() / weight.sum()

    def loss(b: Any) -> float:
        eta = b[0] + z @ b[1:]
        fit = offset * np.exp(eta) - response * eta
        return float((weight * fit).sum() / unit + (b[1:] ** 2).sum() / 2)

    best = minimize(loss, np.zeros(3), tol=1e-12).x
    found = log_linear(z, response, offset, np.vstack([np.zeros(2), np.eye(2)]), weight)
    assert found == pytest.approx([best[0], best[0] + best[1], best[0] + best[2]], abs=1e-4)
    alone = log_linear(z[:, :0], response, offset, z[:1, :0], weight)
    assert alone == pytest.approx([math.log((weight * response).sum() / (weight * offset).sum())])


def test_a_feature_under_which_nothing_varies_stays_finite() -> None:
    z = np.repeat([-1.0, 1.0], 20)[:, None]
    low, high = log_linear(z, (z[:, 0] > 0) * 2.0, np.ones(40), np.array([[-1.0], [1.0]]))
    assert -20 < low < high - 1 < 20


def test_what_the_kernel_expects_of_a_second_reading_is_summed_by_hand() -> None:
    sampler = FeaturedAuto(Design.of_items(K), np.zeros((K, 1)), budget=10 * K)
    play(sampler, 3 * K, score=rating)
    seen: dict[int, list[float]] = {i: [rating(Cell(0, i, epoch, 0)) for epoch in (1, 2)] for i in range(K)}
    sampler.ask()
    levels = sorted({x for pair in seen.values() for x in pair})
    counts = np.array([[pair.count(level) for level in levels] for pair in seen.values()])
    squares, second = expected_squares(sampler._kernel, counts)

    half = (levels[-1] - levels[0]) / 2
    assert squares == pytest.approx([(a - b) ** 2 / 2 / half**2 for a, b in seen.values()])
    pairs = np.zeros((len(levels), len(levels)))
    for a, b in seen.values():
        pairs[levels.index(a), levels.index(b)] += 0.5
        pairs[levels.index(b), levels.index(a)] += 0.5
    T = pairs + 1e-3 * counts.sum(0) / counts.sum()
    T /= T.sum(1, keepdims=True)
    by_hand = [sum(T[i, j] * (a - b) ** 2 / 2 for j, b in enumerate(levels)) for i, a in enumerate(levels)]
    assert second == pytest.approx(np.array(by_hand) / half**2)


def test_the_kernels_urgency_moves_by_the_share_of_its_pseudo_readings() -> None:
    features = (np.arange(K) % 3)[:, None].astype(float)
    sampler = FeaturedAuto(Design.of_items(K), features, budget=10 * K)
    plain = Auto(Design.of_items(K), budget=10 * K)
    for one in (sampler, plain):
        play(one, 3 * K, score=rating)
        one.ask()
    assert sampler.chosen == "rating-kernel"
    assert sampler._log_g[2] > sampler._log_g[1] > sampler._log_g[0]
    for item in range(K):
        if sampler.n_asked(item) == plain.n_asked(item):
            share = plain._kernel.alpha / (2 + plain._kernel.alpha)
            expected = plain._urgency(item) * math.exp(2 * share * sampler._log_g[item])
            assert sampler._urgency(item) == pytest.approx(expected)


def test_without_a_kernel_features_are_the_prior_mean() -> None:
    def score(cell: Cell) -> float:
        return gaussian(cell) * (1 + 2 * (cell.item % 2))

    n = 400
    features = (np.arange(n) % 2)[:, None].astype(float)
    sampler = FeaturedAuto(Design.of_items(n), features, budget=10 * n)
    play(sampler, 3 * n, score=score)
    last = sampler.ask()[0].cell.item
    assert sampler.chosen == "eb-bernstein"
    gaps = np.array([score(Cell(0, i, 1, 0)) - score(Cell(0, i, 2, 0)) for i in range(n)])
    ratio = (gaps[1::2] ** 2).sum() / (gaps[::2] ** 2).sum()
    assert sampler._log_g[1] - sampler._log_g[0] == pytest.approx(math.log(ratio), rel=0.05)
    item = 7 if last != 7 else 9
    a, b = (score(Cell(0, item, epoch, 0)) for epoch in (1, 2))
    g, prior = math.exp(sampler._log_g[item]), sampler._prior
    v = (prior.strength * prior.mean * g + (a - b) ** 2 / 2) / (prior.strength + 1)
    expected = math.sqrt(v / 3) + math.sqrt(math.log(n) * prior.mean * g) / 3
    assert sampler._urgency(item) == pytest.approx(expected)


@pytest.mark.parametrize("score", [rating, gaussian, lambda cell: 1.0], ids=["kernel", "normal", "equal"])
def test_a_feature_that_is_the_same_everywhere_changes_no_decision_of_eb_bernstein(
    score: Callable[[Cell], float],
) -> None:
    featured = FeaturedAuto(Design.of_items(K), np.ones((K, 1)), budget=10 * K, seed=3)
    plain = Auto(Design.of_items(K), budget=10 * K, seed=3)
    runs = [[event.request for event in play(one, 10 * K, score=score)] for one in (featured, plain)]
    if plain.chosen == "eb-bernstein":
        assert runs[0] == runs[1]
    else:  # the kernel's smoothing leaves a constant factor near 1
        assert abs(featured._log_g[0]) < 0.1
        assert len(set(featured._log_g)) == 1
