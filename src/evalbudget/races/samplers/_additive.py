r"""Model and item effects when every model read the first items of one shared order.

.. math:: r_{ij} = m_i + e_j + \epsilon_{ij}, \quad e_j \sim N(0, \sigma_e^2), \quad
          \epsilon_{ij} \sim N(0, \sigma^2)

r is a score less its prediction. Where predictions say all there is to say about items, sigma_e^2 is near 0
and m_i the plain mean; without predictions items differ, and models are compared on the items they share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics._bounds import FloatArray, IntArray

ITEM_SPREAD = 0.02
"""Variance of item effects without history, worth four items."""
_SWEEPS = 3
_PSEUDO = 16.0  # readings that a model's expected variance counts as
_GROWTH = 1.25  # the variances of all models are renewed when readings grew by this much


class AdditiveEffects:
    """Incremental estimates of m; the items of a model are a prefix of the order, less failed cells.

    Args:
        n_models: number of rows.
        n_items: length of the order.
        expected: variance of each model's scores by its predictions, shape (n_models,); None without history.

    Attributes:
        own_noise: variance of each model's scores about their expectation, shape (n_models,).
        noise: the same of all of them, sigma^2.
        uncertain: variance of one score that a model's effect rests on, what is not known of item effects
            included, shape (n_models,).
    """

    def __init__(self, n_models: int, n_items: int, expected: FloatArray | None = None) -> None:
        self.noise, self._item_spread = 0.25, ITEM_SPREAD
        self.own_noise: FloatArray = np.full(n_models, 0.25)
        if expected is not None:
            self.noise, self._item_spread = float(expected.mean()), 0.1 * ITEM_SPREAD
            self.own_noise = expected.copy()
        self.uncertain: FloatArray = self.own_noise
        self._prior_spread, self._known = self._item_spread, 4.0 if expected is None else 64.0
        self._renew_at = 0.0
        self._residual: list[NDArray[np.float32]] = [np.zeros(0, dtype=np.float32)] * n_models
        self.length: IntArray = np.zeros(n_models, dtype=np.int64)  # of each model's prefix
        self.count: IntArray = np.zeros(n_models, dtype=np.int64)  # of these, read
        self.model: FloatArray = np.zeros(n_models)
        self.item: FloatArray = np.zeros(n_items)
        self._row_sum = np.zeros(n_models)
        self._column_sum = np.zeros(n_items)
        self._column_count = np.zeros(n_items)
        self._failed_model: IntArray = np.zeros(0, dtype=np.int64)
        self._failed_item: IntArray = np.zeros(0, dtype=np.int64)

    @property
    def _ratio(self) -> float:
        return self.noise / self._item_spread

    def add(self, model: int, residual: FloatArray, begin: int = 0) -> None:
        """Extend a model's prefix, or replace it.

        Args:
            model: the row.
            residual: of positions begin, begin + 1 ...; nan where the cell failed. They replace those that
                are known from ``begin`` on.
            begin: where the residuals start.
        """
        stored = residual.astype(np.float32)
        old = self._residual[model][begin:].astype(np.float64)
        self._residual[model] = np.concatenate([self._residual[model][:begin], stored])
        residual = stored.astype(np.float64)
        end, known = begin + residual.size, old.size
        failed = np.isnan(residual)
        if failed[known:].any():
            new = begin + known + np.flatnonzero(failed[known:])
            self._failed_model = np.concatenate([self._failed_model, np.full(new.size, model)])
            self._failed_item = np.concatenate([self._failed_item, new])
        values = np.where(failed, 0.0, residual)
        self._column_count[begin + known : end] += ~failed[known:]
        change = values.copy()
        change[:known] -= np.where(np.isnan(old), 0.0, old)
        self._column_sum[begin:end] += change
        self._row_sum[model] += change.sum()
        self.count[model] += int((~failed[known:]).sum())
        self.length[model] = end

    def settle(self, models: list[int], expected: FloatArray | None) -> None:
        """Renew the effects, and the variances: of these models, or of all where much was read since.

        Args:
            models: who has new residuals.
            expected: variance of each model's scores by its predictions now, shape (n_models,).
        """
        self._solve()
        total = float(self.count.sum())
        if total < self._renew_at:
            for model in models:
                self._renew_noise(model, expected)
        else:
            for _ in range(2 if self._renew_at else 10):
                self._renew_components(expected)
                self._solve()
            self._renew_at = _GROWTH * total
        self.uncertain = self.own_noise + self.noise * self._shared_uncertainty()

    def _renew_components(self, expected: FloatArray | None) -> None:
        """One step of EM for the variances of noise and of item effects."""
        active = np.flatnonzero(self.count)
        readers = self._column_count[: int(self.length.max(initial=0))]
        item = self.item[: readers.size]
        squares = sum(self._renew_noise(model, expected) for model in active.tolist())
        ratio = self._ratio
        share = readers / (readers + ratio)
        free = max(0.0, float(self.count.sum()) - active.size - float(share.sum()))
        self.noise = max((squares + self._known * self.noise) / (free + self._known), 1e-12)
        shared = readers >= 2
        moments = (item**2 + self.noise / (readers + ratio))[shared]
        weight = share[shared]
        spread = 4.0 * self._prior_spread + (moments * weight).sum()
        self._item_spread = float(spread / (4.0 + weight.sum()))

    def _renew_noise(self, model: int, expected: FloatArray | None) -> float:
        """Variance of the model's scores about their expectation; returns its sum of squares."""
        residual = self._residual[model]
        left = residual - self.model[model] - self.item[: residual.size]
        left = left[~np.isnan(left)]
        squares = float(left @ left)
        prior = self.noise if expected is None else float(expected[model])
        self.own_noise[model] = (_PSEUDO * prior + squares) / (_PSEUDO + left.size)
        return squares

    def _solve(self) -> None:
        """Alternate between item and model effects, from where they are."""
        L = int(self.length.max(initial=0))
        if not L:
            return
        weight = self._column_count[:L] + self._ratio
        counted = np.maximum(self.count, 1)
        for _ in range(_SWEEPS):
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

    def _shared_uncertainty(self) -> FloatArray:
        """Mean over each model's items of 1 / (other readers + ratio), shape (n_models,)."""
        L = int(self.length.max(initial=0))
        each = 1.0 / (np.maximum(self._column_count[:L] - 1.0, 0.0) + self._ratio)
        return np.concatenate([[0.0], np.cumsum(each)])[self.length] / np.maximum(self.length, 1)
