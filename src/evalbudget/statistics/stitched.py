"""The polynomial stitched boundary: a closed-form curve that a random walk rarely ever crosses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInputError
from evalbudget.statistics.bounds import FloatArray


def stitched_boundary(variance: ArrayLike, alpha: float) -> FloatArray:
    r"""A boundary that a sub-Gaussian sum with intrinsic time v crosses with probability at most alpha, ever.

    .. math:: \psi(v; \alpha) = 1.7 \sqrt{v \, (\log\log 2v + 0.72 \log(5.2 / \alpha))}, \quad v \ge 1

    One-sided: for an interval spend alpha/2 on each side. Divide by the number of readings for the mean.

    Args:
        variance: v, the accumulated variance (intrinsic time), any shape, >= 0; clipped at 1, below which
            the curve is not defined (log log 2v is negative or nan there).
        alpha: probability of ever crossing, in (0, 1).

    Returns:
        The boundary for the sum, same shape as ``variance``.

    Raises:
        InvalidInputError: alpha is not in (0, 1), or a variance is negative or nan.

    References:
        Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
        sequences, Annals of Statistics 49, Eq. (2).
    """
    if not 0.0 < alpha < 1.0:
        raise InvalidInputError(f"alpha {alpha:g} must lie strictly between 0 and 1, for example 0.05")
    v = np.asarray(variance, dtype=np.float64)
    if not (v >= 0.0).all():
        raise InvalidInputError(
            "a variance is negative or nan; pass sums of squares, failed readings left out"
        )
    v = np.maximum(v, 1.0)
    return np.asarray(
        1.7 * np.sqrt(v * (np.log(np.log(2.0 * v)) + 0.72 * np.log(5.2 / alpha))), dtype=np.float64
    )
