r"""The mean of a finite pool from draws without replacement that some items were likelier to get than others.

A pool has N items with scores y in [0, 1]. Before draw t the scores read sum to R_t, U_t is what is left, f a
prediction of every item and q_t the probability with which each item of U_t is drawn; f and q_t rest on
nothing but earlier scores. With i the item drawn,

.. math:: N z_t = R_t + \sum_{j \in U_t} f_j + \frac{y_i - f_i}{q_{t,i}}

has the conditional mean N mu, whatever f and q are, since what was read counts as it is and what is left is
estimated without bias. Predictions that are right make its variance small,

.. math:: V_t = \sum_{j \in U_t} \frac{\sigma_j^2}{q_{t,j}} - \sum_{j \in U_t} \sigma_j^2

if the residuals y - f are uncorrelated with standard deviations sigma; with q proportional to sigma that is
the least possible, and with one item left it is 0. The estimate weighs draws by 1/V_t, which is known before
the draw:

.. math:: \hat\mu = \frac{\sum_t z_t / V_t}{\sum_t 1 / V_t}, \quad
          \sum_t \frac{z_t - \mu}{V_t} \text{ being a martingale that starts at 0.}

The weights follow from earlier scores, so that the ratio itself has a bias, of a tenth of its error or less
where it was measured. Its squared error at a fixed number n of draws is :math:`\kappa / \sum_t V_t^{-1}` (of
N times the mean), where kappa, the variance seen over the variance expected, is shrunk towards 1 by 8
pseudo-draws: few scores that all agree say little of the surprises to come, which are rare and large where q
is small. The interval is of Student's t with n + 7 degrees of freedom, after Hall's transformation for the
skewness that the predictions imply.

An item that fails when drawn has no score; the mean is over those that do not fail. Then
:math:`(y - \mu) 1_{\text{has a score}}` sums to 0 over the pool, and a failed draw enters with mu in place of
y: N (z_t - mu) = a_t - b_t mu, with b_t = N without failures.

References:
    arXiv 2601.20251 (FAQ): the same with replacement and equal weights. Waudby-Smith, Stark & Ramdas (2021),
    RiLACS. Hall (1992), On the removal of skewness by transformation, JRSS-B 54.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._drawn import Drawn

PSEUDO = 8.0
"""Draws that the expected variance counts as."""
_NO_SKEW = 1e-6


@dataclass(frozen=True)
class UnevenDraws(Drawn):
    """Draws without replacement with unequal probabilities, in draw order.

    Attributes:
        pool: N, number of items.
        value: y of each draw in [0, 1], nan where it failed, shape (t,).
        prediction: f of each draw, in [0, 1], shape (t,).
        unread_sum: sum of f over U_t, the drawn item included, shape (t,).
        propensity: q_t of the drawn item, in (0, 1], shape (t,).
        variance: V_t, shape (t,).
        skewness: expected third central moment of N z_t, shape (t,).
        least: at most the smallest (0 - f)/q over U_t, shape (t,).
        most: at least the largest (1 - f)/q over U_t, shape (t,).
    """

    pool: int
    value: FloatArray
    prediction: FloatArray
    unread_sum: FloatArray
    propensity: FloatArray
    variance: FloatArray
    skewness: FloatArray
    least: FloatArray
    most: FloatArray

    @property
    def total(self) -> float:
        """Sum of all scores read."""
        return float(self.score.sum())

    @property
    def count(self) -> int:
        """Number of scores read."""
        return self.value.size - int(self.failed.sum())

    @cached_property
    def failed_before(self) -> FloatArray:
        """Number of earlier draws that failed, shape (t,)."""
        return np.asarray(np.cumsum(self.failed) - self.failed, dtype=np.float64)

    @cached_property
    def known(self) -> FloatArray:
        """R_t and the predictions of U_t, shape (t,)."""
        return np.asarray(np.cumsum(self.score) - self.score + self.unread_sum, dtype=np.float64)

    @cached_property
    def a(self) -> FloatArray:
        """a_t of N (z_t - mu) = a_t - b_t mu, shape (t,)."""
        return np.asarray(self.known + (self.score - self.prediction) / self.propensity, dtype=np.float64)

    @cached_property
    def b(self) -> FloatArray:
        """b_t, shape (t,)."""
        return np.asarray(self.pool - self.failed_before - self.failed / self.propensity, dtype=np.float64)

    @cached_property
    def spread(self) -> FloatArray:
        """V_t kept above 0, shape (t,)."""
        return np.maximum(self.variance, 1e-9)

    def limits(self) -> tuple[float, float]:
        """What no unread score in [0, 1] could leave: bounds of the mean whatever the level."""
        left = self.pool - self.value.size
        size = max(self.count + left, 1)
        slack = (size + 4) * np.finfo(np.float64).eps if left else 0.0
        return max(0.0, self.total / size - slack), min(1.0, (self.total + left) / size + slack)


@dataclass(frozen=True)
class WeightedMean:
    """What draws say about the mean of the pool, at a number of draws fixed beforehand.

    Attributes:
        value: the estimate; nan without a score.
        error: its standard error; 0 for an exhausted pool, nan below two draws.
        degrees: of freedom of the error.
        skewness: of the error's distribution, as expected.
    """

    value: float
    error: float
    degrees: float
    skewness: float

    def margins(self, level: float) -> tuple[float, float]:
        """How far the interval reaches below and above the estimate.

        Args:
            level: of the interval, in (0, 1).
        """
        from scipy.special import stdtrit  # takes its time: not before it is needed

        t = float(stdtrit(self.degrees, 0.5 + level / 2.0))
        return self.error * _untransformed(t, self.skewness), -self.error * _untransformed(-t, self.skewness)


def weighted_mean(draws: UnevenDraws) -> WeightedMean:
    """The estimate and its error. It may lie beyond :meth:`UnevenDraws.limits` where surprises were large."""
    n, read = draws.value.size, draws.count
    if not read:
        return WeightedMean(np.nan, np.nan, np.nan, np.nan)
    if draws.exhausted:
        return WeightedMean(draws.total / read, 0.0, np.inf, 0.0)
    weight = 1.0 / draws.spread
    size = float(weight @ draws.b)
    if size <= 0.0:  # nearly everything failed
        return WeightedMean(draws.total / read, np.nan, np.nan, np.nan)
    value = float(weight @ draws.a) / size
    if n < 2:
        return WeightedMean(value, np.nan, np.nan, np.nan)
    seen = float((weight * (draws.a - draws.b * value) ** 2).sum())
    inflation = (PSEUDO + seen) / (PSEUDO + n - 1)
    skewness = float((weight**3 * draws.skewness).sum()) / float(weight.sum()) ** 1.5
    # an error known beforehand turns the skewness round, by half
    studentised = 1.5 * n / (PSEUDO + n) - 0.5
    return WeightedMean(
        value,
        float(np.sqrt(inflation * weight.sum())) / size,
        PSEUDO + n - 1,
        skewness * studentised,
    )


def _untransformed(x: float, skewness: float) -> float:
    """T with T + s T^2 / 3 + s^2 T^3 / 27 + s / 6 = x."""
    if abs(skewness) < _NO_SKEW:
        return x
    return float(3.0 / skewness * (np.cbrt(1.0 + skewness * (x - skewness / 6.0)) - 1.0))
