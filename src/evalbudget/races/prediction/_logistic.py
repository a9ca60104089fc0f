r"""Ridge logistic regression with scores in [0, 1]: Newton for one row, bounded steps for all rows at once.

.. math:: \min_u \sum_j \bigl[\log(1 + e^{\eta_j}) - s_j \eta_j\bigr] + \tfrac12 (u - m)^\top P (u - m),
          \quad \eta_j = o_j + x_j^\top u

Newton's weights p(1 - p) vanish where predictions saturate, and its steps may then overshoot. The quadratic
bound of Jaakkola & Jordan (2000), weights w(\eta) = tanh(\eta/2) / (2\eta), never does: every step lowers
the objective. One row takes Newton's step and falls back on the bound; training uses the bound alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evalbudget.statistics._bounds import FloatArray

_STEPS = 50
_ROWS = 256
_CELLS = 1 << 21
"""At most so many rows, and scores, are worked on at once."""


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x), dtype=np.float64)


def bound_weights(eta: FloatArray) -> FloatArray:
    """Curvature of the quadratic bound, tanh(eta/2) / (2 eta): 1/4 at 0, decaying like 1/(2 |eta|)."""
    size = np.maximum(np.abs(eta), 1e-6)
    return np.asarray(np.tanh(0.5 * size) / (2.0 * size), dtype=np.float64)


def fit_row(
    X: FloatArray, offset: FloatArray, score: FloatArray, start: FloatArray, tolerance: float = 1e-3
) -> FloatArray:
    """Coefficients of one row under a standard normal prior (m = 0, P = I).

    With fewer scores than coefficients the problem is solved in the span of the x_j.

    Args:
        X: x_j, shape (n, r).
        offset: o_j, shape (n,).
        score: s_j in [0, 1], shape (n,).
        start: where to begin, shape (r,).
        tolerance: one more step, and done, when the objective cannot fall by more than half of this.

    Returns:
        u, shape (r,).
    """
    n, r = X.shape
    if n < r:
        basis, triangle = np.linalg.qr(X.T)
        return np.asarray(basis @ _newton(triangle.T, offset, score, basis.T @ start, tolerance))
    return _newton(X, offset, score, start, tolerance)


def _newton(
    X: FloatArray, offset: FloatArray, score: FloatArray, u: FloatArray, tolerance: float
) -> FloatArray:
    ridge = np.eye(X.shape[1])
    loss, eta = _objective(X, offset, score, u)
    for _ in range(_STEPS):
        p = sigmoid(eta)
        gradient = X.T @ (score - p) - u
        step = np.linalg.solve(ridge + X.T @ (X * (p * (1.0 - p))[:, None]), gradient)
        if float(gradient @ step) < tolerance:
            return np.asarray(u + step, dtype=np.float64)
        new, new_eta = _objective(X, offset, score, u + step)
        if not new <= loss:
            step = np.linalg.solve(ridge + X.T @ (X * bound_weights(eta)[:, None]), gradient)
            new, new_eta = _objective(X, offset, score, u + step)
        u, loss, eta = u + step, new, new_eta
    return u


def _objective(
    X: FloatArray, offset: FloatArray, score: FloatArray, u: FloatArray
) -> tuple[float, FloatArray]:
    eta = offset + X @ u
    # log(1 + e^eta) without overflow; np.logaddexp is ten times slower
    softplus = np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))
    return float(softplus.sum() - score @ eta + 0.5 * u @ u), eta


def fit_rows(X: FloatArray, offset: FloatArray, scores: FloatArray, steps: int = 30) -> FloatArray:
    """Coefficients of many rows that answered the same items, under a standard normal prior.

    Args:
        X: x_j, shape (n, r).
        offset: o_j, shape (n,).
        scores: s_ij in [0, 1], nan where missing, shape (m, n).
        steps: steps down the bound, each as good as Newton's for moderate scores.

    Returns:
        u_i, shape (m, r).
    """
    n, r = X.shape
    if not n:
        return np.zeros((scores.shape[0], r))
    basis, triangle = np.linalg.qr(X.T) if n < r else (np.eye(r), X.T)
    reduced = triangle.T
    q = reduced.shape[1]
    u = np.zeros((scores.shape[0], q))
    for _ in range(steps):
        before, u = u, bounded_step([(0, scores)], reduced, offset, np.zeros(q), np.eye(q), u)
        if float(np.abs(u - before).max(initial=0.0)) < 1e-3:
            break
    return np.asarray(u @ basis.T, dtype=np.float64)


def bounded_step(
    scores: Iterable[tuple[int, FloatArray]],
    X: FloatArray,
    offset: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    coefficients: FloatArray,
) -> FloatArray:
    """One step of all rows down the quadratic bound; nan cells do not count.

    Args:
        scores: s_ij in [0, 1] or nan, shape (m, n), by blocks of rows with the number of the first.
        X: x_j, shape (n, r).
        offset: o_j, shape (n,).
        mean: m, shape (r,).
        precision: P, shape (r, r).
        coefficients: u_i before the step, shape (m, r).

    Returns:
        u_i after it, shape (m, r); no row's objective rises.
    """
    n, r = X.shape
    upper = np.triu_indices(r)
    products = X[:, upper[0]] * X[:, upper[1]]
    result = np.empty_like(coefficients)
    step = min(_ROWS, max(1, _CELLS // max(n, 1)))
    for at, s in (
        (first + begin, block[begin : begin + step])
        for first, block in scores
        for begin in range(0, block.shape[0], step)
    ):
        rows = slice(at, at + s.shape[0])
        u = coefficients[rows]
        seen = ~np.isnan(s)
        eta = offset + u @ X.T
        # both sigmoid and bound weights, from the one tanh that takes most of the time
        half = np.tanh(0.5 * eta)
        residual = np.where(seen, s - 0.5 - 0.5 * half, 0.0)
        close = np.abs(eta) < 1e-6
        weights = np.where(close, 0.25, half / np.where(close, 1.0, 2.0 * eta))
        weights *= seen
        hessian = np.empty((s.shape[0], r, r))
        hessian[:, upper[0], upper[1]] = weights @ products
        hessian[:, upper[1], upper[0]] = hessian[:, upper[0], upper[1]]
        hessian += precision
        gradient = residual @ X + (mean - u) @ precision
        result[rows] = u + np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    return result
