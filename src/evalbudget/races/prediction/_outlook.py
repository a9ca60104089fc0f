r"""What a new model will score on each item, from history and its own answers so far.

History's factor model gives :math:`p_j = E\,\sigma(u \cdot v_j)` over the posterior of u, by Laplace's
approximation at what the model answered and MacKay's for the integral,

.. math:: p_j \approx \sigma\Bigl(\frac{\hat u \cdot v_j}{\sqrt{1 + \pi s_j^2 / 8}}\Bigr), \quad
          s_j^2 = v_j^\top \Sigma v_j,

so that a model that has answered little is predicted with the caution that is due. Beside it stands a
constant, the model's own mean. Both have predicted every answer before it was seen, and the two are mixed by
their chances of having been right: prior times likelihood of the answers so far. A history that misleads, of
other items by the same names, say, loses its weight as answers come in, and once the odds against it are 100
to 1 it is dropped for good.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from evalbudget.races.prediction._factor_model import FactorModel
from evalbudget.races.prediction._logistic import sigmoid
from evalbudget.statistics._bounds import FloatArray, IntArray

_TRUST = math.log(9.0)  # prior odds of history against the constant: most histories are what they say
_DROPPED = -math.log(100.0)
_SUREST = 0.005  # no score is predicted nearer to 0 or 1
_LIKELIHOOD = 0.01  # nor held against its predictor as if it had been


class Outlook:
    """Predictions of all items of one model, renewed as it answers; history is given each time, not kept.

    Args:
        predictor: for the items of the benchmark; None to go by the model's own mean.
        n_items: of the benchmark.

    Attributes:
        expected: score of every item, shape (n_items,), in [.005, .995].
        dropped: whether history was found to mislead.
    """

    def __init__(self, predictor: FactorModel | None, n_items: int) -> None:
        self._item: IntArray = np.zeros(0, dtype=np.int64)
        self._score: FloatArray = np.zeros(0)
        self._odds = _TRUST
        self._u: FloatArray | None = None
        self._by_history = np.full(n_items, 0.5)
        self.dropped = False
        self.expected = np.full(n_items, 0.5)
        self._renew(predictor)

    def after(self, predictor: FactorModel | None, item: IntArray, score: FloatArray) -> Outlook:
        """The outlook once more answers are known; this one stays as it is.

        Args:
            predictor: as at the start.
            item: indices, shape (n,).
            score: in [0, 1], shape (n,).
        """
        later = copy(self)
        if item.size:
            later._learn(predictor, item, score)
        return later

    def _learn(self, predictor: FactorModel | None, item: IntArray, score: FloatArray) -> None:
        if predictor is not None and not self.dropped:
            of_constant = np.full(item.size, self._mean)
            self._odds += _log_likelihood(self._by_history[item], score)
            self._odds -= _log_likelihood(of_constant, score)
            self.dropped = self._odds < _DROPPED
        self._item = np.concatenate([self._item, item])
        self._score = np.concatenate([self._score, score])
        self._renew(predictor)

    @property
    def _mean(self) -> float:
        return (float(self._score.sum()) + 0.5) / (self._score.size + 1.0)

    def _renew(self, predictor: FactorModel | None) -> None:
        expected = np.full(self.expected.size, self._mean)
        if predictor is not None and not self.dropped:
            self._by_history = self._integrated(predictor)
            trust = float(sigmoid(np.asarray(self._odds)))
            expected = trust * self._by_history + (1.0 - trust) * expected
        self.expected = np.clip(expected, _SUREST, 1.0 - _SUREST)

    def _integrated(self, predictor: FactorModel) -> FloatArray:
        """Expected score of every item over the posterior of u."""
        self._u = predictor.fit(self._item, self._score, start=self._u)
        X = predictor.V[self._item]
        p = sigmoid(X @ self._u)
        precision = predictor.prior_precision + X.T @ (X * (p * (1.0 - p))[:, None])
        reach = np.linalg.solve(np.linalg.cholesky(precision), predictor.V.T)
        return sigmoid(predictor.V @ self._u / np.sqrt(1.0 + np.pi / 8.0 * (reach**2).sum(axis=0)))


def _log_likelihood(expected: FloatArray, score: FloatArray) -> float:
    p = np.clip(expected, _LIKELIHOOD, 1.0 - _LIKELIHOOD)
    return float(score @ np.log(p) + (1.0 - score) @ np.log1p(-p))
