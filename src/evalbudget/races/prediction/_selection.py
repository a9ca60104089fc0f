"""Rank and ridge by cross-validation over held-out cells of held-out models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.races.prediction._logistic import fit_rows, sigmoid
from evalbudget.races.prediction._prior import Prior, fit_prior
from evalbudget.races.prediction._score_table import ScoreTable, table_of
from evalbudget.races.prediction._training import train
from evalbudget.statistics._bounds import FloatArray, IntArray

RANKS = (0, 1, 2, 4, 8, 16)
RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_FEWEST = 4
"""With fewer models there is nothing to validate on: levels and easiness only."""
_MODELS, _ITEMS = 240, 1000
"""The choice is made on at most so many; the training that follows uses all."""
_FOLDS = 3
_ANSWERED = (48, 192)
"""A model that is soon dropped and one that stays: both are to be predicted well."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What cross-validation chose.

    Attributes:
        rank: number of factors beyond level and easiness.
        ridge: of the item factors.
        error: mean squared error of held-out cells, by (rank, ridge) tried.
    """

    rank: int
    ridge: float
    error: dict[tuple[int, float], float]


def choose(scores: ScoreTable, *, seed: int, rank: int | None = None, ridge: float | None = None) -> Choice:
    """Rank first, at a ridge of 1, then the ridge: unseen models predicted from 48 and 192 cells.

    Of few items, from a quarter and a half of them.

    Args:
        scores: history, in [0, 1] or nan.
        seed: of the folds and of the cells.
        rank: fixed by the user.
        ridge: fixed by the user.
    """
    rng = np.random.default_rng(seed)
    m, n = scores.shape
    largest = _largest(scores)
    if m < _FEWEST or (rank is not None and ridge is not None):
        return Choice(min(rank or 0, largest), 1.0 if ridge is None else ridge, {})
    models = np.sort(rng.permutation(m)[:_MODELS])
    items = np.sort(rng.permutation(n)[:_ITEMS])
    sample = scores.read(models, items)
    fold = fold_of(models.size, rng)
    cells = [rng.permutation(items.size) for _ in range(_FOLDS)]
    error: dict[tuple[int, float], float] = {}

    def attempt(rank: int, ridge: float) -> float:
        if (rank, ridge) not in error:
            error[rank, ridge] = _error(sample, rank, ridge, fold, cells)
        return error[rank, ridge]

    # a factor needs at least three models to show up in both parts
    ranks = (
        [r for r in RANKS if r <= min(models.size // 3, largest)] if rank is None else [min(rank, largest)]
    )
    at = 1.0 if ridge is None else ridge
    best, worse = ranks[0], 0
    for r in ranks:
        better = attempt(r, at) <= attempt(best, at)
        best, worse = (r, 0) if better else (best, worse + 1)
        # the error has one valley, and high ranks cost most
        if worse == 2:
            break
    ridges = RIDGES if ridge is None and best else (at,)
    return Choice(best, min(ridges, key=lambda x: attempt(best, x)), error)


def _largest(scores: ScoreTable) -> int:
    return max(int(min(scores.shape)) - 1, 0)


def fold_of(n_models: int, rng: np.random.Generator) -> IntArray:
    """A fold for each model, sizes as equal as possible."""
    return np.asarray(rng.permutation(n_models) % _FOLDS, dtype=np.int64)


def fit(scores: ScoreTable, rank: int, ridge: float) -> tuple[FloatArray, Prior]:
    """Item factors and the models' prior at a given rank and ridge."""
    trained = train(scores, min(rank, _largest(scores)), ridge)
    spread = np.r_[1.0, 0.25, np.ones(trained.V.shape[1] - 2)]
    return trained.V, fit_prior(scores, trained.V, trained.U, spread)


def _error(scores: FloatArray, rank: int, ridge: float, fold: IntArray, cells: list[IntArray]) -> float:
    total, count = 0.0, 0
    n = scores.shape[1]
    for k, order in enumerate(cells):
        V, prior = fit(table_of(scores[fold != k]), rank, ridge)
        test = scores[fold == k]
        scale = np.linalg.inv(np.linalg.cholesky(prior.precision)).T
        white, offset = V @ scale, V @ prior.mean
        for size, share in zip(_ANSWERED, (4, 2), strict=True):
            answered, rest = np.split(order, [min(size, max(n // share, 1))])
            u = fit_rows(white[answered], offset[answered], test[:, answered])
            off = test[:, rest] - sigmoid(offset[rest] + u @ white[rest].T)
            total += float(np.nansum(off**2))
            count += int((~np.isnan(off)).sum())
    return total / max(count, 1)
