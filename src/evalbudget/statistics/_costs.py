r"""What the next reading will cost, learned on the way: log-normal costs, shrunk to what is typical.

Costs of agents spread over decades, so everything here is about their logarithms y. A reading that cost
nothing (cached, or given up before it was sent) says nothing about the next one and is left out.
"""

from __future__ import annotations

import math
from itertools import compress

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray

_SHIFT = 40
_UNIT = float(2**_SHIFT)
_FINEST = 2.0**60
_MOST = 1e15
_ROUNDS = 30  # of EM; the variances of effects change by less than a percent after that


class Costs:
    r"""Costs of items that are read several times.

    With :math:`n_i` readings of item i whose logarithms have the mean :math:`\bar y_i`, an item's typical
    cost over that of all is taken to be

    .. math:: \exp\Bigl(\frac{\tau^2}{\tau^2 + \sigma^2/n_i} (\bar y_i - \mu)\Bigr)

    where :math:`\mu` is the mean of the items' means, :math:`\sigma^2` the variance within items and
    :math:`\tau^2` the one between them, both from the analysis of variance:

    .. math:: \sigma^2 = \frac{\sum_{ij} (y_{ij} - \bar y_i)^2}{\sum_i (n_i - 1)}, \qquad
              \tau^2 = \max\Bigl(0, \frac{\sum_i n_i (\bar y_i - \bar y)^2 - (K-1) \sigma^2}
              {N - \sum_i n_i^2/N}\Bigr).

    Where no item was read twice, or items differ by no more than their readings do, every item is typical.
    Sums are exact: the order of readings does not matter, and equal costs are exactly typical.

    Args:
        n_items: number of items.
    """

    def __init__(self, n_items: int) -> None:
        self._n = [0] * n_items
        self._sum = [0] * n_items
        self._sum_sq = [0] * n_items
        self._mean = 0.0
        self._within_over_between = math.inf

    def add(self, item: int, cost: float) -> None:
        """Take the cost of one reading in."""
        if cost > 0.0:
            units = round(math.log(cost) * _UNIT)
            self._n[item] += 1
            self._sum[item] += units
            self._sum_sq[item] += units * units

    def fit(self) -> None:
        """Learn mu, sigma^2 and tau^2 from the readings so far; until the next call they stay."""
        self._within_over_between = math.inf
        n, total = list(compress(self._n, self._n)), list(compress(self._sum, self._n))
        N, grand = sum(n), sum(total)
        squares = sum(self._sum_sq)
        degrees = N - len(n)
        if degrees == 0 or N * squares == grand * grand:
            return
        about_zero = math.fsum(s * s / k for s, k in zip(total, n, strict=True))
        within = max(squares - about_zero, 0.0) / degrees
        between = about_zero - grand * grand / N - (len(n) - 1) * within
        spread = between / max(N - sum(k * k for k in n) / N, 1.0)
        if spread > 0.0:
            self._mean = math.fsum(s / k for s, k in zip(total, n, strict=True)) / len(n)
            self._within_over_between = within / spread

    def log_relative(self, item: int) -> float:
        """Logarithm of the item's cost over the typical one; 0 where nothing is known."""
        n = self._n[item]
        if n == 0 or self._within_over_between == math.inf:
            return 0.0
        away = (self._sum[item] / n - self._mean) / _UNIT
        return n / (n + self._within_over_between) * away


class MeanCost:
    """Mean cost of readings; exact sums, so that their order does not matter."""

    def __init__(self) -> None:
        self._n = 0
        self._total = 0

    def add(self, cost: float) -> None:
        """Take a reading's cost in."""
        self._n += 1
        self._total += round(cost * _FINEST)

    def affordable(self, budget: float) -> int | None:
        """How many readings of this cost the budget pays, in money; None as long as nothing is known."""
        if self._total <= 0:
            return None
        return int(min(budget * self._n / (self._total / _FINEST), _MOST) + 1e-6)


def model_effects(model: IntArray, item: IntArray, cost: FloatArray, n_models: int) -> FloatArray:
    r"""Logarithm of each model's cost over the typical one, whatever the items cost that it happened to read.

    :math:`y_{mi} = \mu + a_m + b_i + e_{mi}` with random effects of models and of items, whose variances and
    that of e are found by EM, the effects by turns of

    .. math:: a_m = \frac{\sum_i (y_{mi} - \mu - b_i)}{n_m + \sigma^2/\tau_a^2}, \qquad
              b_i = \frac{\sum_m (y_{mi} - \mu - a_m)}{n_i + \sigma^2/\tau_b^2}.

    Args:
        model: of each cell, shape (k,).
        item: of each cell, shape (k,).
        cost: of each cell, shape (k,); those of 0 are left out.
        n_models: number of models.

    Returns:
        a, shape (n_models,); exactly 0 for models without a cell, and where all cells cost the same.
    """
    paid = cost > 0.0
    none = np.zeros(n_models)
    if not paid.any() or cost[paid].max() == cost[paid].min():
        return none
    y, model = np.log(cost[paid]), model[paid]
    item = np.unique(item[paid], return_inverse=True)[1]
    y -= y.mean()
    n, k = np.bincount(model, minlength=n_models), np.bincount(item)
    read = n > 0
    a, b = none, np.zeros(k.size)
    noise = spread_a = spread_b = float(y @ y) / y.size / 3.0
    for _ in range(_ROUNDS):
        b = np.bincount(item, weights=y - a[model]) / (k + noise / spread_b)
        a = np.bincount(model, weights=y - b[item], minlength=n_models) / (n + noise / spread_a)
        left = y - a[model] - b[item]
        var_a, var_b = noise / (n[read] + noise / spread_a), noise / (k + noise / spread_b)
        uncertain = float(n[read] @ var_a + k @ var_b)
        noise = max((float(left @ left) + uncertain) / y.size, 1e-9)
        spread_a = max(float((a[read] ** 2 + var_a).mean()), 1e-9)
        spread_b = max(float((b**2 + var_b).mean()), 1e-9)
    return np.asarray(a)
