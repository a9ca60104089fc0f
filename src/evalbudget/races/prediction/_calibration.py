"""How far predicted benchmark means are off after a few answers, measured on history's models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.races.prediction._factor_model import FactorModel
from evalbudget.statistics._bounds import FloatArray, IntArray

_PSEUDO = 2.0
_DEFAULT_SD = 0.1
_SLOPE_SD = 0.5
_ENOUGH = 300
"""Simulated models."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """mean = intercept + slope * predicted mean, with an error of the standard deviation sd.

    Attributes:
        slope: near 1.
        intercept: near 0.
        sd: standard deviation of the error, in units of the score.
        n_models: how many models it rests on.
    """

    slope: float
    intercept: float
    sd: float
    n_models: int

    def __call__(self, predicted: FloatArray) -> FloatArray:
        """Calibrated means."""
        return self.intercept + self.slope * predicted


def calibrate(model: FactorModel, item: IntArray, *, seed: int = 0) -> Calibration:
    """Put history's models through the same few items and compare predicted with true means.

    Where the model was trained here, models of history (the folds' ``scores``) are each
    predicted by factors trained without them. Of a factor file only U is known: answers are drawn
    from sigmoid(U V), once, with ``seed``, and the error is that of a history the factors describe perfectly:
    take it for a lower bound.

    The slope is shrunk towards 1 and the standard deviation towards .1, worth two models.

    Args:
        model: trained on history.
        item: indices of the items everybody answers, shape (n,).
        seed: of simulated answers.
    """
    predicted, true = _held_out(model, item) if model.folds else _simulated(model, item, seed)
    error = true - predicted
    m = error.size
    centre, around = (predicted.mean(), predicted - predicted.mean()) if m else (0.0, predicted)
    spread = (float((error**2).sum()) + _PSEUDO * _DEFAULT_SD**2) / (m + _PSEUDO)
    slope = float(around @ error / (around @ around + spread / _SLOPE_SD**2))
    shift = float(error.sum() / (m + _PSEUDO))
    left = error - shift - slope * around
    sd = np.sqrt((float(left @ left) + _PSEUDO * _DEFAULT_SD**2) / (max(m - 2, 0) + _PSEUDO))
    return Calibration(1.0 + slope, float(shift - slope * centre), float(sd), m)


def _held_out(model: FactorModel, item: IntArray) -> tuple[FloatArray, FloatArray]:
    predicted, true = [], []
    for fold in model.folds:
        scores = fold.scores
        fitted = fold.model.fit_rows(item, scores[:, item].astype(np.float64))
        seen = ~np.isnan(scores)
        count = np.maximum(seen.sum(axis=1), 1)
        predicted.append((fold.model.predict(fitted) * seen).sum(axis=1) / count)
        true.append(np.nansum(scores, axis=1, dtype=np.float64) / count)
    return np.concatenate(predicted), np.concatenate(true)


def _simulated(model: FactorModel, item: IntArray, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    U = model.U[np.linspace(0, model.U.shape[0] - 1, min(model.U.shape[0], _ENOUGH)).astype(np.int64)]
    if not U.shape[0]:
        noise = rng.standard_normal((_ENOUGH, model.rank))
        U = model.prior_mean + np.linalg.solve(np.linalg.cholesky(model.prior_precision).T, noise.T).T
    answers = (rng.random((U.shape[0], item.size)) < model.predict(U, item)).astype(np.float64)
    predicted = model.predict(model.fit_rows(item, answers)).mean(axis=1)
    return predicted, model.predict(U).mean(axis=1)
