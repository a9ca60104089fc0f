"""What a host prints of the benchmark mean: its rows, and the rules by which there is none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.estimate import ConfidenceInterval, Estimate
from evalbudget.repeats.estimates import (
    Estimator,
    ItemReadings,
    Strata,
    estimator_rows,
    mean_of_full_run,
    mean_over_fixed_items,
    mean_over_sampled_items,
    mean_over_stratified_items,
)
from evalbudget.repeats.estimates._benchmark_mean import mean_of_item_means
from evalbudget.repeats.estimates._combined import degrees_of_freedom
from evalbudget.sampler import Allocation

LEVEL = 0.95
FEWEST_ITEMS = 3
"""Below this many items the spread between them says nothing that an interval could rest on."""

_ROUNDING = 1e-12
_FEW_DEGREES = 4
"""Repeats with less than one in so many of the degrees of freedom with items random too are known badly."""
_ORDER = (
    *("estimate", "stderr", "lower", "upper", "full_lower", "full_upper"),
    *("repeats_stderr", "repeats_lower", "repeats_upper"),
)

COUNTS = ("items", "readings")
"""Rows that are whole numbers."""


@dataclass(frozen=True, slots=True)
class BenchmarkMean:
    """The benchmark mean as hosts print it.

    Attributes:
        rows: what is defined of ``estimate``, ``stderr``, ``lower``, ``upper`` (items and repeats random),
            ``full_lower``, ``full_upper`` (what one score of each item would have averaged, where a sample of
            the items was read), ``repeats_stderr``, ``repeats_lower``, ``repeats_upper`` (these items asked
            again), ``items`` and ``readings`` (what was scored).
        no_interval: why there is no ``lower`` and ``upper``, in words; None where there is.
        counted: readings that the estimate rests on.
        total: the estimate with items and repeats random, its error no smaller than the repeats' alone; None
            if nothing was scored.
        repeats: the same with the items given.
        full: what one score of each item would have averaged; None where no sample was drawn, or an item was
            read twice.
        bounds: the smallest and the largest possible score; None if unknown.
        clusters: of the items that were scored; None where items are independent of each other.
        at_worst: ``lower`` and ``upper`` whatever the scores of items that have none would have been; None
            where none lacks one, or nobody knows. Strata weigh in them as drawn.
        ends: the total if items that have no score had scored the lowest, and if they had scored the highest;
            empty where none lacks one.
    """

    rows: Mapping[str, float]
    no_interval: str | None = None
    counted: int = 0
    total: Estimate | None = None
    repeats: Estimate | None = None
    bounds: tuple[float, float] | None = None
    full: Estimate | None = None
    clusters: int | None = None
    at_worst: ConfidenceInterval | None = None
    ends: tuple[Estimate, ...] = ()

    @property
    def is_full_run(self) -> bool:
        """Whether the estimate is what one score of each item averaged: no interval is left to be claimed."""
        if self.full is None or "full_lower" in self.rows:
            return False
        least, most = (self.full.details.get(end, float("nan")) for end in ("least", "most"))
        return abs(most - least) <= _ROUNDING * max(1.0, abs(least))


NOTHING_SCORED = BenchmarkMean({"items": 0.0, "readings": 0.0}, "nothing was scored")
"""Of a run without a single score."""


def describe_mean(
    readings: ItemReadings | None,
    *,
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
    estimators: Sequence[type[Estimator]] = (),
    strata: Strata | None = None,
    clusters: ArrayLike | None = None,
    given_up: Collection[int] = (),
    in_vain: Collection[int] = (),
) -> BenchmarkMean:
    """The benchmark mean and how sure it is; only what is defined. See :func:`mean_rows` for the rules.

    Args:
        readings: of the items; None if none was scored.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every item got whatever its scores were.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        level: of the intervals.
        estimators: further ones, whose rows are added.
        strata: of the items, where sampler ``sample`` drew those that were read; None where all were asked.
        clusters: number of each item's cluster, where items of one cluster are not independent of each other;
            None where they are.
        given_up: items that are never asked again, with or without a score.
        in_vain: of a sample's items, those that were asked and have no score.
    """
    if readings is None or not readings.value.size:
        return NOTHING_SCORED
    repeats = mean_over_fixed_items(
        readings, allocation=allocation, fixed_repeats=fixed_repeats, bounds=bounds
    )
    full = None
    if strata is None:
        total = mean_over_sampled_items(
            readings, allocation=allocation, fixed_repeats=fixed_repeats, bounds=bounds, clusters=clusters
        )
    else:
        total = mean_over_stratified_items(readings, strata, bounds=bounds, clusters=clusters)
        if readings.counts.max(initial=0) < 2:  # a second reading is of a run that is larger than a full one
            unread = set(np.flatnonzero(readings.counts == 0).tolist())
            exhausted = readings.n_items == strata.n_items and unread <= set(given_up)
            full = mean_of_full_run(readings, strata, bounds=bounds, exhausted=exhausted)
    found = mean_rows(
        total,
        repeats,
        full,
        items=int(np.count_nonzero(readings.counts)),
        readings=int(readings.value.size),
        clusters=None if clusters is None else _clusters_read(readings, clusters),
        bounds=bounds,
        level=level,
    )
    lost = readings.counts == 0
    if strata is not None:
        lost &= np.isin(np.arange(readings.n_items), list(in_vain))
    if lost.any():
        used = readings.first(fixed_repeats) if allocation is Allocation.ADAPTIVE else readings
        scale = bounds or (float(readings.value.min()), float(readings.value.max()))
        ends = [
            mean_of_item_means(np.where(lost, end, used.item_means), bounds=bounds, clusters=clusters)
            for end in scale
        ]
        found = with_ends(found, ends, level)
    if not estimators:
        return found
    return replace(found, rows={**found.rows, **estimator_rows(estimators, readings, bounds, level)})


def with_ends(mean: BenchmarkMean, ends: Sequence[Estimate], level: float = LEVEL) -> BenchmarkMean:
    """With what holds whatever items that have no score would have scored.

    Args:
        mean: of the others.
        ends: what it would be if they had scored the lowest, and if they had scored the highest.
        level: of the interval: the smallest that holds the mean's and those of both ends.
    """
    if "lower" not in mean.rows:
        return replace(mean, ends=tuple(ends))
    found = ConfidenceInterval(mean.rows["lower"], mean.rows["upper"])
    intervals = [one.confidence_interval(level) for one in ends]
    if any(np.isnan(interval.low) for interval in intervals):
        return replace(mean, ends=tuple(ends))
    for interval in intervals:
        found = _span(found, interval)
    return replace(mean, at_worst=found, ends=tuple(ends))


def mean_rows(
    total: Estimate,
    repeats: Estimate,
    full: Estimate | None = None,
    *,
    items: int,
    readings: int,
    clusters: int | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
) -> BenchmarkMean:
    """Estimates of one mean as rows.

    ``estimate``, ``stderr``, ``lower`` and ``upper`` take items and repeats as random; ``repeats_stderr``,
    ``repeats_lower`` and ``repeats_upper`` the repeats alone. ``full_lower`` and ``full_upper`` are of what
    one score of each item would have averaged, where not all were read. The intervals are for a fixed
    number of readings and asymptotic.

    - The spread between the means of few items may come out below the repeats' own error by chance. Where
      that error has as many degrees of freedom or more, ``stderr`` is the larger of the two, and ``lower``
      and ``upper`` span both intervals. Where it has fewer than a quarter, since few items were read twice or
      few vary, the error and interval of repeats are at most those with items random too. Where no item was
      read twice, nothing is said of repeats.
    - Ends stay within ``bounds``.
    - No interval has no width, and no standard error is 0: equal scores do not prove that others are
      impossible. What the range of the scores says of them is in the interval, and there is no ``stderr``.
    - Fewer than three items have no ``stderr`` and no interval of either kind. Items of fewer than three
      clusters say nothing of others: they have the intervals of the repeats.

    Args:
        total: items and repeats random.
        repeats: the same mean with the items given; its interval is moved to ``total.value``.
        full: the mean of one score of each item; None where no sample was drawn.
        items: with a score.
        readings: scores.
        clusters: with a score; None where items are independent.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        level: of the intervals.
    """
    again, error = _moved(repeats, total.value, level), repeats.standard_error
    read_again = np.isfinite(error)
    if read_again:
        total = _not_below(total, repeats)
        if not _FEW_DEGREES * degrees_of_freedom(repeats) >= degrees_of_freedom(total):
            # where items are random too it holds for these as well
            error, own = float(np.fmin(error, total.standard_error)), total.confidence_interval(level)
            again = own if own.half_width < again.half_width else again
    values = {"estimate": total.value, "repeats_stderr": _positive(error)}
    enough = clusters is None or clusters >= FEWEST_ITEMS
    if items >= FEWEST_ITEMS:
        if enough and np.isfinite(total.standard_error):
            values["stderr"] = _positive(total.standard_error)
            values |= _ends("", total.confidence_interval(level), bounds)
        if read_again:
            values |= _ends("repeats_", again, bounds)
        if full is not None:
            values |= _ends("full_", full.confidence_interval(level), bounds)
    counts = {"items": float(items), "readings": float(readings)}
    rows = finite({key: values[key] for key in _ORDER if key in values} | counts)
    why = _why_none(rows, items, clusters, total, bounds)
    return BenchmarkMean(rows, why, min(total.n, readings), total, repeats, bounds, full, clusters)


def _clusters_read(readings: ItemReadings, clusters: ArrayLike) -> int:
    return int(np.unique(np.asarray(clusters)[readings.counts > 0]).size)


def _not_below(total: Estimate, repeats: Estimate) -> Estimate:
    """The estimate with an error and an interval that hold those of the repeats alone, if these are surer."""
    if not np.isfinite(total.standard_error):
        return total
    if total.standard_error > 0.0 and not degrees_of_freedom(repeats) >= degrees_of_freedom(total):
        return total
    return replace(
        total,
        standard_error=float(np.fmax(total.standard_error, repeats.standard_error)),
        interval=lambda level: _span(total.confidence_interval(level), _moved(repeats, total.value, level)),
    )


def _why_none(
    rows: Mapping[str, float],
    items: int,
    clusters: int | None,
    total: Estimate,
    bounds: tuple[float, float] | None,
) -> str | None:
    if "lower" in rows:
        return None
    if "estimate" not in rows:
        return NOTHING_SCORED.no_interval
    if items < FEWEST_ITEMS:
        scored = "1 item was" if items == 1 else f"{items} items were"
        return f"an interval needs at least {FEWEST_ITEMS} items, and {scored} scored"
    if clusters is not None and clusters < FEWEST_ITEMS:
        are = "are all of 1 cluster" if clusters == 1 else f"are of {clusters} clusters"
        return f"an interval needs at least {FEWEST_ITEMS} clusters, and the items {are}"
    if not np.isfinite(total.standard_error):
        return "too few scores for the number of judges to tell an error from"
    same = "items have the same score" if clusters is None else "clusters have the same mean score"
    if bounds is None:
        return f"all {same}, and the range of the scores is not declared"
    return f"all {same}"


def _moved(estimate: Estimate, value: float, level: float) -> ConfidenceInterval:
    interval = estimate.confidence_interval(level)
    shift = value - estimate.value
    return ConfidenceInterval(interval.low + shift, interval.high + shift) if shift else interval


def _span(one: ConfidenceInterval, other: ConfidenceInterval) -> ConfidenceInterval:
    """The smallest interval that holds both; what is not defined is left out."""
    return ConfidenceInterval(float(np.fmin(one.low, other.low)), float(np.fmax(one.high, other.high)))


def _ends(prefix: str, interval: ConfidenceInterval, bounds: tuple[float, float] | None) -> dict[str, float]:
    """Both ends within the scale, or none where nothing is left between them."""
    low, high = (_within(end, bounds) for end in (interval.low, interval.high))
    if not high - low > _ROUNDING * max(1.0, abs(low), abs(high)):
        return {}
    return {f"{prefix}lower": low, f"{prefix}upper": high}


def _positive(error: float) -> float:
    return error if error > _ROUNDING else float("nan")


def _within(end: float, bounds: tuple[float, float] | None) -> float:
    """No mean is outside of the scale; an end that claims nothing stays what it is."""
    return end if bounds is None or not np.isfinite(end) else min(max(end, bounds[0]), bounds[1])


def whole_counts(rows: Mapping[str, float]) -> dict[str, float]:
    """The same rows, with counts as whole numbers."""
    return {name: int(value) if name in COUNTS else value for name, value in rows.items()}


def finite(values: Mapping[str, float]) -> dict[str, float]:
    """What is there: one reading has no error yet, and hosts would print nan."""
    return {key: value for key, value in values.items() if np.isfinite(value)}
