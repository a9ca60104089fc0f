"""Every item equally often: what an evaluation without evalbudget does."""

from __future__ import annotations

from typing import Unpack

from evalbudget.design import Design
from evalbudget.repeats._rounds import Note, Readings, Round
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.sampler import Allocation, SamplerOptions


class Uniform(RepeatSampler):
    """Round-robin: the items with the fewest readings are next.

    Args:
        warmup: readings of each item at least; it changes nothing but the smallest budget.
        common: see RepeatSampler.
    """

    name = "uniform"
    allocation = Allocation.FIXED

    def __init__(self, design: Design, *, warmup: int = 1, **common: Unpack[SamplerOptions]) -> None:
        super().__init__(design, warmup=warmup, **common)

    def plan(self, table: Readings, last: Note | None) -> Round:
        """Once more the open items that have the fewest readings."""
        return Round(table.least_read(self.order), Note(0 if last is None else last.phase + 1))
