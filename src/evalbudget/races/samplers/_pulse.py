"""PULSE: predictions corrected by inverse propensities."""

from __future__ import annotations

import numpy as np

from evalbudget.races.prediction._corrections import corrected
from evalbudget.races.samplers._pooling import PoolingSampler
from evalbudget.statistics._bounds import IntArray


class Pulse(PoolingSampler):
    r"""The literal method: the plain average of one unbiased estimate per batch.

    .. math:: \theta_t = \frac1n \Big[\sum_{O} S + \lambda \sum_{U} \hat S
              + \sum_{\text{batch}} \frac{S - \lambda \hat S}{\pi}\Big], \quad \pi = \frac{b}{|U|}, \quad
              \lambda = \mathrm{clip}\Big(1 - \frac{F \bar Z}{|U| \Phi}, 0, 1\Big)

    with O and U the items seen and unseen before the batch, :math:`F = \sum_U \hat S`,
    :math:`\Phi = \sum_U \hat S^2`, and :math:`\bar Z` the mean over past batches of
    :math:`\sum (\hat S - S)/\pi`: so signed, lambda is the least-squares slope of S on its prediction. Before
    there is a past, lambda is 1. Failed cells are taken out of n, U and the batch. Takes the
    arguments of PoolingSampler.

    References:
        arXiv 2605.10405.
    """

    name = "pulse"

    def _prepare(self) -> None:
        self._has_failures = np.zeros(self._n_models, dtype=bool)
        self._gaps, self._thetas = np.zeros(self._n_models), np.zeros(self._n_models)
        self._batches_of = np.zeros(self._n_models)

    def _learn_batch(self, model: int, item: IntArray, position: int) -> None:
        read = self.is_read(model, item)
        if self._has_failures[model] or not read.all():  # what failed changes every earlier estimate as well
            self._has_failures[model] = True
            theta = corrected(self.draws(model)).theta
            if theta.size:
                self._estimate[model] = theta.mean()
            return
        score, f = self._value[model, item], self._row[model][item]
        F, Phi, k = self._unseen_sum[model], self._unseen_sum_sq[model], self._batches_of[model]
        n_unseen = self._n_items - position
        lam = min(1.0, max(0.0, 1.0 - F * (self._gaps[model] / k if k else 0.0) / (n_unseen * Phi)))
        weight = n_unseen / item.size
        theta_t = (
            self._sum[model] - score.sum() + lam * F + weight * (score - lam * f).sum()
        ) / self._n_items
        self._gaps[model] += weight * (f - score).sum()
        self._thetas[model] += theta_t
        self._batches_of[model] += 1
        self._estimate[model] = self._thetas[model] / self._batches_of[model]
