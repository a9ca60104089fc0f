"""PULSE: predictions corrected by inverse propensities."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.races.prediction._coefficient import Coefficient, clipped
from evalbudget.races.prediction._corrections import corrected
from evalbudget.races.samplers._pooling import PoolingOptions, PoolingSampler
from evalbudget.statistics._bounds import IntArray


class Pulse(PoolingSampler):
    r"""The published method: the plain average of one unbiased estimate per batch.

    .. math:: \theta_t = \frac1n \Big[\sum_{O} S + \lambda \sum_{U} \hat S
              + \sum_{\text{batch}} \frac{S - \lambda \hat S}{\pi}\Big], \quad \pi = \frac{b}{|U|}

    with O and U the items seen and unseen before the batch. Lambda goes by the corrections of the model's
    earlier batches, in one of the two ways that
    :class:`~evalbudget.races.prediction._coefficient.Coefficient` says:
    ``published`` is literal, with the first estimate the plain mean of the first batch; ``corrected`` turns
    the sign round, so that lambda estimates the least-squares slope of S on its prediction. Failed cells are
    taken out of n, U and the batch.

    Args:
        coefficient: the rule for lambda, ``corrected`` or ``published``.
        common: see PoolingSampler; t0 is the published T_0, which is 1 in the experiments.

    Raises:
        UnknownNameError: no such rule.
        InvalidInputError: see PoolingSampler.

    References:
        arXiv 2605.10405.
    """

    name = "pulse"
    _common = PoolingOptions

    def __init__(
        self, design: Design, *, coefficient: str = Coefficient.CORRECTED, **common: Unpack[PoolingOptions]
    ) -> None:
        self.coefficient = Coefficient.named(coefficient)
        super().__init__(design, **common)
        self.options["coefficient"] = self.coefficient.value

    def _prepare(self) -> None:
        self._has_failures = np.zeros(self._n_models, dtype=bool)
        self._corrections, self._thetas = np.zeros(self._n_models), np.zeros(self._n_models)
        self._batches_of = np.zeros(self._n_models)

    def _learn_batch(self, model: int, item: IntArray, position: int) -> None:
        read = self.is_read(model, item)
        if self._has_failures[model] or not read.all():  # what failed changes every earlier estimate as well
            self._has_failures[model] = True
            theta = corrected(self.draws(model), self.coefficient).theta
            if theta.size:
                self._estimate[model] = theta.mean()
            return
        score, f = float(self._value[model, item].sum()), float(self._row[model][item].sum())
        left = self._n_items - position
        weight = left / item.size
        lam = self._weight_of_predictions(model, item.size, left)
        theta_t = (
            self._sum[model] - score + lam * self._unseen_sum[model] + weight * (score - lam * f)
        ) / self._n_items
        self._corrections[model] += self.coefficient.correction(score, f, lam, weight)
        self._thetas[model] += theta_t
        self._batches_of[model] += 1
        self._estimate[model] = self._thetas[model] / self._batches_of[model]

    def _weight_of_predictions(self, model: int, size: int, left: int) -> float:
        """Lambda of a batch of ``size`` items out of ``left`` that the model has not seen."""
        k = self._batches_of[model]
        if not k:
            return self.coefficient.first
        F, Phi = float(self._unseen_sum[model]), float(self._unseen_sum_sq[model])
        return clipped(F, Phi, left, float(self._corrections[model] / k))
