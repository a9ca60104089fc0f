"""What history says about each model of a race: predictions of all items, refitted as the model answers."""

from __future__ import annotations

import numpy as np

from evalbudget.confidence.bounds import FloatArray, IntArray
from evalbudget.prediction import FactorModel, calibrate

_RUNGS = (32, 128, 512)  # random items after the anchors at which history's error is measured
_INFLATION = 1.5  # of history's error: the next models are less like history's than those are like each other
_MOST_LEVERAGE = 0.9


class Forecast:
    """Predictions of every model, from the anchors on.

    Args:
        predictor: for the items of the race.
        item: the anchors.
        scores: of the anchors, nan where failed, shape (n_models, n_anchors).

    Attributes:
        anchor_mean: calibrated predicted mean of each model's benchmark, from the anchors alone.
        anchor_variance: of its error.
        mean: the same from all answers of the last fit, shape (n_models,).
        variance: of its error, shape (n_models,); history tells it up to 512 answers, and it is not taken to
            fall further.
        noise: expected variance of one score, each model's average over the items.
        loss: mean squared error of the anchors' scores, each predicted from the model's other anchors.
        constant_loss: the same, each predicted by the mean of the model's other anchors.
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
        pool = np.setdiff1d(np.arange(predictor.n_items), item)
        more = np.random.default_rng(0).permutation(pool)
        rungs = [0, *(k for k in _RUNGS if k <= pool.size)]
        self._calibrations = [calibrate(predictor, np.concatenate([item, more[:k]])) for k in rungs]
        self._log_counts = np.log([item.size + k for k in rungs])
        self.anchor_mean = self._calibrations[0](means)
        self.anchor_variance = (_INFLATION * self._calibrations[0].sd) ** 2
        self.loss, self.constant_loss = self._losses(item, scores)
        self.mean = self.anchor_mean.copy()
        self.variance = np.full(n_models, self.anchor_variance)

    def _losses(self, item: IntArray, scores: FloatArray) -> tuple[float, float]:
        X = self._predictor.V[item]
        of_history = of_constant = 0.0
        count = 0
        overall = float(np.nanmean(scores)) if (~np.isnan(scores)).any() else 0.5
        for u, given in zip(self._u, scores, strict=True):
            read = ~np.isnan(given)
            score = given[read]
            predicted = self._predictor.predict(u, item[read])
            left_out = score - (score - predicted) / (1.0 - self._leverage(X[read], predicted))
            of_history += float(((score - np.clip(left_out, 0.0, 1.0)) ** 2).sum())
            # the others' mean, with the mean of all models as one more
            of_constant += float(((score - (score.sum() - score + overall) / max(score.size, 1)) ** 2).sum())
            count += score.size
        return of_history / max(count, 1), of_constant / max(count, 1)

    def _leverage(self, X: FloatArray, predicted: FloatArray) -> FloatArray:
        weight = predicted * (1.0 - predicted)
        hessian = self._predictor.prior_precision + X.T @ (X * weight[:, None])
        leverage = weight * ((X @ np.linalg.inv(hessian)) * X).sum(axis=1)
        return np.asarray(np.minimum(leverage, _MOST_LEVERAGE))

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
        self.noise[model] = (row * (1.0 - row)).mean()
        self._calibrate(model, item.size, row)
        leverage = self._leverage(self._predictor.V[item], row[item])
        return np.asarray((score - row[item]) / (1.0 - leverage))

    def _calibrate(self, model: int, count: int, row: FloatArray) -> None:
        """Between the counts at which history was asked, in proportion to their logarithm."""
        place = float(np.interp(np.log(max(count, 1)), self._log_counts, np.arange(self._log_counts.size)))
        low, share = int(place), place - int(place)
        few, many = self._calibrations[low], self._calibrations[min(low + 1, self._log_counts.size - 1)]
        mean = row.mean(keepdims=True)
        self.mean[model] = ((1.0 - share) * few(mean) + share * many(mean))[0]
        self.variance[model] = (_INFLATION * few.sd ** (1.0 - share) * many.sd**share) ** 2
