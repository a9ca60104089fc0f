r"""Synchronized Successive Rejects (SySRs), arXiv 2606.07726.

Published: successive rejects by Audibert, Bubeck & Munos (2010) in which all models left answer the same
items, drawn without replacement, so that models are compared in pairs; nothing to choose. That is what our
`successive-rejects` does. One thing differs: where the last rounds ask for more items than there are, the
authors' code hands what they cannot use to the earlier rounds, in proportion (read, not copied). Its rounding
is not taken over; here alpha is the largest factor for which

.. math:: n_k = \min\Bigl(N, \Bigl\lceil \frac{\alpha}{\overline{\log} K} \frac{B - K}{K + 1 - k}
          \Bigr\rceil\Bigr), \quad \sum_k (n_k - n_{k-1}) (K + 1 - k) \le B.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise

from evalbudget.races.samplers import SuccessiveRejects


def schedule(budget: int, n_models: int, n_items: int) -> tuple[int, ...]:
    """Items that every model left has read at the end of each round, shape (n_models - 1,).

    Args:
        budget: cells in all, above the number of models.
        n_models: K, at least 2.
        n_items: N.
    """
    log_bar = 0.5 + sum(1.0 / i for i in range(2, n_models + 1))
    wanted = [(budget - n_models) / (log_bar * (n_models + 1 - k)) for k in range(1, n_models)]

    def rounds(alpha: float) -> tuple[int, ...]:
        return tuple(min(n_items, math.ceil(alpha * items - 1e-9)) for items in wanted)

    if wanted[-1] <= n_items:
        return rounds(1.0)
    low, high = 1.0, n_items / wanted[0]
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if cells(rounds(middle)) <= budget else (low, middle)
    return rounds(low)


def cells(rounds: tuple[int, ...]) -> int:
    """What a schedule costs."""
    left = range(len(rounds) + 1, 1, -1)
    return sum((after - before) * k for (before, after), k in zip(pairwise((0, *rounds)), left, strict=True))


class SySRs(SuccessiveRejects):
    """Successive rejects on shared items, that leaves no budget to rounds that cannot use it."""

    name = "sysrs"

    @cached_property
    def _items_by_round(self) -> tuple[int, ...]:
        return schedule(self.budget, self._n_models, self._n_items)
