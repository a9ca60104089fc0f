"""What models cost, whatever items they happened to read."""

from __future__ import annotations

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray

_ROUNDS = 30  # of EM; the variances of effects change by less than a percent after that


def model_effects(model: IntArray, item: IntArray, cost: FloatArray, n_models: int) -> FloatArray:
    r"""Logarithm of each model's cost over the typical one, whatever the items cost that it happened to read.

    Costs of agents spread over decades, so this is about their logarithms y. A reading that cost nothing
    (cached, or given up before it was sent) says nothing about the next one and is left out.

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
