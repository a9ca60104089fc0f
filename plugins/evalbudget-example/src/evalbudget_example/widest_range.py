"""A third-party sampler, which asks the item whose scores range widest."""

from math import inf

from evalbudget import Cell, Design
from evalbudget.repeats.samplers import UrgencySampler


class WidestRange(UrgencySampler):
    """Three readings each, then the item with the largest (highest - lowest score) / readings."""

    name = "widest-range"

    def __init__(self, design: Design, *, warmup: int = 3, seed: int = 0) -> None:
        super().__init__(design, warmup=warmup, seed=seed)
        self.lowest = [inf] * design.n_items
        self.highest = [-inf] * design.n_items

    def _learn(self, cell: Cell, value: float) -> None:
        self.lowest[cell.item] = min(self.lowest[cell.item], value)
        self.highest[cell.item] = max(self.highest[cell.item], value)
        super()._learn(cell, value)

    def _urgency(self, arm: int) -> float:
        return (self.highest[arm] - self.lowest[arm]) / self.n_asked(arm)
