"""Successive rejects: after each of n_models - 1 rounds the worst model leaves."""

from __future__ import annotations

import math
from functools import cached_property

from evalbudget.races.samplers._fixed_budget import FixedBudgetSampler, Stage
from evalbudget.races.samplers._rounds import Table


class SuccessiveRejects(FixedBudgetSampler):
    r"""Round k = 1 ... K - 1 brings every model left to :math:`n_k` items, the same for all.

    .. math:: n_k = \Big\lceil \frac{1}{\overline{\log} K} \frac{B - K}{K + 1 - k} \Big\rceil, \quad
              \overline{\log} K = \frac12 + \sum_{i=2}^K \frac1i

    and at most the number of items; then the model with the worst mean leaves. A model that is given up
    after failures counts as one that left. Takes the arguments of FixedBudgetSampler.

    References:
        Audibert, Bubeck & Munos (2010), Best arm identification in multi-armed bandits, COLT.
    """

    name = "successive-rejects"

    @property
    def minimum_readings(self) -> int:
        """More readings than models, so that the first round has one item."""
        return self._n_models + 1 if self._n_models > 1 else 1

    @cached_property
    def _items_by_round(self) -> tuple[int, ...]:
        K = self._n_models
        log_bar = 0.5 + sum(1.0 / i for i in range(2, K + 1))
        wanted = (math.ceil((self.budget - K) / (log_bar * (K + 1 - k)) - 1e-9) for k in range(1, K))
        return tuple(min(n, self._n_items) for n in wanted)

    def _new_items(self, table: Table, note: Stage) -> int:
        before = self._items_by_round[note.number - 1] if note.number else 0
        return self._items_by_round[note.number] - before

    def _left_after(self, note: Stage) -> int:
        return self._n_models - note.number - 1
