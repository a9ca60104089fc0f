r"""Ridge logistic regression with scores in [0, 1]: Newton for one row, bounded steps for all rows at once.

.. math:: \min_u \sum_j \bigl[\log(1 + e^{\eta_j}) - s_j \eta_j\bigr] + \tfrac12 (u - m)^\top P (u - m),
          \quad \eta_j = o_j + x_j^\top u

Newton's weights p(1 - p) vanish where predictions saturate, and its steps may then overshoot. The quadratic
bound of Jaakkola & Jordan (2000), weights w(\eta) = tanh(\eta/2) / (2\eta), never does: every step lowers
the objective. One row takes Newton's step and falls back on the bound; training uses the bound alone.
"""

from __future__ import annotations

import numpy as np

from evalbudget.confidence.bounds import FloatArray

_STEPS = 50
_ROWS = 256


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x), dtype=np.float64)


def bound_weights(eta: FloatArray) -> FloatArray:
    """Curvature of the quadratic bound, tanh(eta/2) / (2 eta): 1/4 at 0, decaying like 1/(2 |eta|)."""
    size = np.maximum(np.abs(eta), 1e-6)
    return np.asarray(np.tanh(0.5 * size) / (2.0 * size), dtype=np.float64)


def fit_row(
    X: FloatArray,
    score: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    start: FloatArray | None = None,
    tolerance: float = 1e-5,
) -> FloatArray:
    """Coefficients of one row.

    Args:
        X: x_j, shape (n, r).
        score: s_j in [0, 1], shape (n,).
        mean: m, shape (r,).
        precision: P, positive definite, shape (r, r).
        start: where to begin, shape (r,); default m.
        tolerance: stop when the objective cannot fall by more than half of this.

    Returns:
        u, shape (r,).
    """
    u = np.array(mean if start is None else start, dtype=np.float64)
    if not score.size:
        return mean.copy()
    loss, eta = _objective(X, score, mean, precision, u)
    for _ in range(_STEPS):
        p = sigmoid(eta)
        gradient = precision @ (mean - u) + X.T @ (score - p)
        step = np.linalg.solve(precision + X.T @ (X * (p * (1.0 - p))[:, None]), gradient)
        if float(gradient @ step) < tolerance:
            # within the tolerance of the optimum: the step only helps
            return np.asarray(u + step, dtype=np.float64)
        new, new_eta = _objective(X, score, mean, precision, u + step)
        if not new <= loss:
            step = np.linalg.solve(precision + X.T @ (X * bound_weights(eta)[:, None]), gradient)
            new, new_eta = _objective(X, score, mean, precision, u + step)
        u, loss, eta = u + step, new, new_eta
    return u


def _objective(
    X: FloatArray, score: FloatArray, mean: FloatArray, precision: FloatArray, u: FloatArray
) -> tuple[float, FloatArray]:
    eta = X @ u
    off = u - mean
    return float(np.logaddexp(0.0, eta).sum() - score @ eta + 0.5 * off @ precision @ off), eta


def bounded_step(
    scores: FloatArray,
    X: FloatArray,
    offset: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
    coefficients: FloatArray,
) -> FloatArray:
    """One step of all rows down the quadratic bound; nan cells do not count.

    Args:
        scores: s_ij in [0, 1] or nan, shape (m, n).
        X: x_j, shape (n, r).
        offset: o_j, shape (n,).
        mean: m, shape (r,).
        precision: P, shape (r, r).
        coefficients: u_i before the step, shape (m, r).

    Returns:
        u_i after it, shape (m, r); no row's objective rises.
    """
    r = X.shape[1]
    upper = np.triu_indices(r)
    products = X[:, upper[0]] * X[:, upper[1]]
    result = np.empty_like(coefficients)
    for begin in range(0, scores.shape[0], _ROWS):
        rows = slice(begin, begin + _ROWS)
        s, u = scores[rows], coefficients[rows]
        seen = ~np.isnan(s)
        eta = offset + u @ X.T
        residual = np.where(seen, s, 0.5) - sigmoid(eta)
        residual[~seen] = 0.0
        weights = bound_weights(eta)
        weights *= seen
        hessian = np.empty((s.shape[0], r, r))
        hessian[:, upper[0], upper[1]] = weights @ products
        hessian[:, upper[1], upper[0]] = hessian[:, upper[0], upper[1]]
        hessian += precision
        gradient = residual @ X + (mean - u) @ precision
        result[rows] = u + np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    return result
