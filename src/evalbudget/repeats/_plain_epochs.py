"""What plain epochs would have cost for an error as small, of the worst item or of the benchmark mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalbudget.repeats._objective import Objective
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.phases._spread import of_two_values
from evalbudget.statistics._bounds import FloatArray

_POINTS = 40
_SPREAD = 1e-3
_STEPS = 200
_ENOUGH = 5000
_ROUNDING = 1e-6
_HALF = math.log(0.5)
_SURELY = 10.0
"""Standard errors that no item of any benchmark exceeds."""
_HALVINGS = 40
_TINY = 1e-300
_NO_GAIN = 1.02


@dataclass(frozen=True, slots=True)
class PlainEpochs:
    """Asking every item equally often, against what was bought.

    Attributes:
        per_item: epochs of every item after which the error is as small.
        readings: that many of all items.
        bought: readings of this run.
        error: whether of the worst item or of the benchmark mean.
    """

    per_item: int
    readings: int
    bought: int
    error: Objective = Objective.WORST_ITEM

    @property
    def as_good(self) -> bool:
        """Plain epochs would have needed no more, but for the last of them, or 2% where the mean is meant."""
        if self.error is Objective.MEAN:
            return self.readings <= _NO_GAIN * self.bought
        return self.readings < self.bought + self.readings // max(self.per_item, 1)


def plain_epochs(readings: ItemReadings) -> PlainEpochs | None:
    r"""Epochs after which the worst item's error is most probably as small as after these readings.

    With errors e_i of items' means normal and independent, of variances sigma_i^2/n_i,

    .. math:: n = \left\lceil \left(\frac{\operatorname{med} \max_i |\sigma_i z_i|}
              {\operatorname{med} \max_i |\sigma_i z_i| / \sqrt{n_i}}\right)^2 \right\rceil,

    z_i standard normal: after n epochs both medians are the same. The variances are unknown, the largest of
    many estimates is too large, and counts that follow estimates make the largest s_i^2/n_i look smaller than
    it is. So the medians are *given* what was read, each item's variance being one of 40 values whose
    frequencies are fitted to all items (nonparametric maximum likelihood, scores of an item normal).

    It assumes that scores would vary as they did here, and that none would fail. Where counts are equal, n is
    that count. ``tests/repeats/test_plain.py`` holds it against the error that simulated epochs really have.

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
    once = median_worst_error(variances, chance, np.ones_like(n))
    per_item = math.ceil((once / median_worst_error(variances, chance, n)) ** 2 * (1 - _ROUNDING))
    return PlainEpochs(per_item, per_item * readings.n_items, int(moments.n.sum()))


def plain_epochs_of_mean(readings: ItemReadings) -> PlainEpochs | None:
    r"""Epochs after which the mean of these items is as certain as by its estimate over phases.

    With the posterior means V_i of :func:`~evalbudget.repeats.phases._spread.of_two_values` and the shares
    s_ij that readings have in their items' means it is
    :math:`\sum_i V_i / \sum_i V_i \sum_j s_{ij}^2`. In simulated runs on 100 items it was 0 to 2% more than
    with the true variances (``tests/repeats/test_plain.py``).

    Args:
        readings: of all items, with their phases; their scores have two values.

    Returns:
        None where it is unknown: an item was never read, or nothing varies.
    """
    n, upper = readings.counts, readings.value == readings.value.max()
    spread = of_two_values(n, np.bincount(readings.item[upper], minlength=readings.n_items))
    if spread is None or not n.all():
        return None
    V, squared = spread.variance, np.bincount(readings.item, readings.shares**2)
    epochs = float(V.sum() / (V @ squared)) * (1.0 + _ROUNDING)
    return PlainEpochs(round(epochs), int(epochs * readings.n_items), int(n.sum()), error=Objective.MEAN)


def median_worst_error(variances: FloatArray, chance: FloatArray, n: FloatArray) -> float:
    """Median of the largest error, without its sign, of independent items' means.

    Args:
        variances: possible ones of one score, shape (n_values,).
        chance: of each for each item, shape (n_items, n_values), rows add up to 1.
        n: readings, shape (n_items,).
    """
    from scipy.special import ndtr  # takes its time: not before it is needed

    scale = np.sqrt(n[:, None] / variances)
    low, high = 0.0, _SURELY * float(np.sqrt(variances.max() / n.min()))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        within = 2.0 * ndtr(middle * scale) - 1.0
        reached = float(np.log(np.maximum((chance * within).sum(axis=1), _TINY)).sum()) >= _HALF
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
