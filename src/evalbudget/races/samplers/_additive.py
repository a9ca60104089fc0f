r"""Model and item effects when every model read the first items of one shared order.

.. math:: r_{ij} = m_i + e_j + \epsilon_{ij}, \quad e_j \sim N(0, \sigma_e^2), \quad
          \epsilon_{ij} \sim N(0, \sigma^2)

r is a score less its prediction. Where predictions say all there is to say about items, sigma_e^2 is near 0
and m_i the plain mean; without predictions items differ, and models are compared on the items they share.
"""

from __future__ import annotations

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray

_SWEEPS = 3


class AdditiveEffects:
    """Incremental estimates of m; the items of a model are a prefix of the order, less failed cells.

    Args:
        n_models: number of rows.
        n_items: length of the order.
    """

    def __init__(self, n_models: int, n_items: int) -> None:
        self.length: IntArray = np.zeros(n_models, dtype=np.int64)  # of each model's prefix
        self.count: IntArray = np.zeros(n_models, dtype=np.int64)  # of these, read
        self.model: FloatArray = np.zeros(n_models)
        self.item: FloatArray = np.zeros(n_items)
        self.ratio = 1.0  # sigma^2 / sigma_e^2
        self._row_sum = np.zeros(n_models)
        self._column_sum = np.zeros(n_items)
        self._column_count = np.zeros(n_items)
        self._failed_model: IntArray = np.zeros(0, dtype=np.int64)
        self._failed_item: IntArray = np.zeros(0, dtype=np.int64)

    def add(self, model: int, residual: FloatArray, begin: int = 0, old: FloatArray | None = None) -> None:
        """Extend a model's prefix, or replace it.

        Args:
            model: the row.
            residual: of positions begin, begin + 1 ...; nan where the cell failed.
            begin: where the residuals start.
            old: the residuals that they replace, from ``begin`` on; fewer where the prefix grows.
        """
        end = begin + residual.size
        known = 0 if old is None else old.size
        failed = np.isnan(residual)
        if failed[known:].any():
            new = begin + known + np.flatnonzero(failed[known:])
            self._failed_model = np.concatenate([self._failed_model, np.full(new.size, model)])
            self._failed_item = np.concatenate([self._failed_item, new])
        values = np.where(failed, 0.0, residual)
        self._column_count[begin + known : end] += ~failed[known:]
        change = values.copy()
        if old is not None:
            change[:known] -= np.where(np.isnan(old), 0.0, old)
        self._column_sum[begin:end] += change
        self._row_sum[model] += change.sum()
        self.count[model] += int((~failed[known:]).sum())
        self.length[model] = end

    def solve(self, sweeps: int = _SWEEPS) -> None:
        """Alternate between item and model effects, from where they are."""
        L = int(self.length.max(initial=0))
        if not L:
            return
        weight = self._column_count[:L] + self.ratio
        counted = np.maximum(self.count, 1)
        for _ in range(sweeps):
            ends = np.bincount(self.length, weights=self.model, minlength=L + 1)
            covered = ends[::-1].cumsum()[::-1][1 : L + 1]  # sum of m over the models with longer prefixes
            if self._failed_item.size:
                covered = covered - np.bincount(
                    self._failed_item, weights=self.model[self._failed_model], minlength=L
                )
            effect = (self._column_sum[:L] - covered) / weight
            sums = np.concatenate([[0.0], np.cumsum(effect)])[self.length]
            if self._failed_item.size:
                sums = sums - np.bincount(
                    self._failed_model, weights=effect[self._failed_item], minlength=self.model.size
                )
            self.model = (self._row_sum - sums) / counted
        self.item[:L] = effect

    def readers(self) -> FloatArray:
        """How many models read each item, as far as the longest prefix goes."""
        return self._column_count[: int(self.length.max(initial=0))]

    def shared_uncertainty(self) -> FloatArray:
        """Mean over each model's items of 1 / (other readers + ratio), shape (n_models,)."""
        L = int(self.length.max(initial=0))
        each = 1.0 / (np.maximum(self._column_count[:L] - 1.0, 0.0) + self.ratio)
        return np.concatenate([[0.0], np.cumsum(each)])[self.length] / np.maximum(self.length, 1)
