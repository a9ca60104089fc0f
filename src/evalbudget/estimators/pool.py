"""PoolVariance: what all items together say about the variance of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t

from evalbudget.confidence.bounds import FloatArray, IntArray
from evalbudget.estimators.readings import ItemMoments

_MANY = 2000.0


@dataclass(frozen=True, slots=True)
class PoolVariance:
    r"""What the pool says about one item's variance, by linear (credibility) empirical Bayes.

    .. math:: m = \overline{s^2}, \quad q = \overline{s^4 \nu/(\nu+2)}, \quad
              \varphi = \frac{q - m^2 + \mathrm{Var}(s^2)/K}{m^2}, \quad \kappa = 2 + 2/\varphi

    Attributes:
        mean: m; nan if no item has two readings, 0 if no item varies.
        strength: kappa, how many degrees of freedom the pool is worth to one item (2000 if phi <= .001).
        degrees: sum of nu, the degrees of freedom m itself rests on.
    """

    mean: float
    strength: float
    degrees: int

    @classmethod
    def fit(cls, moments: ItemMoments) -> PoolVariance:
        """Fit to the items with at least two readings."""
        several = moments.n > 1
        nu = moments.n[several] - 1
        s2 = moments.squares[several] / nu
        if s2.size == 0:
            return cls(float("nan"), _MANY, 0)
        m = float(s2.mean())
        if m == 0.0:
            return cls(0.0, _MANY, int(nu.sum()))
        spread = float(s2.var(ddof=1)) / s2.size if s2.size > 1 else 0.0
        phi = (float((s2 * s2 * nu / (nu + 2)).mean()) - m * m + spread) / (m * m)
        return cls(m, 2.0 + 2.0 / phi if phi > 0.001 else _MANY, int(nu.sum()))

    def posterior(self, moments: ItemMoments) -> FloatArray:
        """V_i = (kappa m + SS_i)/(kappa + n_i - 1), shape (n_items,); nan where n_i is 0."""
        v = (self.strength * self.mean + moments.squares) / (self.strength + moments.n - 1)
        return np.asarray(np.where(moments.n > 0, v, np.nan), dtype=np.float64)

    def quantile(self, level: float, strength: float, n: IntArray) -> FloatArray:
        """Two-sided t quantile with kappa + n - 1 degrees of freedom, never more than m rests on."""
        df = np.minimum(strength + np.maximum(n, 1) - 1, max(self.degrees, 1))
        return np.asarray(student_t.ppf((1 + level) / 2, df), dtype=np.float64)
