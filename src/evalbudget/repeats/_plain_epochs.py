"""What plain epochs would have cost for a worst item that is known as well."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalbudget.repeats.estimates import ItemReadings
from evalbudget.statistics._bounds import FloatArray

_POINTS = 40
_SPREAD = 1e-3
_STEPS = 200
_ENOUGH = 5000
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class PlainEpochs:
    """Asking every item equally often, against what was bought.

    Attributes:
        per_item: epochs of every item that leave the worst item as well known.
        readings: that many of all items.
        bought: readings of this run.
    """

    per_item: int
    readings: int
    bought: int

    @property
    def as_good(self) -> bool:
        """Plain epochs would have needed no more, but for the last of them."""
        return self.readings < self.bought + self.readings // max(self.per_item, 1)


def plain_epochs(readings: ItemReadings) -> PlainEpochs | None:
    r"""Epochs after which the worst item is known as well as after these readings.

    .. math:: n = \left\lceil \frac{\operatorname{med} \max_i \sigma_i^2}
              {\operatorname{med} \max_i \sigma_i^2/n_i} \right\rceil

    Half-widths are taken to be proportional to sigma_i/sqrt(n_i). The variances are unknown, the largest of
    many estimates is too large, and counts that follow estimates make the largest s_i^2/n_i look smaller than
    it is: the ratio of the two would promise up to twice what is true. So the medians are of the largest
    variance *given* what was read, each item's variance being one of 40 values whose frequencies are fitted
    to all items (nonparametric maximum likelihood, scores of an item normal).

    It assumes that scores would vary as they did here, and that none would fail. Where counts are equal, n is
    that count. In simulation (40 and 200 items, 10 and 20 readings each on average, by ``eb-bernstein`` and
    ``rating-kernel``; ratings with two or with log-normal standard deviations, pass/fail items) the median of
    n is .75 to 1.25 of what the true variances give, once 1.5.

    Args:
        readings: of all items.

    Returns:
        None where it is unknown: an item was never read, or nothing varies.

    References:
        Kiefer & Wolfowitz (1956).
    """
    moments = readings.moments
    n = moments.n.astype(np.float64)
    if not n.size or not moments.n.all() or not (moments.squares > 0.0).any():
        return None
    variances, chance = _possible_variances(moments.squares, n - 1)
    ratio = median_of_largest(variances, chance, np.ones_like(n)) / median_of_largest(variances, chance, n)
    per_item = math.ceil(ratio * (1 - _ROUNDING))
    return PlainEpochs(per_item, per_item * readings.n_items, int(moments.n.sum()))


def median_of_largest(variances: FloatArray, chance: FloatArray, n: FloatArray) -> float:
    """Median of the largest variance/n over independent items.

    Args:
        variances: possible ones, ascending, shape (n_values,).
        chance: of each for each item, shape (n_items, n_values), rows add up to 1.
        n: readings, shape (n_items,).
    """
    below = np.concatenate([np.zeros((n.size, 1)), np.cumsum(chance, axis=1)], axis=1)
    item = np.arange(n.size)
    low, high = float(variances[0] / n.max()), float(variances[-1] / n.min()) * 2
    for _ in range(60):
        middle = math.sqrt(low * high)
        up_to = np.searchsorted(variances, middle * n, side="right")
        reached = float(np.prod(below[item, up_to])) >= 0.5
        low, high = (low, middle) if reached else (middle, high)
    return high


def _possible_variances(squares: FloatArray, degrees: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values, shape (n_values,), and what each item's readings say of them, shape (n_items, n_values)."""
    several = degrees > 0
    sample = squares[several] / degrees[several]
    top = float(sample.max())
    bottom = max(float(sample[sample > 0.0].min()) / 2, top * _SPREAD)
    values = np.geomspace(min(bottom, top / 2), top, _POINTS)
    log_likelihood = -degrees[:, None] / 2 * np.log(values) - squares[:, None] / (2 * values)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    fitted_to = likelihood[:: max(1, squares.size // _ENOUGH)]
    weight = np.full(_POINTS, 1.0 / _POINTS)
    for _ in range(_STEPS):
        weight = _posterior(fitted_to, weight).mean(axis=0)
    return np.asarray(values, dtype=np.float64), _posterior(likelihood, weight)


def _posterior(likelihood: FloatArray, weight: FloatArray) -> FloatArray:
    product = likelihood * weight
    return np.asarray(product / product.sum(axis=1, keepdims=True), dtype=np.float64)
