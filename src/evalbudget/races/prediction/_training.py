r"""Training of item factors from history by alternating bounded steps.

.. math:: \eta_{ij} = a_i + d_j + p_i \cdot q_j, \quad p_i \sim N(0, I), \quad q_j \sim N(0, I/\rho)

rho is the ridge. The levels a_i and the easiness d_j have a weak ridge of their own around 0 and the overall
level, which keeps rows and columns of equal scores, and separable data, finite. Items step given models and
models given items, from a start by principal components of the residuals; no step raises the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evalbudget.races.prediction._logistic import bounded_step, sigmoid
from evalbudget.races.prediction._score_table import Blocks, ScoreTable
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


def train(scores: ScoreTable, rank: int, ridge: float, *, sweeps: int = _SWEEPS) -> Trained:
    """Fit the model at a given rank and ridge.

    Args:
        scores: in [0, 1] or nan, n_models x n_items.
        rank: number of columns of q, below the number of models and of items.
        ridge: rho > 0.
        sweeps: at most so many; stops earlier when predictions move by less than .002.
    """
    m, n = scores.shape
    of_model, of_item, total = np.zeros((2, m)), np.zeros((2, n)), 0.0
    for first, block in scores.by_models():
        seen = ~np.isnan(block)
        filled = np.where(seen, block, 0.0)
        of_model[:, first : first + seen.shape[0]] = filled.sum(axis=1), seen.sum(axis=1)
        of_item += filled.sum(axis=0), seen.sum(axis=0)
        total += float(filled.sum())
    overall = _logit((total + 0.5) / (of_model[1].sum() + 1.0))
    # easiness and level, each by itself, shrunk by two pseudo-scores of the overall mean
    pull = 2.0 * float(sigmoid(overall))
    d = _logit((of_item[0] + pull) / (of_item[1] + 2.0))
    a = _logit((of_model[0] + pull) / (of_model[1] + 2.0)) - overall
    p, q = _start(scores, a, d, rank)
    models = np.column_stack([a, p])
    items = np.column_stack([d, q])
    of_models = np.diag(np.r_[_WEAK, np.ones(rank)])
    of_items = np.diag(np.r_[_WEAK, np.full(rank, ridge)])
    centre = np.r_[float(overall), np.zeros(rank)]
    before = np.full(min(m * n, 4096), np.inf)
    probe = np.linspace(0, m * n - 1, before.size).astype(np.int64)
    for _ in range(sweeps):
        X = np.column_stack([np.ones(n), items[:, 1:]])
        models = bounded_step(scores.by_models(), X, items[:, 0], np.zeros(1 + rank), of_models, models)
        X = np.column_stack([np.ones(m), models[:, 1:]])
        items = bounded_step(scores.by_items(), X, models[:, 0], centre, of_items, items)
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


def _start(scores: ScoreTable, a: FloatArray, d: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Leading principal components of the residuals, on the scale of logits."""
    m, n = scores.shape
    if rank == 0:
        return np.zeros((m, 0)), np.zeros((n, 0))
    # the smaller Gram matrix: history has few models and many items, or the other way round
    if m <= n:
        left, right = _components(lambda: _residuals(scores.by_items(), d, a), rank)
    else:
        right, left = _components(lambda: _residuals(scores.by_models(), a, d), rank)
        size = np.maximum(np.sqrt((left**2).sum(axis=0)), 1e-12)
        left, right = left / size, right * size
    return left * np.sqrt(m), 4.0 * right / np.sqrt(m)


def _residuals(blocks: Blocks, of_row: FloatArray, of_column: FloatArray) -> Iterator[FloatArray]:
    for first, block in blocks:
        level = of_row[first : first + block.shape[0], None]
        yield np.where(np.isnan(block), 0.0, block - sigmoid(level + of_column))


def _components(rows: Callable[[], Iterator[FloatArray]], rank: int) -> tuple[FloatArray, FloatArray]:
    """Leading eigenvectors of the Gram matrix of the columns, and the rows' coordinates in them."""
    _, vectors = np.linalg.eigh(sum(block.T @ block for block in rows()))
    leading = vectors[:, ::-1][:, :rank]
    return leading, np.concatenate([block @ leading for block in rows()])
