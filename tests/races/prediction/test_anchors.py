from __future__ import annotations

import numpy as np
import pytest

from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, calibrate, choose_anchors
from evalbudget.statistics._bounds import FloatArray


def factors(n: int = 40, seed: int = 0) -> FactorModel:
    return FactorModel.of_factors(np.random.default_rng(seed).normal(size=(n, 3)))


def variance_of_the_mean(model: FactorModel, item: list[int]) -> float:
    """By inverting the whole information, at the prior mean."""
    p = model.predict(model.prior_mean)
    w = p * (1 - p)
    g = w @ model.V / model.n_items
    information = model.prior_precision.copy()
    for j in item:
        information += w[j] * np.outer(model.V[j], model.V[j])
    return float(g @ np.linalg.inv(information) @ g)


def test_greedy_against_brute_force() -> None:
    model = factors()
    chosen: list[int] = []
    for _ in range(6):
        left = [j for j in range(40) if j not in chosen]
        chosen.append(min(left, key=lambda j: variance_of_the_mean(model, [*chosen, j])))
    assert choose_anchors(model, 6).tolist() == chosen


def test_greedy_against_brute_force_for_several_models() -> None:
    rng = np.random.default_rng(3)
    V, U = rng.normal(size=(30, 2)), rng.normal(size=(4, 2))
    model = FactorModel.of_factors(V, U=U)
    typical = np.vstack([model.prior_mean, U])

    def gain(item: list[int], j: int) -> float:
        total = 0.0
        for u in typical:
            p = model.predict(u)
            w = p * (1 - p)
            g = w @ V / 30
            Q = np.linalg.inv(model.prior_precision + sum(w[i] * np.outer(V[i], V[i]) for i in item))
            scale = g @ model.prior_covariance @ g
            total += w[j] * (g @ Q @ V[j]) ** 2 / (1 + w[j] * V[j] @ Q @ V[j]) / scale
        return float(total)

    chosen: list[int] = []
    for _ in range(5):
        chosen.append(max((j for j in range(30) if j not in chosen), key=lambda j: gain(chosen, j)))
    assert choose_anchors(model, 5).tolist() == chosen


def test_what_may_be_chosen() -> None:
    model = factors()
    assert len(set(choose_anchors(model, 15).tolist())) == 15
    assert choose_anchors(model, 0).size == 0
    with pytest.raises(InvalidInputError, match="41 anchors of 40 eligible"):
        choose_anchors(model, 41)


def history(m: int, n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    eta = rng.normal(0.3, 1, (m, 1)) + rng.normal(0, 1.3, n)
    return (rng.random((m, n)) < 1 / (1 + np.exp(-eta))).astype(float)


def test_calibration_of_held_out_models_tells_the_error_of_new_ones() -> None:
    scores = history(400, 200, 2)
    model = FactorModel.train(scores[:100], rank=0, ridge=1.0)
    item = choose_anchors(model, 12)
    calibration = calibrate(model, item)
    assert calibration.n_models == 100
    predicted = model.predict(model.fit_rows(item, scores[100:, item])).mean(axis=1)
    error = calibration(predicted) - scores[100:].mean(axis=1)
    assert calibration.sd == pytest.approx(np.sqrt((error**2).mean()), rel=0.2)
    assert calibration.slope == pytest.approx(1.0, abs=0.15)


def test_calibration_of_saved_factors_is_simulated() -> None:
    rng = np.random.default_rng(0)
    U = np.column_stack([rng.normal(0, 1, 300), np.ones(300)])
    V = np.column_stack([np.ones(200), rng.normal(0, 1.3, 200)])
    model = FactorModel.of_factors(V, U=U)
    item = choose_anchors(model, 12)
    calibration = calibrate(model, item, seed=1)
    assert calibration == calibrate(model, item, seed=1)
    p = model.predict(U)
    scores = (rng.random(p.shape) < p).astype(float)
    predicted = model.predict(model.fit_rows(item, scores[:, item])).mean(axis=1)
    error = calibration(predicted) - p.mean(axis=1)
    assert calibration.sd == pytest.approx(np.sqrt((error**2).mean()), rel=0.2)


def test_calibration_on_hardly_any_models_is_cautious() -> None:
    model = FactorModel.train(history(1, 30, 0))
    calibration = calibrate(model, np.arange(5))
    assert calibration.sd >= 0.05
    assert FactorModel.train(history(2, 30, 0)).folds
    assert calibrate(FactorModel.of_factors(np.ones((20, 2))), np.arange(4)).n_models == 300
