"""Naive pooling: predictions count as if they were scores."""

from __future__ import annotations

from evalbudget.races.samplers._base import Step
from evalbudget.races.samplers._pooling import PoolingSampler
from evalbudget.statistics._bounds import IntArray


class NaivePooling(PoolingSampler):
    r""":math:`\hat\theta_i = \frac1n [\sum_{O_i} S + \sum_{U_i} \hat S]`, biased where predictions are.

    Takes the arguments of PoolingSampler.

    References:
        arXiv 2605.10405 (baseline).
    """

    name = "naive-pooling"

    def _finished(self, step: Step) -> None:
        before = self._refits
        super()._finished(step)
        if self._refits > before:  # here the factors of all models that have new scores move the estimate
            for model in self._remaining().tolist():
                self._refit(model, int(self._drawn[model]))
                self._pool(model)

    def _learn_batch(self, model: int, item: IntArray, position: int) -> None:
        f = self._row[model][item]
        self._pool(model, f.sum())

    def _pool(self, model: int, just_seen: float = 0.0) -> None:
        closed = int(self._drawn[model] - self._n_read[model])
        predicted = self._unseen_sum[model] - just_seen
        n = self._n_items - closed
        self._estimate[model] = (self._sum[model] + predicted) / n if n else 0.0
