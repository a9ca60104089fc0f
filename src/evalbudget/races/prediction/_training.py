r"""Training of item factors from history by alternating bounded steps.

.. math:: \eta_{ij} = a_i + d_j + p_i \cdot q_j, \quad p_i \sim N(0, I), \quad q_j \sim N(0, I/\rho)

rho is the ridge. The levels a_i and the easiness d_j have a weak ridge of their own around 0 and the overall
level, which keeps rows and columns of equal scores, and separable data, finite. Items step given models and
models given items, from a start by principal components of the residuals; no step raises the objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.races.prediction._logistic import bounded_step, sigmoid
from evalbudget.statistics._bounds import FloatArray

_WEAK = 0.1
_SWEEPS = 40
_STILL = 0.002


@dataclass(frozen=True)
class Trained:
    """Factors of a history.

    Attributes:
        V: columns 1, d_j, q_j, shape (n_items, 2 + rank).
        U: columns a_i, 1, p_i, shape (n_models, 2 + rank).
    """

    V: FloatArray
    U: FloatArray


def train(scores: FloatArray, rank: int, ridge: float, *, sweeps: int = _SWEEPS) -> Trained:
    """Fit the model at a given rank and ridge.

    Args:
        scores: in [0, 1] or nan, shape (n_models, n_items).
        rank: number of columns of q, below the number of models and of items.
        ridge: rho > 0.
        sweeps: at most so many; stops earlier when predictions move by less than .002.
    """
    m, n = scores.shape
    seen = ~np.isnan(scores)
    filled = np.where(seen, scores, 0.0)
    overall = _logit((filled.sum() + 0.5) / (seen.sum() + 1.0))
    # easiness and level, each by itself, shrunk by two pseudo-scores of the overall mean
    pull = 2.0 * float(sigmoid(overall))
    d = _logit((filled.sum(axis=0) + pull) / (seen.sum(axis=0) + 2.0))
    a = _logit((filled.sum(axis=1) + pull) / (seen.sum(axis=1) + 2.0)) - overall
    p, q = _start(np.where(seen, scores - sigmoid(a[:, None] + d), 0.0), rank)
    transposed = np.ascontiguousarray(scores.T)
    models = np.column_stack([a, p])
    items = np.column_stack([d, q])
    of_models = np.diag(np.r_[_WEAK, np.ones(rank)])
    of_items = np.diag(np.r_[_WEAK, np.full(rank, ridge)])
    centre = np.r_[float(overall), np.zeros(rank)]
    before = np.full(min(m * n, 4096), np.inf)
    probe = np.linspace(0, m * n - 1, before.size).astype(np.int64)
    for _ in range(sweeps):
        X = np.column_stack([np.ones(n), items[:, 1:]])
        models = bounded_step(scores, X, items[:, 0], np.zeros(1 + rank), of_models, models)
        X = np.column_stack([np.ones(m), models[:, 1:]])
        items = bounded_step(transposed, X, models[:, 0], centre, of_items, items)
        i, j = np.divmod(probe, n)
        now = sigmoid(models[i, 0] + items[j, 0] + (models[i, 1:] * items[j, 1:]).sum(axis=1))
        if float(np.abs(now - before).max()) < _STILL:
            break
        before = now
    V = np.column_stack([np.ones(n), items])
    U = np.column_stack([models[:, 0], np.ones(m), models[:, 1:]])
    return Trained(V, U)


def _logit(p: FloatArray | float) -> FloatArray:
    return np.asarray(np.log(p) - np.log1p(-np.asarray(p)), dtype=np.float64)


def _start(residuals: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Leading principal components of the residuals, on the scale of logits."""
    m, n = residuals.shape
    if rank == 0:
        return np.zeros((m, 0)), np.zeros((n, 0))
    # the smaller Gram matrix: history has few models and many items, or the other way round
    if m <= n:
        _, vectors = np.linalg.eigh(residuals @ residuals.T)
        left = vectors[:, ::-1][:, :rank]
        right = residuals.T @ left
    else:
        _, vectors = np.linalg.eigh(residuals.T @ residuals)
        right = vectors[:, ::-1][:, :rank]
        left = residuals @ right
        size = np.maximum(np.sqrt((left**2).sum(axis=0)), 1e-12)
        left, right = left / size, right * size
    return left * np.sqrt(m), 4.0 * right / np.sqrt(m)
