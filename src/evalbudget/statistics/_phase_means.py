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
from itertools import accumulate, pairwise

import numpy as np

from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

MOST_PHASES = 10_000
"""That are read of a run; phases double, so that a run has few."""


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
    order = np.lexsort((item, phase))
    at, numbers, x = item[order], phase[order], value[order]
    is_first = np.ones(order.size, dtype=bool)  # of its item in its phase
    is_first[1:] = (np.diff(at) != 0) | (np.diff(numbers) != 0)
    first = np.flatnonzero(is_first)
    own, pair = at[first], np.cumsum(is_first) - 1  # pairs of a phase and an item
    j = np.bincount(pair)
    of_phase, squares = _mean_and_squares(pair, x, x[first], j)
    ends = [0, *(np.flatnonzero(np.diff(numbers[first])) + 1).tolist(), own.size]
    phases = [slice(*each) for each in pairwise(ends)] if own.size else []

    n_read = np.unique(item).size
    n, plain = np.zeros(n_items), np.zeros(n_items)  # readings so far, and their plain mean
    mean, variance = np.zeros(n_items), np.zeros(n_items)
    seen, spread = np.zeros(n_items), np.zeros(n_items)
    total, several, unknown = 0.0, 0, True
    g, before, reached = np.zeros(own.size), 0.0, [0.0, *accumulate(sizes)]
    for here in phases:
        i, k, number = own[here], j[here], int(numbers[first[here.start]])
        told = number < len(sizes)
        size, before = (sizes[number], reached[number]) if told else (k.sum() / n_read, before)
        new, so_far = n[i] == 0, n[i] + k
        of_item = squares[here] + np.where(new, 0.0, (of_phase[here] - plain[i]) ** 2 * n[i] * k / so_far)
        seen[i] += of_item
        several += int(((n[i] <= 1) & (so_far > 1)).sum())
        now = seen[i] / np.maximum(so_far - 1, 1)
        total, spread[i] = total + float((now - spread[i]).sum()), now
        pooled = total / several if several else np.nan
        if unknown and several:  # of items with a single reading
            variance[np.isnan(variance)], unknown = pooled, False
        r = max(size, 1.0)
        g[here] = weight = np.where(new, 1.0, r / (before + r))
        mean[i] += weight * (of_phase[here] - mean[i])
        v = _evidence(of_item, k, new, pooled)
        variance[i] = (1.0 - weight) ** 2 * variance[i] + weight**2 * v / k
        plain[i] += k / so_far * (of_phase[here] - plain[i])
        n[i], before = so_far, before + size

    each, left = g / j, np.ones(n_items)
    for here in reversed(phases):
        each[here] *= left[own[here]]
        left[own[here]] *= 1.0 - g[here]
    share = np.empty(value.size)
    share[order] = each[pair]
    return PhaseMeans(np.where(n > 0, mean, np.nan), np.where(n > 0, variance, np.nan), share)


def _mean_and_squares(
    pair: IntArray, value: FloatArray, first: FloatArray, n: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Of each pair's readings, of which these are the first; equal readings have exactly no squares."""
    deviation = value - first[pair]
    total = np.bincount(pair, deviation)
    return first + total / n, np.maximum(np.bincount(pair, deviation**2) - total**2 / n, 0.0)


def _evidence(squares: FloatArray, j: IntArray, new: BoolArray, pooled: float) -> FloatArray:
    """v_i: variance of an item's readings, by what this phase adds to the squares; nan if unknown."""
    v = squares / np.maximum(np.where(new, j - 1, j), 1)
    single = new & (j == 1)
    return np.where(single, pooled if single.all() else v[~single].mean(), v)
