"""What a repeats sampler minimises."""

from __future__ import annotations

from enum import StrEnum

from evalbudget.errors import UnknownNameError


class Objective(StrEnum):
    """Loss over the items' estimates."""

    WORST_ITEM = "worst-item"
    """max_i |mean_i - mu_i|: every single item's score can be trusted."""
    MSE = "mse"
    """mean_i (mean_i - mu_i)^2: the items' scores together."""
    MEAN = "mean"
    """(sum_i w_i (mean_i - mu_i))^2: the (weighted) benchmark mean alone."""

    @classmethod
    def named(cls, name: str) -> Objective:
        """The objective of that name.

        Raises:
            UnknownNameError: there is none; the message suggests the nearest.
        """
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError("objective", name, [o.value for o in cls]) from None
