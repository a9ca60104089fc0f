"""Naive pooling: predictions count as if they were scores."""

from __future__ import annotations

from typing import Any

from evalbudget.races.samplers._pooling import PoolingSampler
from evalbudget.races.samplers._rounds import Table
from evalbudget.statistics._bounds import IntArray


class NaivePooling(PoolingSampler):
    r""":math:`\hat\theta_i = \frac1n [\sum_{O_i} S + \sum_{U_i} \hat S]`, biased where predictions are.

    Takes the arguments of PoolingSampler.

    References:
        arXiv 2605.10405 (baseline).
    """

    name = "naive-pooling"

    def _take_in(self, table: Table, note: Any, news: list[tuple[int, IntArray]]) -> None:
        super()._take_in(table, note, news)
        if self._refits(note.batches) > self._refits(note.batches - len(news)):
            # here the factors of all models that have new scores move the estimate
            for model in note.remaining.tolist():
                self._refit(table, note, model)
                self._pool(table, note, model)

    def _learn_batch(self, table: Table, note: Any, model: int, item: IntArray, position: int) -> None:
        f = note.past[model][-1][0]
        self._pool(table, note, model, f.sum())

    def _pool(self, table: Table, note: Any, model: int, just_seen: float = 0.0) -> None:
        closed = int(table.drawn[model] - table.n_read[model])
        predicted = note.unseen_sum[model] - just_seen
        n = self._n_items - closed
        note.estimate[model] = (table.total[model] + predicted) / n if n else 0.0
