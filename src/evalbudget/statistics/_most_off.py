"""How far the mean of parts that never varied can be from what was seen of them, taken together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import FloatArray


def most_off(widths: ArrayLike, cases: ArrayLike, *, alpha: float) -> FloatArray:
    r"""Largest sum of w q, with q from 0 to 1, where that many cases without an exception are likely enough.

    That is where :math:`\prod_g (1 - q_g)^{n_g} \ge \alpha`; the sum is largest with
    :math:`1 - q_g = \min(1, \lambda n_g / w_g)`.

    Args:
        widths: w, 0 or more: how far an exception of each part on the first axis would move the mean.
        cases: n, at least 1 where w is not 0, same shape.
        alpha: a smaller probability of what was seen is not likely enough.
    """
    w = np.asarray(widths, dtype=np.float64)
    counts = w > 0.0
    if not counts.any():
        return np.zeros(w.shape[1:])
    n = np.where(counts, cases, 0.0)
    per_width = np.divide(n, w, out=np.ones_like(w), where=counts)
    ratio, least = np.log(per_width), math.log(alpha)
    few = np.where(counts, n, np.inf).min(axis=0)
    any_ = counts.any(axis=0)
    low = np.where(any_, least / few - np.where(counts, ratio, -np.inf).max(axis=0, initial=-np.inf), 0.0)
    high = np.where(any_, -np.where(counts, ratio, np.inf).min(axis=0), 0.0)
    for _ in range(100):  # the product grows with lambda
        middle = (low + high) / 2
        reached = (n * np.minimum(0.0, middle + ratio)).sum(axis=0) >= least
        nearer = np.where(reached, low, middle), np.where(reached, middle, high)
        if np.array_equal(nearer, (low, high)):
            break
        low, high = nearer
    return np.asarray((w * (1.0 - np.minimum(1.0, np.exp(high) * per_width))).sum(axis=0))
