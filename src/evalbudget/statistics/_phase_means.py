r"""Item means from readings bought in phases, unbiased wherever the run ends.

What is read in a phase depends on the scores of earlier phases, never on its own. So each phase's own mean of
an item is unbiased, and so is every average of them whose weights are known before the phase's scores are.
Phases are folded in one by one; of phase p let j_i be the readings of item i that are in, t their sum, K the
items with a reading, and N the readings per item of the phases before it. Then

.. math:: g_i = \frac{r}{N + r}, \quad r = t/K \text{ (1 where } t < K), \qquad
          m_i \leftarrow (1 - g_i) m_i + g_i \bar x_{ip}, \qquad
          A_i \leftarrow (1 - g_i)^2 A_i + g_i^2 \frac{v_i}{j_i},

g_i = 0 where j_i = 0, and 1 where the item was not read before. v_i is what phase p adds to the evidence on
the item's variance, :math:`(SS_i^{\text{after}} - SS_i^{\text{before}})/j_i`: fresh readings only, since old
ones decided how many there are. In an item's first phase it is :math:`SS_i/(j_i - 1)`, or the mean of the
others' where there is a single reading; of those of earlier phases where there are no others.

The weight g_i goes by totals and not by the item's own count, so that items whose first scores were luck do
not keep it: E m_i is the item's true mean at every stop. Totals are those of the whole run also where only
some of its items are looked at, since how much of a phase these get depends on their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

MOST_PHASES = 10_000
"""That are read of a run: phases double, and each takes a pass over all readings."""


@dataclass(frozen=True, slots=True)
class PhaseMeans:
    """Items' means, folded over phases.

    Attributes:
        mean: m_i, shape (n_items,); nan where nothing was read.
        variance: A_i, estimated variance of m_i, same shape; nan where unknown (one reading of each item).
        share: of each reading in its item's mean, shape (n_readings,); those of an item add up to 1.
    """

    mean: FloatArray
    variance: FloatArray
    share: FloatArray


def item_shares(
    item: IntArray, phase: FloatArray | None, n_items: int, sizes: Sequence[float] = ()
) -> FloatArray:
    """Share of each reading in its item's mean; those of an item add up to 1.

    Args:
        item: of each reading, shape (n_readings,).
        phase: in which it was bought, same shape; None: all readings of an item weigh the same.
        n_items: of the benchmark, read or not.
        sizes: see :func:`phase_means`.
    """
    if phase is None:
        return np.asarray(1.0 / np.bincount(item, minlength=n_items)[item])
    return phase_means(item, phase, np.zeros(item.size), n_items, sizes).share


def phase_means(
    item: IntArray, phase: FloatArray, value: FloatArray, n_items: int, sizes: Sequence[float] = ()
) -> PhaseMeans:
    """Fold the phases of a run, in order.

    Args:
        item: of each reading, shape (n_readings,).
        phase: in which it was bought, from 0, same shape.
        value: its score, same shape.
        n_items: of the benchmark, read or not.
        sizes: t/K of each phase of the run that these are a part of; by these readings where it says nothing.
    """
    n, plain = np.zeros(n_items), np.zeros(n_items)  # readings so far, and their plain mean
    mean, variance, seen = np.zeros(n_items), np.zeros(n_items), np.zeros(n_items)
    share, before = np.zeros(value.size), 0.0
    order = np.argsort(phase, kind="stable")
    for these in np.split(order, np.flatnonzero(np.diff(phase[order])) + 1) if order.size else ():
        at, x, number = item[these], value[these], int(phase[these[0]])
        told = number < len(sizes)
        size = sizes[number] if told else these.size / np.unique(item).size
        before = sum(sizes[:number]) if told else before
        j = np.bincount(at, minlength=n_items)
        came, new = j > 0, (j > 0) & (n == 0)
        of_phase, squares = _mean_and_squares(at, x, j)
        squares += np.where(new | ~came, 0.0, (of_phase - plain) ** 2 * n * j / np.maximum(n + j, 1))
        seen += squares
        several = n + j > 1
        pooled = float((seen[several] / (n + j - 1)[several]).mean()) if several.any() else np.nan
        v = _evidence(squares, j, new, pooled)
        variance = np.where(np.isnan(variance), pooled, variance)  # of items with a single reading
        r = max(size, 1.0)
        g = np.where(new, 1.0, np.where(came, r / (before + r), 0.0))
        mean = mean + np.where(came, g * (of_phase - mean), 0.0)
        variance = (1.0 - g) ** 2 * variance + np.where(came, g**2 * v / np.maximum(j, 1), 0.0)
        share *= (1.0 - g)[item]
        share[these] = (g / np.maximum(j, 1))[at]
        plain = plain + np.where(came, j / np.maximum(n + j, 1) * (of_phase - plain), 0.0)
        n, before = n + j, before + size
    return PhaseMeans(np.where(n > 0, mean, np.nan), np.where(n > 0, variance, np.nan), share)


def _mean_and_squares(item: IntArray, value: FloatArray, n: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of each item's readings; equal readings have exactly no squares."""
    first = np.zeros(n.size)
    first[item[::-1]] = value[::-1]
    deviation = value - first[item]
    total = np.bincount(item, deviation, n.size)
    squares = np.bincount(item, deviation**2, n.size)
    some = np.maximum(n, 1)
    return first + total / some, np.maximum(squares - total**2 / some, 0.0)


def _evidence(squares: FloatArray, j: IntArray, new: BoolArray, pooled: float) -> FloatArray:
    """v_i: variance of an item's readings, by what this phase adds to the squares; nan if unknown."""
    v = squares / np.maximum(np.where(new, j - 1, j), 1)
    single, known = new & (j == 1), (j > 0) & ~(new & (j == 1))
    return np.where(single, v[known].mean() if known.any() else pooled, v)
