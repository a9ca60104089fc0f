r"""Win rates of pairs of models: all judges', free of what the order in which answers are shown does to them.

Let v be the value for model A of an item's answer pair, and s = 1 where A was shown first, -1 where second. A
judge j who favours the first by :math:`\gamma_j` whatever is shown says :math:`E[v] = p_j + s \gamma_j`. The
win rate is the mean of p over all judgements, an item's judgements sharing the weight of one item:

.. math:: p = \sum_g W_g \, \tfrac12 (m_{g+} + m_{g-})

with g the effects of position (:mod:`evalbudget_pairwise._position_effects`: a judge's own, or one that
several judges share), W their shares of the weight and m the means of v in the two orders.

Where every judge saw each of its items in both orders, that is the plain mean over items. An effect of
position that differs from item to item adds to the spread, and no bias, as long as which order an item was
shown in does not depend on the item. Judges who saw one order only, where nothing tells what it did to them,
count with the mean effect of those who saw both, or as they are if there is none; what position may have
done to them is part of the interval. A pair that was only ever shown in one order has its win rate as shown.

Errors. Items are what is sampled: the influences of an item's judgements are summed. Where judges share an
effect they are sampled, too, and the sums over judges add to the variance what they have beyond those over
single judgements (Cameron, Gelbach & Miller), each judge held against the others of its order, as in a
jackknife. Two votes of the largest spread are added to each order of an effect, below which no error goes:
one vote in an order has a residual of 0, and is not known for certain.

Intervals. Exact where each item's value is 0 or 1 and no position is taken away. Otherwise the interval
reaches as far as the wider of two on each side: Student's, and the same from two items more on each side
(:math:`\tilde n = n + 4`; Agresti & Coull), since a pair that always has the same winner has a standard error
of 0 and is not known for certain.

References:
    Agresti & Coull (1998), Approximate is better than "exact" for interval estimation of binomial
    proportions, The American Statistician 52. Cameron, Gelbach & Miller (2011), Robust inference with
    multiway clustering, Journal of Business & Economic Statistics 29.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from evalbudget.statistics import BoolArray, FloatArray, IntArray, exact_share, t_quantile
from evalbudget_pairwise._position_effects import PositionEffects, position_effects
from evalbudget_pairwise._preferences import Preferences

_ADDED = 4.0
"""Items added for the interval, half of them won."""
_VOTES = 2.0
"""Votes of the largest spread added to each order of an effect."""
_LARGEST = 0.25
"""Variance of a value in [0, 1]."""
_FEWEST = 2


class Taken(Enum):
    """What a win rate is free of."""

    NOTHING = "none"
    """It is as shown."""
    CANCELS = "both orders"
    """Every judge saw each of its items in both orders."""
    OWN = "own"
    """The effect of position of each judge."""
    COMMON = "common"
    """One effect that all judges share."""
    BOTH = "own and common"
    """The effect of each judge who saw both orders, and for the others one that they share."""


@dataclass(frozen=True, eq=False)
class WinRate:
    """How often one wins; a tie is half a win.

    Attributes:
        value: in [0, 1].
        item: of each judgement, shape (n,).
        judge: of each, shape (n,).
        influence: of each, 0 where what position does to it is not known, shape (n,).
        shared: judgements whose effect of position is one of several judges, shape (n,).
        columns: means that were estimated.
        least: below which no standard error goes.
        untold: share of the judgements of which it is not known what position does to them.
        untold_won: part of the value that comes from these.
        position: what was taken away.
        won: items won, where each was won or lost and no position was taken away; else nan.
    """

    value: float
    item: IntArray
    judge: IntArray
    influence: FloatArray
    shared: BoolArray
    columns: int = 1
    least: float = 0.0
    untold: float = 0.0
    untold_won: float = 0.0
    position: Taken = Taken.NOTHING
    won: float = math.nan

    @cached_property
    def items(self) -> int:
        """It rests on."""
        return int(np.unique(self.item).size)

    @property
    def standard_error(self) -> float:
        """Items random, and judges where they share an effect of position; nan with too few of them."""
        return math.nan if self.degrees <= 0.0 else max(math.sqrt(sum(self._variances)), self.least)

    @property
    def degrees(self) -> float:
        """Of freedom, by Satterthwaite where judges are random, too."""
        free = self._free
        of_items, of_judges = self._variances
        if free < 1.0 or of_judges == 0.0:
            return free
        judges = int(np.unique(self.judge[self.shared]).size)
        return (of_items + of_judges) ** 2 / (of_items**2 / free + of_judges**2 / (judges - 2.0))

    @property
    def _free(self) -> float:
        """Degrees of freedom of items; judgements of the same items in other orders do not use them up."""
        n = self.item.size
        return min(self.items - 1.0, self.items * (n - self.columns) / n)

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """What items add, and what judges who share an effect add."""
        of_items = _squares(self.influence, self.item) * self.items / max(self._free, 1.0)
        if not self.shared.any():
            return of_items, 0.0
        influence, judge = self.influence[self.shared], self.judge[self.shared]
        both = judge * (int(self.item.max()) + 1) + self.item[self.shared]
        judges = int(np.unique(judge).size)
        more = (_squares(influence, judge) - _squares(influence, both)) * judges / max(judges - 2, 1)
        return of_items, max(more, 0.0)

    def interval(self, level: float) -> tuple[float, float]:
        """Within 0 to 1; nan where there are too few items."""
        if not math.isnan(self.won) and self.items >= _FEWEST:
            return exact_share(self.won, self.items, level)
        low, high = mean_interval(self.value, self.standard_error, self.items, self.degrees, level)
        if math.isnan(low) or not self.untold:
            return low, high
        return max(0.0, low - self.untold_won), min(1.0, high + self.untold - self.untold_won)

    def __neg__(self) -> WinRate:
        """Of the other one."""
        return replace(
            self,
            value=1.0 - self.value,
            influence=-self.influence,
            untold_won=self.untold - self.untold_won,
            won=self.items - self.won,
        )


def win_rate(preferences: Preferences, a: int, b: int) -> WinRate:
    """How often ``a`` wins against ``b``.

    Args:
        preferences: in which the two met.
        a: index of a model.
        b: of another.
    """
    preferences = preferences.voted
    rows = preferences.of_pair(a, b)
    _, item = np.unique(preferences.item[rows], return_inverse=True)
    _, judge = np.unique(preferences.judge[rows], return_inverse=True)
    value, sign = preferences.value_for(a, rows), preferences.sign_for(a, rows)
    weight = 1.0 / np.bincount(item)[item]
    weight /= weight.sum()
    mean = _within(float(weight @ value))
    per_item = np.bincount(item, weights=weight * value) / np.bincount(item, weights=weight)
    is_share = bool(np.isin(per_item, (0.0, 1.0)).all())
    found = WinRate(
        value=mean,
        item=preferences.item[rows],
        judge=preferences.judge[rows],
        influence=weight * (value - mean),
        shared=np.zeros(value.size, dtype=bool),
        won=float(per_item.sum()) if is_share else math.nan,
    )
    effects = position_effects(preferences, rows)
    _, seen = np.unique(judge * (int(item.max()) + 1) + item, return_inverse=True)
    if preferences.ordered and not np.bincount(seen, weights=sign)[seen].any():
        return replace(found, position=Taken.CANCELS)  # position cancels in every item
    return _adjusted(found, value, sign, weight, effects) if effects.count else found


def average_of(rates: list[WinRate]) -> WinRate:
    """The mean over opponents, each weighing alike, on the items of any.

    Args:
        rates: of one model.
    """
    if len(rates) == 1:
        return rates[0]
    k = len(rates)
    return WinRate(
        value=sum(rate.value for rate in rates) / k,
        item=np.concatenate([rate.item for rate in rates]),
        judge=np.concatenate([rate.judge for rate in rates]),
        influence=np.concatenate([rate.influence for rate in rates]) / k,
        shared=np.concatenate([rate.shared for rate in rates]),
        columns=sum(rate.columns for rate in rates),
        least=math.sqrt(sum(rate.least**2 for rate in rates)) / k,
        untold=sum(rate.untold for rate in rates) / k,
        untold_won=sum(rate.untold_won for rate in rates) / k,
        position=rates[0].position if len({rate.position for rate in rates}) == 1 else Taken.BOTH,
    )


def mean_interval(
    value: float, error: float, items: int, degrees: float, level: float
) -> tuple[float, float]:
    """Of a mean over items of values in [0, 1], with items added on both sides; nan where there are too few.

    Args:
        value: the mean.
        error: its standard error.
        items: that are sampled.
        degrees: of freedom of the error.
        level: of the interval.
    """
    if degrees <= 0.0 or items < _FEWEST:
        return math.nan, math.nan
    n = float(items)
    more = n + _ADDED
    centre = (n * value + _ADDED / 2.0) / more
    squares = n * (n - 1.0) * error**2 + _ADDED / 4.0 + n * _ADDED / more * (value - 0.5) ** 2
    half = float(t_quantile(level, degrees + _ADDED)) * math.sqrt(squares / (more * (more - 1.0)))
    plain = float(t_quantile(level, degrees)) * error
    low, high = min(centre - half, value - plain), max(centre + half, value + plain)
    return max(0.0, low), min(1.0, high)


def _adjusted(
    found: WinRate, value: FloatArray, sign: FloatArray, weight: FloatArray, effects: PositionEffects
) -> WinRate:
    """The mean with position taken away."""
    group, told = effects.group, ~effects.untold
    both = group >= 0
    last = 2 * effects.count
    cell = np.where(both, 2 * group + (sign > 0.0), last)  # last of all, those who saw one order only
    all_cells = np.bincount(cell, weights=weight, minlength=last + 1)
    share = all_cells[:last]
    mean = np.bincount(cell, weights=weight * value, minlength=last + 1)[:last] / share
    part = share[0::2] + share[1::2]
    bias = float(np.average((mean[1::2] - mean[0::2]) / 2.0, weights=part))
    rate = ((mean[1::2] + mean[0::2]) / 2.0)[group]
    if not both.all():  # the others saw one order only
        rest = np.average((value - sign * bias)[~both], weights=weight[~both])
        rate[~both] = _within(float(rest))
    off = value - np.append(mean, 0.0)[cell]
    influence = np.zeros(value.size)
    least, columns = 0.0, 1
    if told.any():
        between = rate - np.average(rate[told], weights=weight[told])
        within = 0.5 * (part[group] / all_cells[cell]) * off / np.where(told, effects.without, 1.0)
        influence[told] = (weight * (between + within))[told]
        orders = np.unique(cell[told])
        least, columns = _least(cell, off, weight, part[group] / 2.0, orders), orders.size
    is_own = both & (group < effects.own)
    taken = Taken.OWN if is_own.all() else Taken.BOTH if is_own.any() else Taken.COMMON
    return replace(
        found,
        value=_within(float(weight @ rate)),
        influence=influence,
        shared=effects.shared & told,
        columns=columns,
        least=least,
        untold=float(weight @ effects.untold),
        untold_won=float(weight @ np.where(effects.untold, rate, 0.0)),
        position=taken,
        won=math.nan,
    )


def _least(cell: IntArray, off: FloatArray, weight: FloatArray, part: FloatArray, orders: IntArray) -> float:
    """Standard error with votes of the largest spread added to each order of an effect.

    Args:
        cell: order of an effect, of each judgement, shape (n,).
        off: what the value is off the mean of the order, shape (n,).
        weight: shape (n,).
        part: what the mean of the order counts in the win rate, shape (n,).
        orders: numbers of the orders that count.
    """
    share = np.bincount(cell, weights=weight)[orders]
    squared = np.bincount(cell, weights=weight**2)[orders]
    n = share**2 / squared
    spread = n * np.bincount(cell, weights=weight * off**2)[orders] / share
    variance = (spread + _VOTES * _LARGEST) / (n - 1.0 + _VOTES) / n
    counts = (np.bincount(cell, weights=weight * part)[orders] / share) ** 2
    return math.sqrt(float(counts @ variance))


def _squares(influence: FloatArray, of: IntArray) -> float:
    """Of the sums over items or judges."""
    _, number = np.unique(of, return_inverse=True)
    return float((np.bincount(number, weights=influence) ** 2).sum())


def _within(rate: float) -> float:
    return min(max(rate, 0.0), 1.0)
