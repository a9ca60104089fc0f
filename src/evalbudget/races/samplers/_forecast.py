"""What history says about each model of a race: predictions of all items, refitted as the model answers."""

from __future__ import annotations

import numpy as np

from evalbudget.races.prediction import FactorModel, calibrate
from evalbudget.statistics._bounds import FloatArray, IntArray

_RUNGS = (32, 128, 512)  # random items after the anchors at which history's error is measured
_INFLATION = 1.5  # of history's error: the next models are less like history's than those are like each other
_MOST_LEVERAGE = 0.9


class Forecast:
    """Predictions of every model, from the anchors on; history itself is given each time, and not kept.

    Args:
        predictor: for the items of the race.
        item: the anchors.
        scores: of the anchors, nan where failed, shape (n_models, n_anchors).

    Attributes:
        mean: calibrated predicted mean of each model's benchmark, from all answers of the last fit, shape
            (n_models,).
        variance: of its error, shape (n_models,); history tells it up to 512 answers, and it is not taken to
            fall further.
        noise: expected variance of one score, each model's average over the items.
    """

    def __init__(self, predictor: FactorModel, item: IntArray, scores: FloatArray) -> None:
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
        self.mean = self._calibrations[0](means)
        self.variance = np.full(n_models, (_INFLATION * self._calibrations[0].sd) ** 2)

    def row(self, predictor: FactorModel, model: int) -> FloatArray:
        """Predictions of all items."""
        row = self._rows.get(model)
        return predictor.predict(self._u[model]) if row is None else row

    def refit(self, predictor: FactorModel, model: int, item: IntArray, score: FloatArray) -> FloatArray:
        """Fit a model to everything it answered.

        Returns:
            What each score has on its prediction without itself: r / (1 - h), h being its leverage.
        """
        u = self._u[model] = predictor.fit(item, score, start=self._u[model])
        row = self._rows[model] = predictor.predict(u)
        self.noise[model] = (row * (1.0 - row)).mean()
        self._calibrate(model, item.size, row)
        leverage = _leverage(predictor, item, row[item])
        return np.asarray((score - row[item]) / (1.0 - leverage))

    def variance_after(self, count: IntArray) -> FloatArray:
        """Of the error of a mean once so many items are answered, by logarithms as the calibration itself."""
        log_sd = np.log([calibration.sd for calibration in self._calibrations])
        at = np.interp(np.log(np.maximum(count, 1)), self._log_counts, log_sd)
        return np.asarray((_INFLATION * np.exp(at)) ** 2)

    def _calibrate(self, model: int, count: int, row: FloatArray) -> None:
        """Between the counts at which history was asked, in proportion to their logarithm."""
        place = float(np.interp(np.log(max(count, 1)), self._log_counts, np.arange(self._log_counts.size)))
        low, share = int(place), place - int(place)
        few, many = self._calibrations[low], self._calibrations[min(low + 1, self._log_counts.size - 1)]
        mean = row.mean(keepdims=True)
        self.mean[model] = ((1.0 - share) * few(mean) + share * many(mean))[0]
        self.variance[model] = self.variance_after(np.array([count]))[0]


def losses(predictor: FactorModel, item: IntArray, scores: FloatArray) -> tuple[float, float]:
    """How well history predicts answers that it has not seen, and how well a constant does.

    Args:
        predictor: for the items of the race.
        item: those that every model answered.
        scores: of them, nan where failed, shape (n_models, n_answered).

    Returns:
        Root mean square of what is left of each score once it is predicted from the model's other answers:
        by the factors, and by their mean, with the mean over all models as one answer more; 0 without any.
    """
    of_history = of_constant = 0.0
    read = ~np.isnan(scores)
    overall = float(scores[read].mean()) if read.any() else 0.5
    for u, given, answered in zip(predictor.fit_rows(item, scores), scores, read, strict=True):
        score, of = given[answered], item[answered]
        predicted = predictor.predict(u, of)
        left_out = score - (score - predicted) / (1.0 - _leverage(predictor, of, predicted))
        of_history += float(((score - np.clip(left_out, 0.0, 1.0)) ** 2).sum())
        of_constant += float(((score - (score.sum() - score + overall) / max(score.size, 1)) ** 2).sum())
    count = max(int(read.sum()), 1)
    return float(np.sqrt(of_history / count)), float(np.sqrt(of_constant / count))


def _leverage(predictor: FactorModel, item: IntArray, predicted: FloatArray) -> FloatArray:
    X = predictor.V[item]
    weight = predicted * (1.0 - predicted)
    hessian = predictor.prior_precision + X.T @ (X * weight[:, None])
    leverage = weight * ((X @ np.linalg.inv(hessian)) * X).sum(axis=1)
    return np.asarray(np.minimum(leverage, _MOST_LEVERAGE))
