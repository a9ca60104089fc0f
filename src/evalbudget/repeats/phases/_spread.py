r"""What the readings of completed phases say about how much an item's next readings will differ.

Three models, by the kind of scores: two values (:func:`of_two_values`), a scale of few levels
(:func:`of_levels`), anything else (:func:`of_numbers`). Each gives the posterior mean V_i of the variance of
item i's readings and f_i, a bound on their fourth central moment, with scores mapped to [-1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._shrinkage import VariancePrior

MOST_LEVELS = 32
_MOST_DIFFERENT = 0.75
"""Of the readings; where more of them differ, levels do not come again often enough to learn from."""
_NOTHING = 1e-12
_SMOOTHING = 1e-3
_WORTH = 1.5
_LEAST_AGREEMENT = 0.005


class Scores(StrEnum):
    """Kinds of scores, told apart by what was read."""

    TWO_VALUES = "two values"
    LEVELS = "levels"
    NUMBERS = "numbers"


@dataclass(frozen=True, slots=True)
class Spread:
    """How much the readings of each item differ.

    Attributes:
        variance: V_i, shape (n_items,).
        fourth: f_i, at least V_i^2, same shape.
        bonus: what is added to an item's standard error, over its readings: 0 but for numbers.
        scores: the kind of scores that was seen.
    """

    variance: FloatArray
    fourth: FloatArray
    scores: Scores
    bonus: float = 0.0

    def of(self, items: IntArray) -> Spread:
        """Of these items alone."""
        return replace(self, variance=self.variance[items], fourth=self.fourth[items])


@dataclass(frozen=True, slots=True)
class Sums:
    """Readings of all items, by item and different score.

    Attributes:
        levels: the different scores, mapped to [-1, 1], in increasing order, shape (n_levels,).
        level: of each reading, index into ``levels``.
        item: of each reading.
        n_items: K.
    """

    levels: FloatArray
    level: IntArray
    item: IntArray
    n_items: int

    @classmethod
    def of(cls, item: IntArray, value: FloatArray, n_items: int) -> Sums:
        """From scores of readings, shape (n_readings,); any finite ones."""
        levels, level = np.unique(value, return_inverse=True)
        low, high = levels[0] / 2.0, levels[-1] / 2.0  # halves: their difference is finite
        y = 2.0 * ((levels / 2.0 - low) / (high - low)) - 1.0 if high > low else np.zeros(1)
        return cls(y, level, item, n_items)

    @property
    def scores(self) -> Scores:
        """What kind of scores these are."""
        if self.levels.size <= 2:
            return Scores.TWO_VALUES
        few = self.levels.size <= min(MOST_LEVELS, _MOST_DIFFERENT * self.level.size)
        return Scores.LEVELS if few else Scores.NUMBERS

    @property
    def table(self) -> FloatArray:
        """C_ia, how often item i had level a, shape (n_items, n_levels)."""
        size = self.levels.size
        flat = np.bincount(self.item * size + self.level, minlength=self.n_items * size)
        return flat.reshape(self.n_items, size).astype(np.float64)


def spread_of(item: IntArray, value: FloatArray, n_items: int, scores: Scores | None = None) -> Spread | None:
    """How much the readings of each item differ; None where no two readings of an item do.

    Args:
        item: of each reading, shape (n_readings,).
        value: its score, same shape.
        n_items: K.
        scores: the model to use; None for what suits what was read. More than 32 levels are numbers.
    """
    if not value.size:
        return None
    sums = Sums.of(item, value, n_items)
    if sums.levels.size < 2:
        return None
    kind = sums.scores if scores is None else scores
    if kind is Scores.LEVELS and sums.levels.size > MOST_LEVELS:
        kind = Scores.NUMBERS
    if kind is Scores.TWO_VALUES and sums.levels.size == 2:
        n, upper = np.bincount(item, minlength=n_items), np.bincount(item[sums.level == 1], minlength=n_items)
        return of_two_values(n, upper)
    if kind is Scores.LEVELS:
        return of_levels(sums.table, sums.levels)
    return of_numbers(item, sums.levels[sums.level], n_items, two_values=sums.levels.size == 2)


def of_two_values(n: IntArray, x: IntArray) -> Spread | None:
    r"""Beta-binomial: shares of the upper value are Beta(s m, s (1 - m)) over items.

    With :math:`q = \overline{x (n - x) / (n (n - 1))}` over items read twice or more,
    :math:`m = \overline{x/n}` and :math:`r = q / (m (1 - m))` the prior is worth :math:`s = r / (1 - r)`
    readings, and the posterior mean of p (1 - p), not of its root, is

    .. math:: V_i = \frac{(s m + x_i)(s (1 - m) + n_i - x_i)}{(s + n_i)(s + n_i + 1)} .

    Args:
        n: readings of each item, shape (n_items,).
        x: how many of them have the upper value, same shape.

    Returns:
        None where no item has both values.
    """
    several, read = n > 1, n > 0
    pairs = n[several] * (n[several] - 1)
    q = float((x[several] * (n[several] - x[several]) / pairs).mean()) if several.any() else 0.0
    if q <= _NOTHING:
        return None
    m = float((x[read] / n[read]).mean())
    r = min(max(q / max(m * (1.0 - m), 1e-9), 0.001), 0.999)
    s = min(max(r / (1.0 - r), 0.05), 200.0)
    m = min(max(m, 0.001), 0.999)
    a, b = s * m + x, s * (1.0 - m) + n - x
    variance = 4.0 * a * b / ((a + b) * (a + b + 1.0))
    return Spread(variance, variance**2, Scores.TWO_VALUES)


def of_levels(counts: FloatArray, levels: FloatArray) -> Spread | None:
    r"""What one reading of an item says about another reading of it, on a scale of few levels.

    Let :math:`C_{ia}` count the readings of item i at level a, :math:`n_i = \sum_a C_{ia}`, and g be the
    pool's share of every level. Pairs of readings of the same item give the kernel

    .. math:: P_{ab} = \sum_i \frac{C_{ia} (C_{ib} - 1_{a=b})}{n_i (n_i - 1)}, \qquad
              T_{ab} \propto P_{ab} + 10^{-3} g_b, \quad \sum_b T_{ab} = 1,

    the distribution of a second reading after a first one at a. An item's posterior is its own histogram and
    :math:`\alpha` pseudo-readings drawn from T at its own readings. With y the level and
    :math:`R_k(a) = \sum_b T_{ab} y_b^k`, its moments are

    .. math:: M_k = \frac{\sum_j y_{ij}^k + \frac{\alpha}{n_i} \sum_j R_k(x_{ij})}{n_i + \alpha}

    from which follow its variance and its fourth central moment. How much T is worth follows from how often
    two readings of an item agree, beyond chance:

    .. math:: \alpha = 1.5 / \rho, \qquad
              \rho = \frac{\sum_a P_{aa} / \sum_{ab} P_{ab} - \sum_a g_a^2}{1 - \sum_a g_a^2}.

    An item that was never read has the moments of the pool.

    Args:
        counts: C, shape (n_items, n_levels).
        levels: y, shape (n_levels,).

    Returns:
        None where no two readings of an item differ.
    """
    n = counts.sum(axis=1)
    several = n > 1
    C = counts[several]
    share = C / (n[several] * (n[several] - 1.0))[:, None]
    P = share.T @ C - np.diag(share.sum(axis=0))
    differ = float(P.sum() - np.trace(P))
    if differ <= _NOTHING:
        return None
    g = counts.sum(axis=0) / counts.sum()
    rho = 1.0 - differ / float(P.sum()) / (1.0 - float(g @ g))
    alpha = _WORTH / max(rho, _LEAST_AGREEMENT)
    T = P + _SMOOTHING * g
    T /= T.sum(axis=1, keepdims=True)
    Y = levels[:, None] ** np.arange(1, 5)
    pseudo = np.divide(alpha, n, out=np.zeros_like(n), where=n > 0)[:, None]
    m1, m2, m3, m4 = ((counts @ Y + pseudo * (counts @ (T @ Y))) / (n[:, None] + alpha)).T
    unread = n == 0
    for moment, of_pool in zip((m1, m2, m3, m4), g @ Y, strict=True):
        moment[unread] = of_pool
    variance = np.maximum(m2 - m1**2, 0.0)
    fourth = np.maximum(m4 - 4.0 * m1 * m3 + 6.0 * m1**2 * m2 - 3.0 * m1**4, variance**2)
    return Spread(variance, fourth, Scores.LEVELS)


def of_numbers(item: IntArray, value: FloatArray, n_items: int, two_values: bool = False) -> Spread | None:
    r"""Sample variances, shrunk to the pool's, and a Bernstein term for what was not seen.

    :math:`V_i = (\kappa m + SS_i) / (\kappa + n_i - 1)` with the prior (m, kappa) of
    :class:`~evalbudget.statistics._shrinkage.VariancePrior`. What is added to an item's standard error is
    :math:`c \sqrt m` over its readings, with :math:`c = \sqrt{\ln K}`, or :math:`\sqrt{2 \ln K}` where only
    two values were seen.

    Args:
        item: of each reading, shape (n_readings,).
        value: its score, same shape.
        n_items: K.
        two_values: whether only two were seen.

    Returns:
        None where no two readings of an item differ.
    """
    n = np.bincount(item, minlength=n_items)
    first = np.zeros(n_items)
    first[item[::-1]] = value[::-1]
    deviation = value - first[item]
    total = np.bincount(item, deviation, n_items)
    squares = np.maximum(np.bincount(item, deviation**2, n_items) - total**2 / np.maximum(n, 1), 0.0)
    several = n > 1
    prior = VariancePrior.fit(squares[several] / (n[several] - 1), n[several] - 1)
    if not prior.mean > 0.0:
        return None
    variance = prior.posterior_mean(squares, np.maximum(n - 1, 0))
    c = math.sqrt((2.0 if two_values else 1.0) * math.log(n_items))
    return Spread(variance, variance**2, Scores.NUMBERS, c * math.sqrt(prior.mean))
