r"""Paired top-two Thompson sampling: `race` with another rule of whom to ask next, and nothing else changed.

Published (Russo 2016, Simple Bayesian algorithms for best-arm identification): draw all means from the
posterior; the largest is the leader I. Draw again until another model is the largest: the challenger J. With
probability 1/2 ask I, else J. Paired is what `race` does already: all models read one order of items, and the
posterior is of their means once the effects of items they share are taken out. The posterior is normal with
the mean and variance that `race` has.

Guessed, because a step of a race has several cells: every cell of the step draws a pair of its own, with the
same posterior; and after 32 draws without another model the challenger is the one nearest to the leader in
standard deviations, as is done to save time where one model is nearly certain.
"""

from __future__ import annotations

import numpy as np

from evalbudget.races.samplers import Race, Table
from evalbudget.races.samplers._race import Known
from evalbudget.statistics._bounds import FloatArray, IntArray

_TRIES = 32


def pairs(
    mean: FloatArray, variance: FloatArray, count: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Leader and challenger of each cell, shape (count,) each.

    Args:
        mean: of the posterior, shape (n,), at least two models.
        variance: of the posterior, shape (n,).
        count: number of pairs.
        rng: of the draws.
    """
    draws = mean + np.sqrt(variance) * rng.standard_normal((count, 1 + _TRIES, mean.size))
    largest = draws.argmax(axis=2)
    leader, others = largest[:, 0], largest[:, 1:] != largest[:, :1]
    found = others.any(axis=1)
    challenger = np.where(found, largest[np.arange(count), 1 + others.argmax(axis=1)], leader)
    for cell in np.flatnonzero(~found).tolist():
        first = leader[cell]
        behind = (mean[first] - mean) / np.sqrt(np.maximum(variance[first] + variance, 1e-18))
        behind[first] = np.inf
        challenger[cell] = behind.argmin()
    return leader, challenger


class TopTwo(Race):
    """Race whose steps go to leaders and challengers of Thompson draws, half to each."""

    name = "top-two"

    def _duels(self, table: Table, note: Known, drawable: IntArray) -> tuple[IntArray, IntArray]:
        rng = np.random.default_rng([self.seed, 7, table.n_finished])
        among = np.flatnonzero(note.is_in & note.is_chased)
        leader, challenger = pairs(note.mean[among], note.variance[among], self.batch, rng)
        asked = among[np.where(rng.random(self.batch) < 0.5, leader, challenger)]
        left = asked[np.isin(asked, drawable)]
        if not left.size:  # whoever was meant has no items left
            left = rng.choice(drawable, self.batch)
        models, items = np.unique(left, return_counts=True)
        return models, items
