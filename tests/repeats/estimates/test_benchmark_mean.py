from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.repeats.estimates.test_readings_and_items import ROWS
from tests.repeats.estimates.worlds import of

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimate import Estimate, Random
from evalbudget.repeats.estimates import (
    ItemReadings,
    mean_over_fixed_items,
    mean_over_sampled_items,
)
from evalbudget.sampler import Allocation
from evalbudget.statistics import betting_intervals
from evalbudget.statistics._exact_share import exact_share

BOTH = [mean_over_fixed_items, mean_over_sampled_items]


def moments(rows: list[list[float]]) -> list[tuple[int, float, float]]:
    return [(len(r), float(np.mean(r)), float(np.var(r, ddof=1)) if len(r) > 1 else math.nan) for r in rows]


def test_fixed_items_against_brute_force() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=n).tolist() for n in (2, 5, 3, 9)]
    found = mean_over_fixed_items(of(rows), allocation=Allocation.FIXED)
    parts = [s2 / n / 16 for n, _, s2 in moments(rows)]
    assert found.value == pytest.approx(np.mean([np.mean(r) for r in rows]))
    assert found.standard_error == pytest.approx(sum(parts) ** 0.5)
    df = sum(parts) ** 2 / sum(p * p / (len(r) - 1) for p, r in zip(parts, rows, strict=True))
    half = stats.t.ppf(0.95, df) * found.standard_error
    assert found.confidence_interval(0.9).half_width == pytest.approx(half)
    assert found.random == {Random.REPEATS}
    assert found.n == 19


def test_two_items_against_scipy_welch() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=6), 3 * rng.normal(size=4)
    found = mean_over_fixed_items(
        of([a.tolist(), b.tolist()]), allocation=Allocation.FIXED
    ).confidence_interval(0.95)
    welch = stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.95)
    assert (2 * found.low, 2 * found.high) == pytest.approx((welch.low, welch.high))


def test_sampled_items_against_scipy() -> None:
    rows = np.random.default_rng(2).random((12, 3))
    found = mean_over_sampled_items(of(rows.tolist()), allocation=Allocation.FIXED)
    expected = stats.t.interval(0.95, 11, rows.mean(), stats.sem(rows.mean(axis=1)))
    interval = found.confidence_interval()
    assert (interval.low, interval.high) == pytest.approx(expected)
    assert found.random == {Random.ITEMS, Random.REPEATS}


def phased_rows(seed: int) -> tuple[ItemReadings, list[list[float]]]:
    """Five items of 3 to 7 readings: two in the first phase, the others in the second."""
    rng = np.random.default_rng(seed)
    rows = [(rng.normal(size=n) * (1 + i)).tolist() for i, n in enumerate((3, 6, 4, 7, 3))]
    plain = of(rows)
    phase = (plain.epoch >= 2).astype(float)
    return ItemReadings.of(plain.item, plain.epoch, plain.value, phase=phase), rows


@pytest.mark.parametrize("score", [0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("K", [3, 10, 40])
def test_equal_scores_are_no_spread_however_they_round(score: float, K: int) -> None:
    """Item means that are the same score, added up over other phases: no t interval."""
    rng = np.random.default_rng(K)
    plain = of([[score] * int(n) for n in rng.integers(3, 30, K)])
    phase = np.floor(plain.epoch / 3.0)
    readings = ItemReadings.of(plain.item, plain.epoch, plain.value, phase=phase)
    options: dict[str, Any] = {"allocation": Allocation.PHASED, "fixed_repeats": 2, "bounds": (0.0, 1.0)}
    found = mean_over_sampled_items(readings, **options)
    bet = betting_intervals(np.full(K, score), [K], 0.95, bounds=(0.0, 1.0))
    expected = exact_share(K, K, 0.95) if score == 1.0 else (bet.low[0], bet.high[0])
    interval = found.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-9)
    assert found.standard_error == 0.0


def test_where_a_phase_is_not_known_only_the_first_readings_count() -> None:
    rows = [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
    plain = of(rows)
    phase = np.where(plain.epoch == 3, np.nan, 0.0)
    for unknown in (None, phase):
        readings = ItemReadings.of(plain.item, plain.epoch, plain.value, phase=unknown)
        found = mean_over_fixed_items(readings, allocation=Allocation.PHASED, fixed_repeats=2)
        assert found.value == pytest.approx((0.5 + 0.5 + 1.0) / 3)


def test_phases_by_hand() -> None:
    readings, rows = phased_rows(3)
    K, N = 5, 2.0
    r = (sum(map(len, rows)) - 2 * K) / K
    g = r / (N + r)
    means, variances = [], []
    for row in rows:
        first, later = np.array(row[:2]), np.array(row[2:])
        means.append((1 - g) * first.mean() + g * later.mean())
        more = np.var(row) * len(row) - first.var() * 2
        variances.append((1 - g) ** 2 * first.var(ddof=1) / 2 + g**2 * more / later.size**2)
    error = np.sqrt(sum(variances)) / K
    found = mean_over_fixed_items(readings, allocation=Allocation.PHASED)
    assert found.value == pytest.approx(np.mean(means))
    assert found.standard_error == pytest.approx(error)
    parts, more = np.array(variances), np.array([len(row) - 1 for row in rows])
    half = stats.t.ppf(0.975, parts.sum() ** 2 / (parts**2 / more).sum()) * error
    assert found.confidence_interval(0.95).half_width == pytest.approx(half)
    assert found.details["readings_unused"] == 0
    assert found.n == 23
    assert "phases" in found.method
    sampled = mean_over_sampled_items(readings, allocation=Allocation.PHASED)
    assert sampled.value == pytest.approx(np.mean(means))
    assert sampled.standard_error == pytest.approx(stats.sem(means))


def test_one_phase_of_few_items_has_the_degrees_of_their_readings() -> None:
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=50).tolist(), rng.normal(size=50).tolist()]
    plain = of(rows)
    phased = ItemReadings.of(plain.item, plain.epoch, plain.value, phase=np.zeros(100))
    one, other = (
        mean_over_fixed_items(each, allocation=allocation).confidence_interval(0.95)
        for each, allocation in ((phased, Allocation.PHASED), (plain, Allocation.FIXED))
    )
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert one.half_width == pytest.approx(
        stats.ttest_ind(*rows, equal_var=False).confidence_interval().high / 2
        - np.mean(rows[0]) / 2
        + np.mean(rows[1]) / 2
    )


