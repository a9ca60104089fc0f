"""What history's models say about the next one: mean and precision of the models' factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.races.prediction._logistic import bounded_step, sigmoid
from evalbudget.races.prediction._score_table import ScoreTable
from evalbudget.statistics._bounds import FloatArray

_ROUNDS = 5
_STEPS = 4
_STILL = 0.003
_PSEUDO = 2.0
"""The default spread counts as much as this many models."""


@dataclass(frozen=True)
class Prior:
    """Normal prior of the models' factors.

    Attributes:
        mean: shape (rank,).
        precision: shape (rank, rank).
        U: the history's factors under it, shape (n_models, rank).
    """

    mean: FloatArray
    precision: FloatArray
    U: FloatArray


def fit_prior(scores: ScoreTable, V: FloatArray, U: FloatArray, spread: FloatArray) -> Prior:
    """Empirical Bayes by EM with Laplace's approximation, V given.

    The covariance is that of the fitted factors plus their mean posterior covariance: fitted factors alone
    are shrunk, and would shrink the next model too much.

    Args:
        scores: history, in [0, 1] or nan.
        V: shape (n_items, rank).
        U: where to begin, shape (n_models, rank).
        spread: default standard deviation of each factor, worth two models, shape (rank,).
    """
    m = U.shape[0]
    mean = U.mean(axis=0)
    precision = np.diag(spread**-2.0)
    none = np.zeros(V.shape[0])
    for _ in range(_ROUNDS):
        for _ in range(_STEPS):
            before, U = U, bounded_step(scores.by_models(), V, none, mean, precision, U)
            if float(np.abs(U - before).max(initial=0.0)) < _STILL:
                break
        mean = U.mean(axis=0)
        precision = _precision(U, spread, _uncertainty(scores, V, U, precision) * m)
    return Prior(mean, precision, U)


def prior_of_factors(U: FloatArray) -> Prior:
    """Prior from factors that are taken for exact, shape (n_models, rank)."""
    size = np.sqrt((U**2).mean(axis=0))
    spread = np.where(size > 0, size, 1.0)
    return Prior(U.mean(axis=0), _precision(U, spread, np.zeros((U.shape[1],) * 2)), U)


def _precision(U: FloatArray, spread: FloatArray, uncertainty: FloatArray) -> FloatArray:
    centred = U - U.mean(axis=0)
    total = centred.T @ centred + uncertainty + _PSEUDO * np.diag(spread**2)
    inverse = np.linalg.inv(total / (U.shape[0] + _PSEUDO))
    return np.asarray((inverse + inverse.T) / 2, dtype=np.float64)


def _uncertainty(scores: ScoreTable, V: FloatArray, U: FloatArray, precision: FloatArray) -> FloatArray:
    """Mean posterior covariance of the rows of U."""
    total = np.zeros_like(precision)
    rows = (s for _, block in scores.by_models() for s in block)
    for s, u in zip(rows, U, strict=True):
        seen = ~np.isnan(s)
        X = V[seen]
        p = sigmoid(X @ u)
        total += np.linalg.inv(precision + X.T @ (X * (p * (1 - p))[:, None]))
    return np.asarray(total / max(U.shape[0], 1), dtype=np.float64)
