"""``all``: every judge scores every generation (strategy A of the paper)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from evalbudget.judges.schedules._schedule import JudgeSchedule
from evalbudget.statistics._bounds import IntArray


class All(JudgeSchedule):
    """Every judge scores every generation: K calls each, and everything about the panel is identified."""

    name: ClassVar[str] = "all"

    @property
    def calls_per_generation(self) -> int:
        """The number of judges still asked."""
        return len(self.active)

    def _row(self, epoch: int) -> IntArray:
        return np.tile(np.arange(self.n_judges), (self.n_items, 1))

    def _moved(self, row: IntArray, gone: int, epoch: int, calls: IntArray) -> IntArray:
        return row[:, row[0] != gone]