def test_phases_count_under_phased_only() -> None:
    readings, rows = phased_rows(4)
    plain = mean_over_fixed_items(readings, allocation=Allocation.FIXED)
    assert plain.value == pytest.approx(np.mean([np.mean(row) for row in rows]))
    other = mean_over_fixed_items(of(rows), allocation=Allocation.FIXED)
    assert plain.standard_error == other.standard_error
    first = mean_over_fixed_items(readings, allocation=Allocation.ADAPTIVE, fixed_repeats=3)
    assert first.value == pytest.approx(np.mean([np.mean(row[:3]) for row in rows]))


@pytest.mark.parametrize("estimator", BOTH)
def test_adaptive_readings_beyond_the_fixed_ones_are_not_used(estimator: Callable[..., Estimate]) -> None:
    rows = [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0], [0.0, 0.5, 0.5]]
    found = estimator(of(rows), allocation=Allocation.ADAPTIVE, fixed_repeats=2)
    expected = estimator(of([row[:2] for row in rows]), allocation=Allocation.FIXED)
    assert (found.value, found.standard_error, found.n) == (expected.value, expected.standard_error, 6)
    assert "first 2 readings" in found.method
    assert found.details["readings_unused"] == 3
    assert found.cost == 9
    with pytest.raises(InvalidInferenceError, match="fixed_repeats is 0; pass"):
        estimator(of(rows), allocation=Allocation.ADAPTIVE)


def test_single_readings_take_the_pooled_variance() -> None:
    rows = [[0.0, 1.0], [0.0, 0.4], [0.7]]
    found = mean_over_fixed_items(of(rows), allocation=Allocation.FIXED)
    s2 = [np.var(r, ddof=1) for r in rows[:2]]
    assert found.standard_error == pytest.approx((s2[0] / 2 + s2[1] / 2 + sum(s2) / 2) ** 0.5 / 3)
    assert found.details["single"] == 1
    once = mean_over_fixed_items(of([[0.0], [1.0]]), allocation=Allocation.FIXED)
    assert once.value == 0.5
    assert math.isnan(once.standard_error)
    assert math.isnan(once.confidence_interval().low)
    assert mean_over_sampled_items(of([[0.0], [1.0]]), allocation=Allocation.FIXED).standard_error == 0.5


@pytest.mark.parametrize("estimator", BOTH)
def test_items_never_read_are_left_out_and_named(estimator: Callable[..., Estimate]) -> None:
    found = estimator(of([[0.0, 1.0], [], [1.0, 1.0]]), allocation=Allocation.FIXED)
    assert found.value == 0.75
    assert "2 items that were read (of 3)" in found.target
    assert found.details["items_missing"] == 1
    nothing = estimator(of([[], []]), bounds=(0, 1), allocation=Allocation.FIXED)
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.standard_error)
    assert math.isnan(nothing.confidence_interval().low)
    assert nothing.n == 0


def test_no_variation_claims_no_interval_without_a_declared_range() -> None:
    readings = of([[1.0] * 3] * 4)
    for estimator in BOTH:
        found = estimator(readings, allocation=Allocation.FIXED)
        assert found.standard_error == 0.0
        assert math.isnan(found.confidence_interval().low)
    fixed = mean_over_fixed_items(readings, bounds=(0, 1), allocation=Allocation.FIXED).confidence_interval(
        0.95
    )
    assert (fixed.low, fixed.high) == exact_share(12, 12, 0.95)  # twelve answers of these items
    sampled = mean_over_sampled_items(
        readings, bounds=(0, 1), allocation=Allocation.FIXED
    ).confidence_interval(0.95)
    assert (sampled.low, sampled.high) == exact_share(4, 4, 0.95)  # and of items like these, four
    one = mean_over_sampled_items(of([[0.0, 1.0]]), allocation=Allocation.FIXED)
    assert math.isnan(one.standard_error)
    assert math.isnan(one.confidence_interval().low)


