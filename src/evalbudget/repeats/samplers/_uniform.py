"""Every item equally often: what an evaluation without evalbudget does."""

from __future__ import annotations

from typing import Unpack

from evalbudget.design import Design
from evalbudget.repeats.samplers._urgency import UrgencySampler
from evalbudget.sampler import Allocation, SamplerOptions


class Uniform(UrgencySampler):
    """Round-robin: the item with the fewest readings is next.

    Args:
        warmup: readings of each item at least; it changes nothing but the smallest budget.
        common: see UrgencySampler.
    """

    name = "uniform"
    allocation = Allocation.FIXED

    def __init__(self, design: Design, *, warmup: int = 1, **common: Unpack[SamplerOptions]) -> None:
        super().__init__(design, warmup=warmup, **common)

    def _rank(self, item: int) -> float:
        return self._urgency(item)  # no warm-up to wait for: a straggler must not hold the others up

    def _urgency(self, item: int) -> float:
        return -float(self.n_asked(item))
