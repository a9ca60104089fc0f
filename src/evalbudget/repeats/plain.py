"""What plain epochs would have cost for a worst item that is known as well."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalbudget.confidence.bounds import FloatArray
from evalbudget.estimators import ItemReadings
from evalbudget.estimators.items import pool_variance

_ROUNDING = 1e-6
_STRONGEST = 2000.0


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
        """Plain epochs would have needed no more."""
        return self.readings <= self.bought


def plain_epochs(readings: ItemReadings) -> PlainEpochs | None:
    r"""Epochs after which the worst item is known as well as after these readings.

    .. math:: n = \left\lceil \frac{\operatorname{med} \max_i \sigma_i^2}
              {\operatorname{med} \max_i \sigma_i^2/n_i} \right\rceil, \qquad
              \sigma_i^2 \mid x \sim \frac{(\kappa + n_i - 1) V_i}{\chi^2_{\kappa + n_i - 1}}

    with V_i and kappa of :class:`~evalbudget.shrinkage.VariancePrior`. Half-widths are taken to be
    proportional to sigma_i/sqrt(n_i). The largest of many estimated variances is too large, and counts that
    follow estimated variances make the largest V_i/n_i look smaller than it is, so the plain ratio of the two
    would promise twice as much as is true; medians of the largest *given* what was read do not. It assumes
    that scores would vary as they did here, and that none would fail. Where counts are equal, n is that
    count.

    Args:
        readings: of all items.

    Returns:
        None where it is unknown: an item was never read, or nothing varies.
    """
    moments = readings.moments
    pool = pool_variance(moments)
    if not moments.n.size or not moments.n.all() or not pool.mean > 0.0:
        return None
    degrees = np.asarray(min(pool.strength, _STRONGEST) + moments.n - 1, dtype=np.float64)
    variance = np.asarray(pool.posterior_mean(moments.squares, moments.n - 1), dtype=np.float64)
    n = median_of_largest(variance, degrees) / median_of_largest(variance / moments.n, degrees)
    per_item = math.ceil(n * (1 - _ROUNDING))
    return PlainEpochs(per_item, per_item * readings.n_items, int(moments.n.sum()))


def median_of_largest(variance: FloatArray, degrees: FloatArray) -> float:
    r"""Median of max_i degrees_i variance_i / chi^2 with that many degrees, all independent.

    Args:
        variance: shape (n_items,), positive.
        degrees: same shape, positive.
    """
    from scipy.special import gammaincc  # takes longer to import than the rest; see evalbudget.shrinkage

    scaled = degrees * variance / 2

    def log_probability(x: float) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(gammaincc(degrees / 2, scaled / x)).sum())

    low, high = float(variance.max()) * 1e-3, float(variance.max())
    while log_probability(high) < math.log(0.5):
        high *= 2
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if log_probability(middle) < math.log(0.5) else (low, middle)
    return high
