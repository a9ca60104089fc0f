"""``modulo``: the rotation as the paper prints it (strategy C), beside ``cyclic``, which takes its place."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from evalbudget.judges.schedules._schedule import JudgeSchedule
from evalbudget.statistics._bounds import IntArray


class Modulo(JudgeSchedule):
    r"""Judge ``j mod K`` scores generation j of every item; with one generation each, ``i mod K`` item i.

    .. math:: \text{judge}(i, j) = \begin{cases} j \bmod K & m > 1 \\ i \bmod K & m = 1 \end{cases}

    Literal, for comparison. Judges are balanced only if m is a multiple of K (n, if m is 1), and a dataset
    whose order has the period K gives all items of a kind the same judge (``benchmarks/judges.py period``).
    Of adaptive repeats, the first of every item have the same judge.

    References:
        CyclicJudge (arXiv 2603.01865), section 3.
    """

    name: ClassVar[str] = "modulo"
    weighs_judges: ClassVar[bool] = False

    def _row(self, epoch: int) -> IntArray:
        if self.epochs == 1:
            return ((np.arange(self.n_items) + epoch) % self.n_judges)[:, None]
        return np.full((self.n_items, 1), epoch % self.n_judges, dtype=np.int64)
