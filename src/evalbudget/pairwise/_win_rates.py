r"""Win rates of pairs of models, free of what the order in which answers are shown does to them.

Let v be the value for model A of an item's answer pair, and s = 1 where A was shown first, -1 where second. A
judge j who favours the first by :math:`\gamma_j` whatever is shown says :math:`E[v] = p + s \gamma_j`. The
win rate p is estimated by regressing v on 1 and on s of each judge, an item's readings sharing the weight of
one item; the error is robust to clusters, which are the items.

Where every item was shown in both orders, that is the plain mean over items of the mean over the two orders:
:math:`\gamma` is orthogonal to it. Where an item was shown in one order only, what the order does is
estimated from the others and taken away: the mean of the two orders' means, if each item was shown in one. An
effect of position that differs from item to item then adds to the spread, and no bias, as long as which
order an item was shown in does not depend on the item. A pair that was only ever shown in one order has no
such estimate, and its win rate says so.

Intervals. Items are what is sampled. The interval reaches as far as the wider of two on each side: Student's,
and the same from two items more on each side (:math:`\tilde n = n + 4`; Agresti & Coull), since a pair that
always has the same winner has a standard error of 0 and is not known for certain.

References:
    Agresti & Coull (1998), Approximate is better than "exact" for interval estimation of binomial
    proportions, The American Statistician 52.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalbudget.pairwise._preferences import Preferences
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._clustered_regression import clustered_fit, is_full_rank
from evalbudget.statistics._shrinkage import t_quantile

_ADDED = 4.0
"""Items added for the interval, half of them won."""
_FEWEST = 2


@dataclass(frozen=True, eq=False)
class WinRate:
    """How often one wins; a tie is half a win.

    Attributes:
        value: in [0, 1], up to the estimate of what position does.
        standard_error: items random; nan with too few of them.
        items: it rests on.
        degrees: of freedom.
        balanced: whether what position does was taken away: it was shown in both orders, if not on one item.
        influence: of each item, shape (n_items,).
    """

    value: float
    standard_error: float
    items: int
    degrees: int
    balanced: bool
    influence: FloatArray

    def interval(self, level: float) -> tuple[float, float]:
        """Within 0 to 1; nan where there are too few items."""
        return mean_interval(self.value, self.standard_error, self.items, self.degrees, level)

    def __neg__(self) -> WinRate:
        """Of the other one."""
        return WinRate(
            *(1.0 - self.value, self.standard_error, self.items, self.degrees, self.balanced),
            -self.influence,
        )


def win_rate(preferences: Preferences, a: int, b: int) -> WinRate:
    """How often ``a`` wins against ``b``.

    Args:
        preferences: in which the two met.
        a: index of a model.
        b: of another.
    """
    rows = preferences.of_pair(a, b)
    item = preferences.item[rows]
    value, sign = preferences.value_for(a, rows), preferences.sign_for(a, rows)
    weight = 1.0 / np.bincount(item)[item]
    columns = [np.ones(rows.size)]
    balanced = True
    for judge in np.unique(preferences.judge[rows]).tolist():
        more = [*columns, np.where(preferences.judge[rows] == judge, sign, 0.0)]
        if is_full_rank(np.stack(more, axis=1)):
            columns = more
        else:
            balanced = False
    cell = item * len(preferences.judges) + preferences.judge[rows]
    complete = bool(np.all(np.bincount(cell, weights=sign)[cell] == 0.0))
    if complete:  # position is orthogonal: it costs no degree of freedom
        columns, balanced = columns[:1], True
    n_items = len(preferences.items)
    fit = clustered_fit(np.stack(columns, axis=1), value, weight, item, n_items)
    influence = fit.influence[:, 0]
    return _of(float(fit.value[0]), influence, fit.clusters, fit.columns, balanced=balanced)


def mean_interval(value: float, error: float, items: int, degrees: int, level: float) -> tuple[float, float]:
    """Of a mean over items of values in [0, 1], with items added on both sides; nan where there are too few.

    Args:
        value: the mean.
        error: its standard error.
        items: that are sampled.
        degrees: of freedom of the error.
        level: of the interval.
    """
    if degrees < 1 or items < _FEWEST:
        return math.nan, math.nan
    n = float(items)
    more = n + _ADDED
    centre = (n * value + _ADDED / 2.0) / more
    squares = n * (n - 1.0) * error**2 + _ADDED / 4.0 + n * _ADDED / more * (value - 0.5) ** 2
    half = float(t_quantile(level, degrees + _ADDED)) * math.sqrt(squares / (more * (more - 1.0)))
    plain = float(t_quantile(level, float(degrees))) * error
    low, high = min(centre - half, value - plain), max(centre + half, value + plain)
    return max(0.0, low), min(1.0, high)


def average_of(rates: list[WinRate]) -> WinRate:
    """The mean over opponents, each weighing alike, on the items of any.

    Args:
        rates: of one model, on the same items.
    """
    influence = np.mean([rate.influence for rate in rates], axis=0)
    touched = np.any([rate.influence != 0.0 for rate in rates], axis=0)
    items = max(int(touched.sum()), max(rate.items for rate in rates))
    columns = max(rate.items - rate.degrees for rate in rates)
    value = float(np.mean([rate.value for rate in rates]))
    return _of(value, influence, items, columns, balanced=all(rate.balanced for rate in rates))


def _of(value: float, influence: FloatArray, items: int, columns: int, *, balanced: bool) -> WinRate:
    free = items - columns
    error = math.sqrt(float(influence @ influence) * items / free) if free > 0 else math.nan
    return WinRate(value, error, items, free, balanced, influence)
