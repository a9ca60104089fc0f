"""What history says about each model of a race: predictions of all items, refitted as the model answers."""

from __future__ import annotations

import numpy as np

from evalbudget.confidence.bounds import FloatArray, IntArray
from evalbudget.prediction import FactorModel, calibrate

_INFLATION = 1.5  # of history's error: the next models are less like history's than those are like each other
_MOST_LEVERAGE = 0.9


class Forecast:
    """Predictions of every model, from the anchors on.

    Args:
        predictor: for the items of the race.
        item: the anchors.
        scores: of the anchors, nan where failed, shape (n_models, n_anchors).

    Attributes:
        mean: calibrated predicted mean of each model's benchmark, from the anchors alone.
        variance: of its error.
        noise: expected variance of one score, each model's average over the items.
    """

    def __init__(self, predictor: FactorModel, item: IntArray, scores: FloatArray) -> None:
        self._predictor = predictor
        self._u: list[FloatArray] = list(predictor.fit_rows(item, scores))
        self._rows: dict[int, FloatArray] = {}
        n_models = scores.shape[0]
        means = np.empty(n_models)
        self.noise = np.empty(n_models)
        for model in range(n_models):
            row = predictor.predict(self._u[model])
            means[model], self.noise[model] = row.mean(), (row * (1.0 - row)).mean()
        calibration = calibrate(predictor, item)
        self.mean = calibration(means)
        self.variance = (_INFLATION * calibration.sd) ** 2

    def row(self, model: int) -> FloatArray:
        """Predictions of all items."""
        if model not in self._rows:
            self._rows[model] = self._predictor.predict(self._u[model])
        return self._rows[model]

    def refit(self, model: int, item: IntArray, score: FloatArray) -> FloatArray:
        """Fit a model to everything it answered.

        Returns:
            What each score has on its prediction without itself: r / (1 - h), h being its leverage.
        """
        u = self._u[model] = self._predictor.fit(item, score, start=self._u[model])
        row = self._rows[model] = self._predictor.predict(u)
        weight = row * (1.0 - row)
        self.noise[model] = weight.mean()
        X = self._predictor.V[item]
        hessian = self._predictor.prior_precision + X.T @ (X * weight[item][:, None])
        leverage = weight[item] * ((X @ np.linalg.inv(hessian)) * X).sum(axis=1)
        return np.asarray((score - row[item]) / (1.0 - np.minimum(leverage, _MOST_LEVERAGE)))
