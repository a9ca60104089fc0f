r"""How many readings each item gets in a phase, when phases end, and in which order a phase is handed out.

A phase of size S gives every item at least one reading. The rest goes, one at a time, to the item with the
largest index, given how much each item's readings differ (:class:`~evalbudget.repeats.phases._spread.Spread`)
and how often it was read before:

- ``mean``: :math:`w_i^2 V_i / (c_i (c_i + 1))`, by the readings c_i of this phase alone: the phase's own mean
  is as precise as it can be (Neyman).
- ``mse``: :math:`V_i / (N_i (N_i + 1))`, by all readings.
- ``worst-item``: :math:`(V_i^2 + 8 f_i / N_i) / N_i^{2 + 4/P}`, N_i with those of earlier phases and
  :math:`P = \max(4, 3 \ln K)`: it minimises the sum of P-th powers of the items' errors. Of numbers
  :math:`\sqrt{V_i / N_i} + b / N_i`, with the bonus b.

What is best for the worst item costs the benchmark mean something. So the counts move from those towards the
``mean`` ones, until the phase's own mean is predicted to have at most .94 of the variance that equal counts
would give it. If the worst item is not predicted to gain 5% over equal counts, the counts are equal.

Where money is counted, a phase has as much of it as S readings of mean cost. The ``mean`` and ``mse`` indices
are divided by what a reading of the item costs, the ``worst-item`` one by its 4/P-th power (that of numbers
by its 1/P-th). Where dear items are the noisy ones nothing can be gained, so the bar is higher: counts move
towards equal ones until the phase's mean is predicted to have .97 of their variance, and with ``mean`` they
are equal unless it is predicted to have .85 of it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evalbudget.repeats._objective import Objective
from evalbudget.repeats.phases._spread import Scores, Spread
from evalbudget.statistics._bounds import FloatArray, IntArray

FIRST = 2
"""Readings of every item in the first phase."""
_SHORT = 0.25
"""Of a phase: a shorter last one is joined to the one before it."""
_TAIL = 8.0
_GUARD = 0.94
_WORTH_IT = 0.95
_TOWARDS_MEAN = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_ROUNDING = 1e-9
_PRICED_GUARD, _PRICED_MEAN = 0.97, 0.85

Index = Callable[[int, int], float]
"""What one more reading of an item is worth, after so many in its phase."""


def phase_ends(total: int, n_items: int) -> list[int]:
    """Readings, counted from the first, at which phases end: twice the items, and double each time.

    A last phase of less than one reading of every item, or of less than a quarter of the phase before it, is
    joined to that.

    Args:
        total: readings expected in all, at least 1.
        n_items: K.
    """
    ends = [min(FIRST * n_items, total)]
    while ends[-1] < total:
        ends.append(next_end(ends[-1], ends[-1], total, n_items))
    return ends


def next_end(begin: int, step: int, total: int, n_items: int) -> int:
    """Where the phase ends that begins after so many readings and is to have ``step`` of them."""
    end = begin + step
    return total if end >= total or total - end < max(n_items, _SHORT * step) else end


@dataclass(frozen=True, slots=True)
class Pool:
    """What a phase's counts go by, item by item.

    Attributes:
        spread: how much each item's readings differ.
        read: n_i, readings of each item so far, shape (n_items,).
        weights: w_i of the benchmark mean, same shape.
        price: what a reading of each item is expected to cost, with mean 1, same shape; None where readings
            are counted.
    """

    spread: Spread
    read: IntArray
    weights: FloatArray
    price: FloatArray | None = None

    def counts(self, size: int, objective: Objective) -> IntArray | None:
        """Readings of each item in the next phase, at least 1 each; None for equal counts.

        Args:
            size: S, readings in the phase, or as much money as S readings of mean cost; at least n_items.
            objective: what is minimised.
        """
        if not self.spread.variance.any():
            return None
        if objective is Objective.MSE:
            return self._give(self._one, size, self._mse_index)
        neyman = self._give(self._one, size, self._mean_index)
        if self.price is not None:
            return self._priced(size, objective, neyman)
        if objective is Objective.MEAN:
            return neyman
        worst = self._give(self._one, size, self._worst_index)
        found = worst.astype(np.float64)
        for towards in _TOWARDS_MEAN:
            found = (1.0 - towards) * worst + towards * neyman
            if self._variance(found) <= _GUARD * self._variance(self._equal(size)):
                break
        whole = self._give(_floor(found), size, self._mean_index)
        gain = self._log_worst(self.read + whole) - self._log_worst(self.read + self._equal(size))
        return None if gain > math.log(_WORTH_IT) else whole

    def _priced(self, size: int, objective: Objective, neyman: IntArray) -> IntArray | None:
        """Counts for money: better than equal counts by a margin, or None."""
        equal = self._equal(size)
        if objective is Objective.MEAN:
            return neyman if self._variance(neyman) <= _PRICED_MEAN * self._variance(equal) else None
        worst = self._give(self._one, size, self._worst_index)
        for tenths in range(10):
            found = (1.0 - tenths / 10) * worst + tenths / 10 * equal
            if self._variance(found) <= _PRICED_GUARD * self._variance(equal):
                return self._give(_floor(found), size, self._mean_index)
        return None

    @property
    def _one(self) -> IntArray:
        return np.ones(self.read.size, dtype=np.int64)

    def _equal(self, size: int) -> FloatArray:
        return np.full(self.read.size, size / self.read.size)

    def _variance(self, found: FloatArray | IntArray) -> float:
        """Of the phase's own mean, without a constant."""
        return float((self.weights**2 * self.spread.variance / found).sum())

    def _log_worst(self, total: FloatArray | IntArray) -> float:
        """Logarithm of the worst item's predicted error: the P-norm of U_i, U_i^4 = (V^2 + 8 f/N)/N^2."""
        V, f = self.spread.variance, self.spread.fourth
        scale = float(V.max()) ** 2
        logs = self._power / 4.0 * np.log((V**2 + _TAIL * f / total) / total**2 / scale + 1e-18)
        return float(logs.max() + np.log(np.exp(logs - logs.max()).sum())) / self._power

    @property
    def _power(self) -> float:
        """P: of the norm that stands for the largest of K errors."""
        return max(4.0, 3.0 * math.log(self.read.size))

    # indices: of item i with c readings in this phase so far

    @property
    def _mean_index(self) -> Index:
        gain = self.weights**2 * self.spread.variance
        weighed: list[float] = (gain if self.price is None else gain / self.price).tolist()
        return lambda i, c: weighed[i] / (c * (c + 1))

    @property
    def _mse_index(self) -> Index:
        gain = self.spread.variance if self.price is None else self.spread.variance / self.price
        weighed, n = gain.tolist(), self.read.tolist()
        return lambda i, c: weighed[i] / ((n[i] + c) * (n[i] + c + 1))

    @property
    def _worst_index(self) -> Index:
        V, f, n = (each.tolist() for each in (self.spread.variance, self.spread.fourth, self.read))
        e = 4.0 / self._power
        price = np.ones(len(n)) if self.price is None else self.price
        if self.spread.scores is Scores.NUMBERS:
            bonus, scale = self.spread.bonus, (price ** (e / 4.0)).tolist()
            return lambda i, c: (math.sqrt(V[i] / (n[i] + c)) + bonus / (n[i] + c)) / scale[i]
        scale = (price**e).tolist()
        return lambda i, c: (V[i] ** 2 + _TAIL * f[i] / (n[i] + c)) / ((n[i] + c) ** (2.0 + e) * scale[i])

    def _give(self, start: IntArray, size: int, index: Index) -> IntArray:
        """Counts of that size: one reading at a time to the largest index; ties go to the first item."""
        found: list[int] = start.tolist()
        price = [1.0] * len(found) if self.price is None else self.price.tolist()
        left = size - sum(p * c for p, c in zip(price, found, strict=True))
        heap = [(-index(i, c), i) for i, c in enumerate(found)]
        heapq.heapify(heap)
        while left > 0.5:
            i = heap[0][1]
            found[i] += 1
            left -= price[i]
            heapq.heapreplace(heap, (-index(i, found[i]), i))
        return np.array(found, dtype=np.int64)


def _floor(counts: FloatArray) -> IntArray:
    return np.floor(counts + _ROUNDING).astype(np.int64)


def equal_counts(size: int, n_items: int, rng: np.random.Generator) -> IntArray:
    """As equal as they can be; who gets one more is random."""
    found = np.full(n_items, size // n_items, dtype=np.int64)
    found[rng.permutation(n_items)[: size % n_items]] += 1
    return found


def rest_in_order(found: IntArray, rng: np.random.Generator) -> IntArray:
    """Items of a phase after one reading of each: spread evenly over the phase.

    Item i's k-th further reading (k = 1..c_i - 1) stands at (k - u_i)/(c_i - 1), u_i uniform: wherever the
    run ends, each item has had its share of the phase.

    Args:
        found: c_i, readings of each item in the phase, at least 1.
        rng: for u.
    """
    more = found - 1
    item = np.repeat(np.arange(found.size), more)
    k = np.arange(item.size) - np.repeat(np.cumsum(more) - more, more) + 1
    at = (k - rng.random(found.size)[item]) / more[item]
    return np.asarray(item[np.lexsort((item, at))])
