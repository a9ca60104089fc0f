r"""The mean of values that come in clusters: its error does not count two items of one cluster as two.

With n values in G clusters of sizes n_g, residual sums u_g about the mean, and the working assumption that
values vary alike,

.. math:: \widehat{se}^2 = \frac1{n^2} \sum_g \frac{u_g^2}{1 - n_g / n}

is unbiased under that assumption for any sizes (CR2), and Student's t has the degrees of freedom

.. math:: \nu = \frac{(\operatorname{tr} M)^2}{\operatorname{tr} M^2}, \qquad
          M_{gh} = \frac{n_g 1_{g = h} - n_g n_h / n}{\sqrt{(1 - n_g / n)(1 - n_h / n)}}

(Satterthwaite). Clusters of one value give the standard error and the n - 1 degrees of every textbook. With
weights w_i that sum to 1, W_g and q_g the sums of w and w^2 in cluster g, and Q of all w^2, the same
assumption gives room_g = 1 - 2 W_g + W_g^2 Q / q_g in place of 1 - n_g / n, and M = diag(q_g) - q W' - W q' +
Q W W', each side over the square root of room.

References:
    Bell & McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage samples,
    Survey Methodology 28. Imbens & Kolesar (2016), Robust standard errors in small samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

_LARGER = 1.15
_FEW = 25


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean and its error.

    Attributes:
        value: nan without any value.
        standard_error: nan with fewer than two clusters.
        degrees: of freedom, of Student's t; nan likewise.
        n: values.
        clusters: among them.
        most: the largest deviation of a value from the mean, see :func:`farthest`; nan without any.
    """

    value: float
    standard_error: float
    degrees: float
    n: int
    clusters: int
    most: float


def farthest(off: FloatArray, known: BoolArray) -> FloatArray:
    """The largest deviation of each row, which is what two more values are guarded against.

    Where less than half of few values are the same, what is rare shows in their spread. There it is cut: two
    more values that are so far off make the error of the mean 15% larger, and by the root of n/25 more above
    25 values, which is no cut from 57 on.

    Args:
        off: from the mean, shape (rows, values).
        known: which of them are there, same shape.
    """
    n = np.count_nonzero(known, axis=1)
    most = np.asarray(np.where(known, np.abs(off), 0.0).max(axis=1, initial=0.0))
    larger = _LARGER * np.sqrt(np.maximum(n / _FEW, 1.0))
    few = (n > 1) & (larger < np.sqrt(3.0))
    if few.any():
        own, size, whole = np.where(known, off, np.nan)[few], n[few], most[few]
        middle = np.stack([(size - 1) // 2, size // 2], axis=1)  # nan is sorted to the end
        median = np.take_along_axis(np.sort(own, axis=1), middle, axis=1).mean(axis=1, keepdims=True)
        apart = np.abs(own - median) > 1e-12 * whole[:, None]
        variance = np.nansum(own**2, axis=1) / (size * (size - 1))
        cut = np.sqrt(((larger[few] * (size + 2)) ** 2 - size**2) / 2 * variance)
        most[few] = np.where(2 * np.count_nonzero(apart, axis=1) > size, np.minimum(whole, cut), whole)
    return most


def clustered_mean(
    values: FloatArray, cluster: IntArray, *, weights: FloatArray | None = None
) -> ClusteredMean:
    """Mean of values whose clusters were sampled.

    Args:
        values: shape (n,); nan where missing.
        cluster: number of each value's cluster, shape (n,).
        weights: of the values in the mean, positive, same shape; None where all weigh the same.
    """
    known = ~np.isnan(values)
    value = values[known]
    n = value.size
    if not n:
        return ClusteredMean(np.nan, np.nan, np.nan, 0, 0, np.nan)
    _, code = np.unique(cluster[known], return_inverse=True)
    share = np.full(n, 1.0 / n) if weights is None else weights[known] / weights[known].sum()
    mean = float(value.mean()) if weights is None else float(share @ value)
    (most,) = farthest((value - mean)[None], np.ones((1, n), dtype=bool)).tolist()
    size, squares = np.bincount(code, share), np.bincount(code, share**2)
    if size.size < 2:
        return ClusteredMean(mean, np.nan, np.nan, n, size.size, most)
    off, whole = np.bincount(code, share * (value - mean)), float(squares.sum())
    room = 1.0 - 2.0 * size + size**2 * (whole / squares)
    error = float(np.sqrt((off**2 / room).sum()))
    if np.ptp(value) == 0.0:
        error = 0.0  # and not what rounding leaves
    # tr M and tr M^2 without the matrix: M is a diagonal and outer products of q and W
    diagonal, q, w = squares / room, squares / np.sqrt(room), size / np.sqrt(room)
    own = whole * w**2 - 2.0 * q * w  # of the outer products, on the diagonal
    qq, qw, ww = float(q @ q), float(q @ w), float(w @ w)
    outer = 2.0 * (qq * ww + qw**2) - 4.0 * whole * qw * ww + (whole * ww) ** 2
    trace = float(diagonal.sum() + own.sum())
    squared = float((diagonal**2).sum() + 2.0 * (diagonal * own).sum() + outer)
    return ClusteredMean(mean, error, trace**2 / squared, n, size.size, most)


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
