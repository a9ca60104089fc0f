"""PULSE: predictions corrected by inverse propensities."""

from __future__ import annotations

from evalbudget.confidence.bounds import IntArray
from evalbudget.prediction.corrections import Corrections
from evalbudget.samplers.pooling import PoolingSampler


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

    def _learn_batch(self, model: int, item: IntArray, position: int) -> None:
        theta = Corrections.of(self.draws(model)).theta
        if theta.size:
            self._estimate[model] = theta.mean()
