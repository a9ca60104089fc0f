"""What a host prints of one model's readings: rows of the benchmark mean, columns of the items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evalbudget.estimators import (
    ItemReadings,
    betting,
    eb_wilson,
    mean_over_fixed_items,
    mean_over_sampled_items,
)
from evalbudget.sampler import Allocation

LEVEL = 0.95
_DIGITS = 6


def mean_estimates(
    readings: ItemReadings | None,
    *,
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
) -> dict[str, float]:
    """The benchmark mean and how sure it is; only what is defined.

    ``estimate``, ``stderr``, ``lower`` and ``upper`` take the items as given: only the repeats are random.
    ``sampled_items_stderr``, ``sampled_items_lower`` and ``sampled_items_upper`` take the items for a sample
    of all that could have been asked. ``items`` and ``readings`` count what was scored. The intervals are for
    a fixed number of readings and asymptotic.

    Args:
        readings: of the items that were scored; None if none was.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every item got whatever its scores were.
        bounds: the smallest and the largest possible score, if declared.
        level: of the intervals.
    """
    if readings is None:
        return {"items": 0.0, "readings": 0.0}
    fixed = mean_over_fixed_items(readings, allocation=allocation, fixed_repeats=fixed_repeats, bounds=bounds)
    sampled = mean_over_sampled_items(
        readings, allocation=allocation, fixed_repeats=fixed_repeats, bounds=bounds
    )
    interval, wider = fixed.confidence_interval(level), sampled.confidence_interval(level)
    return finite(
        {
            "estimate": fixed.value,
            "stderr": fixed.standard_error,
            "lower": _within(interval.low, bounds),
            "upper": _within(interval.high, bounds),
            "sampled_items_stderr": sampled.standard_error,
            "sampled_items_lower": _within(wider.low, bounds),
            "sampled_items_upper": _within(wider.high, bounds),
            "items": float(readings.n_items),
            "readings": float(readings.value.size),
        }
    )


def _within(end: float, bounds: tuple[float, float] | None) -> float:
    """No mean is outside of the scale; an end that claims nothing stays what it is."""
    return end if bounds is None or not np.isfinite(end) else min(max(end, bounds[0]), bounds[1])


def finite(values: Mapping[str, float]) -> dict[str, float]:
    """What is there: one reading has no error yet, and hosts would print nan."""
    return {key: value for key, value in values.items() if np.isfinite(value)}


def item_columns(
    table: ItemReadings,
    *,
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Every item's count, estimate and intervals, as columns of JSON values.

    ``lower`` and ``upper`` cover 95% of the items on average (fixed-n); ``anytime_lower`` and
    ``anytime_upper``, where the score range is known, hold for each item however often one looks.

    Args:
        table: of all items, whether read or not.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every item got whatever its scores were.
        bounds: the smallest and the largest possible score, if declared.
    """
    estimates = eb_wilson(table, bounds=bounds, fixed_repeats=fixed_repeats)
    average = estimates.confidence_intervals(LEVEL)
    columns: dict[str, Any] = {
        "readings": table.counts.tolist(),
        "estimate": _rounded(estimates.value),
        "lower": _rounded(average.low),
        "upper": _rounded(average.high),
        "interval": f"{estimates.method}, {estimates.validity.value}, {estimates.coverage.value} coverage",
    }
    if bounds is not None:
        sequence = betting(table, bounds=bounds, allocation=allocation)
        guaranteed = sequence.confidence_intervals(LEVEL)
        columns["anytime_lower"] = _rounded(guaranteed.low)
        columns["anytime_upper"] = _rounded(guaranteed.high)
        columns["anytime_interval"] = (
            f"{sequence.method}, {sequence.validity.value}, {sequence.coverage.value} item"
        )
    return columns


def _rounded(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [round(v, _DIGITS) if np.isfinite(v) else None for v in values.tolist()]