@pytest.mark.parametrize("estimator", BOTH)
def test_scores_outside_the_declared_range_are_named(estimator: Callable[..., Estimate]) -> None:
    with pytest.raises(InvalidInputError, match="score 4 is outside bounds"):
        estimator(of([[4.0, 1.0]]), bounds=(0, 1), allocation=Allocation.FIXED)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(list(Allocation)), st.sampled_from([None, (0.0, 1.0)]))
def test_partial_data_never_crashes(
    rows: list[list[float]], allocation: Allocation, bounds: tuple[float, float] | None
) -> None:
    for estimator in BOTH:
        found = estimator(of(rows), allocation=allocation, fixed_repeats=2, bounds=bounds)
        interval = found.confidence_interval(0.9)
        assert math.isnan(interval.low) or interval.low <= found.value <= interval.high or bounds is not None
        assert math.isnan(interval.low) or interval.low <= interval.high


def test_items_at_both_ends_that_never_vary_are_known_by_how_often_they_agreed() -> None:
    def half_width(rows: list[list[float]]) -> float:
        found = mean_over_fixed_items(of(rows), bounds=(0, 1), allocation=Allocation.FIXED)
        return found.confidence_interval().half_width

    assert half_width([[0.0] * 3, [1.0] * 3, [1.0] * 3, [0.0] * 3]) == pytest.approx(math.log(40) / 12)
    # where each was asked once, or a score is neither, it is Hoeffding's
    assert half_width([[0.0], [1.0], [1.0], [0.0]] * 5) == pytest.approx(math.sqrt(math.log(40) / 2 / 20))
    some = [[0.0] * 3, [1.0] * 3, [0.5] * 3]
    assert half_width(some * 4) == pytest.approx(math.sqrt(math.log(40) / 2 / 36))


@pytest.mark.parametrize("n", [2, 3, 8, 40])
def test_the_chance_that_readings_agree_and_are_off_is_bounded(n: int) -> None:
    p = np.linspace(0.0, 1.0, 10_001)
    assert (p**n * np.exp(-n * (1 - p)) + (1 - p) ** n * np.exp(n * p)).max() <= 1 + 1e-12


def test_uneven_readings_count_as_many_as_the_item_that_has_fewest() -> None:
    readings = of([[2.0] * 5, [2.0] * 2, [2.0] * 9])
    found = mean_over_fixed_items(readings, bounds=(2, 6), allocation=Allocation.FIXED).confidence_interval()
    hoeffding = 4 * math.sqrt(math.log(40) / 2 * (1 / 5 + 1 / 2 + 1 / 9) / 9)
    assert found.low == 2.0
    assert found.high == pytest.approx(min(2 + 4 * exact_share(0, 6, 0.95)[1], 2 + hoeffding))


def test_clusters_by_hand() -> None:
    rows = [[0.0, 0.2], [0.1], [0.9], [1.0, 0.8], [0.7], [0.4]]
    found = mean_over_sampled_items(of(rows), allocation=Allocation.FIXED, clusters=[7, 7, 3, 3, 3, 5])
    means = np.array([np.mean(row) for row in rows])
    off = means - means.mean()
    sums, sizes = np.array([off[:2].sum(), off[2:5].sum(), off[5]]), np.array([2, 3, 1])
    assert found.value == pytest.approx(means.mean())
    assert found.standard_error == pytest.approx(math.sqrt((sums**2 / (1 - sizes / 6)).sum()) / 6)
    assert "3 clusters of items" in found.method
    assert found.details["cases"] == 3


def test_clusters_of_one_item_change_nothing() -> None:
    readings = of(np.random.default_rng(3).random((9, 2)).tolist())
    plain = mean_over_sampled_items(readings, allocation=Allocation.FIXED)
    alone = mean_over_sampled_items(readings, allocation=Allocation.FIXED, clusters=np.arange(9)[::-1])
    assert alone.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
    ours, theirs = alone.confidence_interval(), plain.confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_equal_scores_of_clusters_are_as_many_cases_as_there_are_clusters() -> None:
    readings = of([[0.0]] * 12)
    found = mean_over_sampled_items(
        readings, allocation=Allocation.FIXED, bounds=(0, 1), clusters=np.arange(12) // 3
    )
    interval = found.confidence_interval()
    assert (interval.low, interval.high) == exact_share(0, 4, 0.95)
    one = mean_over_sampled_items(readings, allocation=Allocation.FIXED, clusters=[1] * 12)
    assert math.isnan(one.standard_error)


def test_items_that_were_not_read_are_of_no_cluster() -> None:
    rows = [[0.0], [], [1.0], [1.0], [0.0]]
    found = mean_over_sampled_items(of(rows), allocation=Allocation.FIXED, clusters=[0, 9, 1, 1, 2])
    kept = mean_over_sampled_items(
        of([row for row in rows if row]), allocation=Allocation.FIXED, clusters=[0, 1, 1, 2]
    )
    assert found.standard_error == kept.standard_error
    assert found.details["cases"] == 3
