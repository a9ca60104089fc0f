"""What all items together say about the variance of one: shared by samplers and estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import FloatArray, IntArray

_MANY = 2000.0


@dataclass(frozen=True, slots=True)
class VariancePrior:
    r"""Scaled inverse chi-square prior of the items' variances, by linear (credibility) empirical Bayes.

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
    def fit(cls, variances: ArrayLike, degrees: ArrayLike) -> VariancePrior:
        """Match the moments of the sample variances.

        Args:
            variances: s_i^2 with n-1, shape (n_items,).
            degrees: nu, degrees of freedom of each, at least 1, same shape.
        """
        s2 = np.asarray(variances, dtype=np.float64)
        nu = np.asarray(degrees, dtype=np.float64)
        if s2.size == 0:
            return cls(float("nan"), _MANY, 0)
        total = int(nu.sum())
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            m = float(s2.mean())
            if not m * m > 0.0:
                return cls(m, _MANY, total)
            q = float((s2 * s2 * (nu / (nu + 2))).mean())
            spread = float(s2.var(ddof=1)) / s2.size if s2.size > 1 else 0.0
            phi = (q - m * m + spread) / (m * m)
        return cls(m, 2.0 + 2.0 / phi if phi > 0.001 else _MANY, total)

    @overload
    def posterior_mean(self, squares: float, degrees: int) -> float: ...

    @overload
    def posterior_mean(self, squares: FloatArray, degrees: IntArray) -> FloatArray: ...

    def posterior_mean(self, squares: Any, degrees: Any) -> Any:
        r"""V_i = (\kappa m + SS_i) / (\kappa + \nu_i), of one item or of many.

        Args:
            squares: SS_i = sum_j (x_ij - mean_i)^2.
            degrees: nu_i = n_i - 1.
        """
        return (self.strength * self.mean + squares) / (self.strength + degrees)

    def quantile(self, level: float, degrees: FloatArray) -> FloatArray:
        """Two-sided t quantile with these degrees of freedom, but never more than m rests on."""
        return t_quantile(level, np.minimum(degrees, max(self.degrees, 1)))


def t_quantile(level: float, degrees: float | FloatArray) -> FloatArray:
    """Two-sided Student t quantile, shape of ``degrees``."""
    # imported when needed: it takes longer than the rest of evalbudget, and samplers never need it;
    # scipy.stats, which has it too, takes a second more
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, (1 + level) / 2), dtype=np.float64)
