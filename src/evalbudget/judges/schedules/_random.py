"""``random``: a judge drawn anew for every generation (strategy B of the paper)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from evalbudget.judges.schedules._schedule import JudgeSchedule
from evalbudget.statistics._bounds import IntArray


class Random(JudgeSchedule):
    """Each generation is scored by a judge drawn with equal chances: unbiased, but not balanced."""

    name: ClassVar[str] = "random"
    weighs_judges: ClassVar[bool] = False

    def _row(self, epoch: int) -> IntArray:
        draws = np.random.default_rng([self.seed, 1, epoch])
        return draws.integers(self.n_judges, size=(self.n_items, 1))

    def _moved(self, row: IntArray, gone: int, epoch: int, calls: IntArray) -> IntArray:
        draws = np.random.default_rng([self.seed, 2, epoch, len(self.dropped)])
        instead = np.asarray(self.active)[draws.integers(len(self.active), size=row.shape)]
        return np.where(row == gone, instead, row)
