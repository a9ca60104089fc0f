"""PULSE: predictions corrected by inverse propensities."""

from __future__ import annotations

import numpy as np

from evalbudget.confidence.bounds import IntArray
from evalbudget.samplers.pooling import PoolingSampler


class Pulse(PoolingSampler):
    r"""The literal method: the plain average of one unbiased estimate per batch.

    .. math:: \theta_t = \frac1n \Big[\sum_{O} S + \lambda \sum_{U} \hat S
              + \sum_{\text{batch}} \frac{S - \lambda \hat S}{\pi}\Big], \quad \pi = \frac{b}{|U|}, \quad
              \lambda = \mathrm{clip}\Big(1 - \frac{F \bar Z}{|U| \Phi}, 0, 1\Big)

    with O and U the items seen and unseen before the batch, :math:`F = \sum_U \hat S`,
    :math:`\Phi = \sum_U \hat S^2`, and :math:`\bar Z` the mean over past batches of
    :math:`\sum (\hat S - S)/\pi`: so signed, lambda is the least-squares slope of S on its prediction. Before
    there is a past, lambda is 1. Failed cells are taken out of the batch. Takes the arguments of
    PoolingSampler.

    References:
        arXiv 2605.10405.
    """

    name = "pulse"

    def _prepare(self) -> None:
        self._corrections = np.zeros(self._n_models)
        self._thetas = np.zeros(self._n_models)
        self._theta_counts = np.zeros(self._n_models)

    def _learn_batch(self, model: int, item: IntArray, position: int) -> None:
        read = item[self.is_read(model, item)]
        if not read.size:
            return
        n_unseen = self._n_items - position
        score, f = self._value[model, read], self._row[model][read]
        F, Phi = self._unseen_sum[model], self._unseen_sum_sq[model]
        k = self._theta_counts[model]
        mean_correction = self._corrections[model] / k if k else 0.0
        lam = min(1.0, max(0.0, 1.0 - F * mean_correction / (n_unseen * Phi)))
        weight = n_unseen / read.size
        seen = self._sum[model] - score.sum()
        theta = (seen + lam * F + weight * (score - lam * f).sum()) / self._n_items
        self._corrections[model] += weight * (f - score).sum()
        self._thetas[model] += theta
        self._theta_counts[model] += 1
        self._estimate[model] = self._thetas[model] / self._theta_counts[model]
