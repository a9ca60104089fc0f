r"""What the order in which two answers are shown does to a judge's verdicts.

The value for the answer shown first is regressed on a constant and on who met whom, items being clusters:
the constant less 1/2 is the bias, 0 for a judge who does not care. Where every item was shown in both orders,
that is the mean value for the first, less 1/2. Items shown in both orders also tell how often the verdict
flips: it names the first one both times, or the second one both times.

They tell, too, what the second order of an item is worth. With n calls, showing n items once each has the
variance :math:`\sigma^2 / n`, and showing n / 2 items in both orders :math:`\sigma^2 (1 + \rho) / n`, where
:math:`\rho` is the correlation between an item's two values for the same model, what position does on average
being taken away (:attr:`Position.correlation`). So fresh items are worth more wherever :math:`\rho > 0`:
wherever judges go by the answers more than by a position effect that differs from item to item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from evalbudget.statistics import FloatArray, IntArray
from evalbudget.tables import Shown
from evalbudget_pairwise._clustered_regression import clustered_fit, is_full_rank
from evalbudget_pairwise._preferences import Preferences
from evalbudget_pairwise._win_rates import mean_interval

_LARGEST = 0.25
"""Variance of a value in [0, 1]."""
_FEWEST = 3
"""Items in both orders that say something of a correlation."""


def _flipped(row: Position) -> str:
    return f"{row.flipped:,} ({100.0 * row.flipped / row.both_orders:.0f}%)" if row.both_orders else "-"


@dataclass(frozen=True, slots=True)
class Position:
    """What position does to one judge, or to all.

    Attributes:
        judge: name; ``all`` for all judges together.
        bias: mean value for the answer shown first, less 1/2; nan if it cannot be told from how good the
            models are.
        low: of its interval, items random; nan where there is none.
        high: of it.
        both_orders: pairs of answers that were shown in both orders.
        flipped: of these, those whose verdict named the first both times, or the second both times.
        correlation: see above; nan with fewer than three pairs in both orders.
    """

    judge: Annotated[str, Shown("judge")]
    bias: Annotated[float, Shown("position bias", "+p")]
    low: Annotated[float, Shown("{level}", "+p", to="high")]
    high: float
    both_orders: Annotated[int, Shown("both orders", ",")]
    flipped: Annotated[int, Shown("flipped", by=_flipped)]
    correlation: float


def positions(preferences: Preferences, level: float = 0.95) -> list[Position]:
    """Of every judge, in order, and last of all together if there are several; none without an order.

    Args:
        preferences: to look at.
        level: of the intervals.
    """
    preferences = preferences.voted
    if not preferences.ordered:
        return []
    by_judge = np.argsort(preferences.judge, kind="stable")
    starts = np.flatnonzero(np.diff(preferences.judge[by_judge], prepend=-1))
    found = [
        _position(preferences, rows, preferences.judges[int(preferences.judge[rows[0]])], level)
        for rows in np.split(by_judge, starts[1:])
    ]
    if len(found) > 1:
        found.append(_position(preferences, np.arange(preferences.value.size), "all", level))
    return found


def _position(preferences: Preferences, rows: IntArray, judge: str, level: float) -> Position:
    low = np.minimum(preferences.first, preferences.second)[rows]
    high = np.maximum(preferences.first, preferences.second)[rows]
    pair = low * len(preferences.models) + high
    sign = np.where(preferences.first[rows] == low, 1.0, -1.0)
    met = np.unique(pair)
    design = np.concatenate(
        [np.ones((rows.size, 1)), np.where(pair[:, None] == met, sign[:, None], 0.0)], axis=1
    )
    bias, error, free = math.nan, math.nan, 0
    names, item = np.unique(preferences.item[rows], return_inverse=True)
    items = int(names.size)
    if is_full_rank(design):
        value = preferences.value[rows] - 0.5
        fit = clustered_fit(design, value, np.ones(rows.size), item, items)
        # where orders are even, who is stronger is orthogonal to position, and costs no degree of freedom
        even = not np.bincount(np.searchsorted(met, pair), weights=sign).any()
        columns = 1 if even else 1 + met.size
        bias, free = float(np.round(fit.value[0], 12)) + 0.0, fit.clusters - columns  # never -0.000
        if free > 0:
            error = math.sqrt(float((fit.influence[:, 0] ** 2).sum()) * fit.clusters / free)
            error = error if even else max(error, _least(design, value - design @ fit.value))
    lowest, highest = mean_interval(0.5 + bias, error, items, max(free, 0), level)
    return Position(judge, bias, lowest - 0.5, highest - 0.5, *_both_orders(preferences, rows, pair, sign))


def _least(design: FloatArray, off: FloatArray) -> float:
    """Error of the bias if judgements were independent; one that alone tells an order counts as unknown."""
    weights = np.linalg.solve(design.T @ design, design.T)
    leverage = (design * weights.T).sum(axis=1)
    spread = float(off @ off) / max(off.size - design.shape[1], 1)
    return math.sqrt(float(weights[0] ** 2 @ ((1.0 - leverage) * spread + leverage * _LARGEST)))


def _both_orders(
    preferences: Preferences, rows: IntArray, pair: IntArray, sign: FloatArray
) -> tuple[int, int, float]:
    """How many were shown in both orders, how many flipped, and how the two values correlate."""
    value = np.where(sign > 0.0, preferences.value[rows], 1.0 - preferences.value[rows])
    key = np.stack([preferences.item[rows], pair, preferences.judge[rows]], axis=1)
    _, which = np.unique(key, axis=0, return_inverse=True)
    which = which.ravel()
    means = []
    for order in (1.0, -1.0):
        shown = sign == order
        count = np.bincount(which[shown], minlength=which.max(initial=-1) + 1)
        total = np.bincount(which[shown], weights=value[shown], minlength=count.size)
        with np.errstate(invalid="ignore"):
            means.append(total / np.where(count > 0, count, np.nan))
    both = ~np.isnan(means[0] + means[1])
    one, other = means[0][both], means[1][both]
    flipped = int(((one - 0.5) * (other - 0.5) < 0.0).sum())
    correlation = math.nan
    if one.size >= _FEWEST and np.ptp(one) > 0.0 and np.ptp(other) > 0.0:
        # per pair of models, or differences between pairs would pass for agreement on items
        _, kind = np.unique(pair[np.unique(which, return_index=True)[1]][both], return_inverse=True)
        spread = [off - (np.bincount(kind, off) / np.bincount(kind))[kind] for off in (one, other)]
        scale = 0.5 * float((spread[0] ** 2).sum() + (spread[1] ** 2).sum())
        correlation = float((spread[0] * spread[1]).sum()) / scale if scale > 0.0 else math.nan
    return int(both.sum()), flipped, correlation
