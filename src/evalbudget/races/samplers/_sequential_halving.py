"""Sequential halving: after each of log2(n_models) rounds the worse half of the models leaves."""

from __future__ import annotations

from evalbudget.races.samplers._fixed_budget import FixedBudgetSampler, Stage
from evalbudget.races.samplers._rounds import Table


class SequentialHalving(FixedBudgetSampler):
    r"""Each of the :math:`\lceil \log_2 K \rceil` rounds gets an equal share of what is left of the budget.

    Every model left gets the same new items, as many as the share pays for; then the worse half leaves, by
    the mean over all its items so far. The published method forgets the items of earlier rounds and what the
    division leaves over; nothing is gained by that. Takes the arguments of FixedBudgetSampler.

    References:
        Karnin, Koren & Somekh (2013), Almost optimal exploration in multi-armed bandits, ICML.
    """

    name = "sequential-halving"

    @property
    def minimum_readings(self) -> int:
        """One item of each model in the first round."""
        return max(1, self._n_models * self._rounds)

    @property
    def _rounds(self) -> int:
        return (self._n_models - 1).bit_length()

    def _new_items(self, table: Table, note: Stage) -> int:
        left = self.budget - int(table.drawn.sum())
        return left // (note.remaining.size * max(1, self._rounds - note.number))

    def _left_after(self, note: Stage) -> int:
        return (note.remaining.size + 1) // 2
