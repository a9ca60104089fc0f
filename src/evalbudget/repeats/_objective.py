"""What a repeats sampler minimises."""

from __future__ import annotations

from evalbudget.errors import Choice


class Objective(Choice):
    """Loss over the items' estimates."""

    WORST_ITEM = "worst-item"
    """max_i |mean_i - mu_i|: every single item's score can be trusted."""
    MSE = "mse"
    """mean_i (mean_i - mu_i)^2: the items' scores together."""
    MEAN = "mean"
    """(sum_i w_i (mean_i - mu_i))^2: the (weighted) benchmark mean alone."""
