"""uniform: every pair as often as any other."""

from __future__ import annotations

from collections.abc import Mapping

from evalbudget.pairwise.samplers._base import PairSampler


class UniformPairs(PairSampler):
    """All pairs side by side, a batch of each at a time: what one does without a sampler."""

    name = "uniform"

    def _plan(self) -> Mapping[int, int] | None:
        return dict.fromkeys(self._open(), self.batch)
