from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from evalbudget.races.prediction._logistic import bound_weights, bounded_step, fit_row, fit_rows, sigmoid
from evalbudget.statistics._bounds import FloatArray


def objective(X: FloatArray, offset: FloatArray, score: FloatArray, u: FloatArray) -> float:
    eta = offset + X @ u
    return float((np.logaddexp(0, eta) - score * eta).sum() + 0.5 * u @ u)


def problem(n: int, r: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(n, r)), rng.normal(size=n)
    score = rng.choice([0.0, 0.25, 1.0], size=n)
    return X, offset, score


@pytest.mark.parametrize(("n", "r"), [(40, 4), (5, 12), (1, 3), (300, 2)])
@pytest.mark.parametrize("start", [0.0, 30.0])
def test_newton_against_a_general_optimizer(n: int, r: int, start: float) -> None:
    X, offset, score = problem(n, r, n)
    u = fit_row(X, offset, score, np.full(r, start), tolerance=1e-10)
    best = minimize(lambda x: objective(X, offset, score, x), np.zeros(r), method="BFGS", tol=1e-9)
    np.testing.assert_allclose(u, best.x, atol=1e-4)
    # with fewer scores than factors the answer does not depend on what was outside their span
    assert objective(X, offset, score, u) <= best.fun + 1e-9


def test_separable_and_saturated_data_stay_finite() -> None:
    X = np.r_[np.full((200, 1), 10.0), np.full((200, 1), -10.0)]
    score = np.r_[np.ones(200), np.zeros(200)]
    for start in (-50.0, 0.0, 50.0):
        u = fit_row(X, np.zeros(400), score, np.array([start]), tolerance=1e-9)
        assert 0 < u[0] < 5
        assert u[0] == pytest.approx(fit_row(X, np.zeros(400), score, np.zeros(1), tolerance=1e-9)[0])


@pytest.mark.parametrize(("n", "r"), [(30, 3), (4, 9)])
def test_many_rows_against_one(n: int, r: int) -> None:
    X, offset, _ = problem(n, r, 3)
    scores = np.random.default_rng(4).choice([0.0, 0.5, 1.0, np.nan], size=(7, n))
    many = fit_rows(X, offset, scores, steps=200)
    for row, u in zip(scores, many, strict=True):
        seen = ~np.isnan(row)
        one = fit_row(X[seen], offset[seen], row[seen], np.zeros(r), tolerance=1e-10)
        np.testing.assert_allclose(u, one, atol=0.01)


def test_nothing_answered_is_the_prior() -> None:
    assert (fit_rows(np.zeros((0, 3)), np.zeros(0), np.zeros((4, 0))) == 0).all()


def test_bounded_steps_never_raise_the_objective() -> None:
    rng = np.random.default_rng(0)
    X, offset, _ = problem(25, 3, 1)
    scores = rng.choice([0.0, 1.0, np.nan], size=(6, 25))
    mean = np.array([1.0, -1.0, 0.0])
    A = rng.normal(size=(3, 3))
    precision = A @ A.T + np.eye(3)

    def losses(U: FloatArray) -> FloatArray:
        total = []
        for s, u in zip(scores, U, strict=True):
            seen = ~np.isnan(s)
            eta = (offset + X @ u)[seen]
            off = u - mean
            total.append((np.logaddexp(0, eta) - s[seen] * eta).sum() + 0.5 * off @ precision @ off)
        return np.array(total)

    U = rng.normal(0, 20, size=(6, 3))
    for _ in range(30):
        new = bounded_step([(0, scores)], X, offset, mean, precision, U)
        assert (losses(new) <= losses(U) + 1e-9).all()
        U = new


def test_weights_and_sigmoid_at_the_ends() -> None:
    x = np.array([-800.0, -1.0, 0.0, 1e-9, 1.0, 800.0])
    np.testing.assert_allclose(sigmoid(x), [0, 1 / (1 + np.e), 0.5, 0.5, np.e / (1 + np.e), 1], atol=1e-9)
    np.testing.assert_allclose(bound_weights(x)[[0, 2, 3]], [1 / 1600, 0.25, 0.25], rtol=1e-6)
