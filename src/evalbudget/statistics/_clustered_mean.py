r"""The mean of values that come in clusters: its error does not count two items of one cluster as two.

With n values in G clusters of sizes n_g, residual sums u_g about the mean, and the working assumption that
values vary alike,

.. math:: \widehat{se}^2 = \frac1{n^2} \sum_g \frac{u_g^2}{1 - n_g / n}

is unbiased under that assumption for any sizes (CR2), and Student's t has the degrees of freedom

.. math:: \nu = \frac{(\operatorname{tr} M)^2}{\operatorname{tr} M^2}, \qquad
          M_{gh} = \frac{n_g 1_{g = h} - n_g n_h / n}{\sqrt{(1 - n_g / n)(1 - n_h / n)}}

(Satterthwaite). Clusters of one value give the standard error and the n - 1 degrees of every textbook.

References:
    Bell & McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage samples,
    Survey Methodology 28. Imbens & Kolesar (2016), Robust standard errors in small samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean and its error.

    Attributes:
        value: nan without any value.
        standard_error: nan with fewer than two clusters.
        degrees: of freedom, of Student's t; nan likewise.
        n: values.
        clusters: among them.
        most: the largest deviation of a value from the mean; nan without any.
    """

    value: float
    standard_error: float
    degrees: float
    n: int
    clusters: int
    most: float


def clustered_mean(values: FloatArray, cluster: IntArray) -> ClusteredMean:
    """Mean of values whose clusters were sampled.

    Args:
        values: shape (n,); nan where missing.
        cluster: number of each value's cluster, shape (n,).
    """
    known = ~np.isnan(values)
    value = values[known]
    n = value.size
    if not n:
        return ClusteredMean(np.nan, np.nan, np.nan, 0, 0, np.nan)
    _, code = np.unique(cluster[known], return_inverse=True)
    size = np.bincount(code).astype(np.float64)
    mean = float(value.mean())
    most = float(np.abs(value - mean).max())
    if size.size < 2:
        return ClusteredMean(mean, np.nan, np.nan, n, size.size, most)
    off = np.bincount(code, weights=value - mean)
    room = 1.0 - size / n
    error = float(np.sqrt((off**2 / room).sum())) / n
    if np.ptp(value) == 0.0:
        error = 0.0  # and not what rounding leaves
    # tr M and tr M^2 without the matrix: M is a diagonal less an outer product
    diagonal, outer = size / room, size / np.sqrt(n * room)
    trace = float(diagonal.sum() - (outer**2).sum())
    squares = float((diagonal**2).sum() - 2.0 * (diagonal * outer**2).sum() + (outer**2).sum() ** 2)
    return ClusteredMean(mean, error, trace**2 / squares, n, size.size, most)


def summed_errors(*parts: tuple[ArrayLike, ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """Standard error of a sum of independent estimates, and its degrees of freedom (Satterthwaite).

    Args:
        parts: variance and degrees of freedom of each, of shapes that go together; the first is not 0, or
            there is nothing to say.
    """
    variance = sum(np.asarray(v, dtype=np.float64) for v, _ in parts)
    fourth = sum(np.asarray(v, dtype=np.float64) ** 2 / np.asarray(degrees) for v, degrees in parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.asarray(variance)), np.asarray(np.asarray(variance) ** 2 / fourth)
