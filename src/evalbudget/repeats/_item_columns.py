"""What a host prints of single items: count, estimate and intervals of each, ``anytime_lower`` among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalbudget.repeats._mean_rows import LEVEL
from evalbudget.repeats.estimates import ItemReadings, betting, eb_wilson
from evalbudget.sampler import Allocation

_DIGITS = 6


def item_columns(
    table: ItemReadings,
    *,
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Every item's count, estimate and intervals, as columns of JSON values.

    ``lower`` and ``upper`` cover 95% of the items on average (fixed-n); ``anytime_lower`` and
    ``anytime_upper``, where the score range is known, hold for each item however often one looks, and the
    former are never outside of them. What all items together say of the variance of one comes from readings
    that were bought whatever the scores: all of them under FIXED, else the first ``fixed_repeats``.

    Args:
        table: of all items, whether read or not.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every item got whatever its scores were.
        bounds: the smallest and the largest possible score, if declared.
    """
    pool = None if allocation is Allocation.FIXED else fixed_repeats
    estimates = eb_wilson(table, bounds=bounds, fixed_repeats=pool)
    average = estimates.confidence_intervals(LEVEL)
    low, high = average.low, average.high
    columns: dict[str, Any] = {"readings": table.counts.tolist(), "estimate": _rounded(estimates.value)}
    guaranteed: dict[str, Any] = {}
    if bounds is not None:
        sequence = betting(table, bounds=bounds)
        held = sequence.confidence_intervals(LEVEL)
        low, high = np.maximum(low, held.low), np.minimum(high, held.high)
        empty = low > high
        low, high = np.where(empty, held.low, low), np.where(empty, held.high, high)
        guaranteed["anytime_lower"] = _rounded(held.low)
        guaranteed["anytime_upper"] = _rounded(held.high)
        guaranteed["anytime_interval"] = (
            f"{sequence.method}, {sequence.validity.value}, {sequence.coverage.value} item"
        )
    columns["lower"], columns["upper"] = _rounded(low), _rounded(high)
    columns["interval"] = (
        f"{estimates.method}, {estimates.validity.value}, {estimates.coverage.value} coverage"
    )
    return columns | guaranteed


def _rounded(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [round(v, _DIGITS) if np.isfinite(v) else None for v in values.tolist()]
