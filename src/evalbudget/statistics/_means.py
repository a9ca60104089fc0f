"""Means of what is there."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.statistics._bounds import FloatArray


def known_mean(values: Iterable[float | None]) -> float:
    """Mean of the finite values, for example of what several judges gave one answer; nan without any."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan


def mean_of_known(values: ArrayLike, axis: int | tuple[int, ...] = -1) -> FloatArray:
    """Mean over an axis of what is not nan; nan where there is nothing."""
    array = np.asarray(values, dtype=np.float64)
    n = np.count_nonzero(~np.isnan(array), axis=axis)
    total = np.nansum(array, axis=axis)
    return np.asarray(np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0))
