r"""``cyclic``: judges in turn (strategy C of the paper), balanced whatever the order of the dataset.

Plain ``item mod K`` gives every item of a kind the same judge when the dataset repeats with period K. So
items are shuffled within their category, and every category deals the judges from a start of its own:

.. math:: \text{judge} = \pi[(s_c + e N_c + p_i + \lfloor e\, g_c / K \rfloor) \bmod K], \quad
          g_c = \gcd(N_c, K)

for the item at shuffled position p_i of N_c, in epoch e, with a random permutation pi of the judges. A
category continues in an epoch where the last one ended, so after every epoch its counts differ by one at
most. The last term moves on by one judge whenever complete cycles were dealt: that changes no count, but
gives every item each judge once in its first K generations. (With s_c + p_i + e, as it is often written, two
epochs of N_c = 2 items and K = 5 judges ask one judge twice and two never.)

The starts s_c are chained, so that the judges with one call more follow one another, category after category:
at the planned number of epochs the counts over all categories differ by one at most as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import ClassVar, Unpack

import numpy as np

from evalbudget.judges.schedules._schedule import JudgeSchedule, ScheduleOptions
from evalbudget.statistics._bounds import IntArray


class Cyclic(JudgeSchedule):
    """Judges in turn within every category: one call per generation, no single-judge bias in the mean.

    Counts differ by one at most per category after every epoch, and over all categories at the planned number
    of epochs; an item meets every judge once in its first K generations.

    Args:
        items: as in :class:`JudgeSchedule`.
        judges: as in :class:`JudgeSchedule`.
        options: as in :class:`JudgeSchedule`; the seed shuffles items and judges.

    References:
        Zhu et al. (2026), arXiv 2603.01865; the order of dealing is ours.
    """

    name: ClassVar[str] = "cyclic"

    def __init__(
        self,
        items: Sequence[str],
        judges: Sequence[str],
        **options: Unpack[ScheduleOptions],
    ) -> None:
        super().__init__(items, judges, **options)
        K, draws = self.n_judges, np.random.default_rng([self.seed, 0])
        self._order = draws.permutation(K)
        self._size = np.bincount(self.category, minlength=len(self.categories))
        self._common = np.array([gcd(int(size), K) for size in self._size], dtype=np.int64)
        self._position = positions_within(self.category, draws)
        self._start = np.zeros(len(self.categories), dtype=np.int64)
        following = int(draws.integers(K))
        for c in draws.permutation(len(self.categories)).tolist():
            shift = self.epochs * int(self._common[c]) // K
            self._start[c] = following - shift
            following += self.epochs * int(self._size[c])

    def _row(self, epoch: int) -> IntArray:
        K = self.n_judges
        offset = self._start + epoch * self._size + epoch * self._common // K
        judge: IntArray = self._order[(offset[self.category] + self._position) % K]
        return judge[:, None]


def positions_within(group: IntArray, draws: np.random.Generator) -> IntArray:
    """A random rank of each entry among those of its group, from 0."""
    order = np.lexsort((draws.random(group.size), group))
    sizes = np.bincount(group)
    rank = np.empty(group.size, dtype=np.int64)
    rank[order] = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank
