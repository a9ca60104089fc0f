"""Every item equally often: what an evaluation without evalbudget does."""

from __future__ import annotations

from evalbudget.design import Design
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.sampler import Allocation


class Uniform(RepeatSampler):
    """Round-robin: the item with the fewest readings is next.

    Args:
        design: one model, one rater.
        warmup: readings of each item at least; it changes nothing but the smallest budget.
        seed: of the order within a round.
        max_failures: see Sampler.
    """

    name = "uniform"
    allocation = Allocation.FIXED

    def __init__(self, design: Design, *, warmup: int = 1, seed: int = 0, max_failures: int = 3) -> None:
        super().__init__(design, warmup=warmup, seed=seed, max_failures=max_failures)

    def _rank(self, item: int) -> float:
        return self._urgency(item)  # no warm-up to wait for: a straggler must not hold the others up

    def _urgency(self, item: int) -> float:
        return -float(self.n_asked(item))
