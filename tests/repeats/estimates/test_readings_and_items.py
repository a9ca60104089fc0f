from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.repeats.estimates.worlds import of

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Coverage, Validity
from evalbudget.repeats.estimates import ItemReadings, betting, eb_wilson
from evalbudget.repeats.estimates._items import pool_variance
from evalbudget.statistics import betting_intervals
from references.eb_t import eb_t

ROWS = st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), max_size=6), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_moments_against_brute_force(rows: list[list[float]]) -> None:
    moments = of(rows).moments
    for i, row in enumerate(rows):
        assert moments.n[i] == len(row)
        if row:
            assert moments.mean[i] == pytest.approx(np.mean(row))
            assert moments.squares[i] == pytest.approx(np.var(row) * len(row), abs=1e-12)
        else:
            assert np.isnan(moments.mean[i])
        if len(set(row)) == 1:
            assert moments.squares[i] == 0.0
        if len(row) > 1:
            assert moments.variance[i] == pytest.approx(np.var(row, ddof=1), abs=1e-12)


def test_order_of_completion_is_irrelevant() -> None:
    rng = np.random.default_rng(0)
    item, epoch = np.divmod(np.arange(60), 6)
    value = rng.random(60)
    shuffled = rng.permutation(60)
    one = ItemReadings.of(item, epoch, value)
    other = ItemReadings.of(item[shuffled], epoch[shuffled], value[shuffled])
    np.testing.assert_array_equal(one.value, other.value)
    for estimator in (eb_t, eb_wilson, betting):
        a, b = estimator(one), estimator(other)
        np.testing.assert_array_equal(a.value, b.value)
        np.testing.assert_array_equal(a.confidence_intervals().low, b.confidence_intervals().low)


def test_subsets() -> None:
    readings = of([[1, 2, 3, 4], [5]], cost=9.0)
    assert readings.first(2).value.tolist() == [1, 2, 5]
    assert readings.where(readings.epoch % 2 == 1).value.tolist() == [2, 4]
    assert readings.where(readings.epoch % 2 == 1).counts.tolist() == [2, 0]
    assert readings.cost == readings.first(2).cost == 9.0
    assert readings.phase is None
    phased = ItemReadings.of([1, 0, 0], [0, 1, 0], [5, 2, 1], phase=[0.0, 1.0, 0.0], cost=9.0)
    assert phased.phase is not None
    assert phased.phase.tolist() == [0.0, 1.0, 0.0]  # sorted with the scores
    (kept,) = np.asarray(phased.where(phased.epoch == 1).phase).tolist()
    assert kept == 1.0
    assert phased.without_phases().phase is None
    assert phased.without_phases().cost == 9.0


def test_unusable_readings_are_named() -> None:
    with pytest.raises(InvalidInputError, match="item 1, epoch 0 has score nan; leave failed readings out"):
        ItemReadings.of([0, 1], [0, 0], [1.0, np.nan])
    with pytest.raises(InvalidInputError, match="item 1 has epoch 2 twice"):
        ItemReadings.of([1, 0, 1], [2, 0, 2], [1.0, 1.0, 1.0])
    with pytest.raises(InvalidInputError, match=r"must lie in 0\.\.1"):
        ItemReadings.of([2], [0], [1.0], n_items=2)
    with pytest.raises(InvalidInputError, match="one entry each"):
        ItemReadings.of([0], [0, 1], [1.0])


def test_pool_variance_against_brute_force() -> None:
    rows = np.random.default_rng(1).normal(size=(7, 4)) * np.arange(1, 8)[:, None]
    s2 = [float(np.var(row, ddof=1)) for row in rows]
    m = sum(s2) / 7
    q = sum(s * s * 3 / 5 for s in s2) / 7
    phi = (q - m * m + sum((s - m) ** 2 for s in s2) / 6 / 7) / m**2
    pool = pool_variance(of(rows.tolist()).moments)
    assert (pool.mean, pool.strength, pool.degrees) == pytest.approx((m, 2 + 2 / phi, 21))


def test_eb_t_against_formula() -> None:
    rows = np.random.default_rng(2).normal(size=(9, 5)).tolist()
    readings = of(rows)
    pool = pool_variance(readings.moments)
    found = eb_t(readings)
    bounds = found.confidence_intervals(0.9)
    for i, row in enumerate(rows):
        v = (pool.strength * pool.mean + 5 * np.var(row)) / (pool.strength + 4)
        df = min(pool.strength + 4, 36)
        assert found.standard_error[i] == pytest.approx((v / 5) ** 0.5)
        half = stats.t.ppf(0.95, df) * (v / 5) ** 0.5
        assert (bounds.low[i], bounds.high[i]) == pytest.approx((np.mean(row) - half, np.mean(row) + half))


def test_eb_t_of_one_item_against_scipy() -> None:
    row = np.random.default_rng(3).normal(size=8)
    found = eb_t(of([row.tolist()])).confidence_intervals(0.95)
    expected = stats.t.interval(0.95, 7, row.mean(), stats.sem(row))
    assert (found.low[0], found.high[0]) == pytest.approx(expected)


def test_prior_from_fixed_repeats_only() -> None:
    rows = [[0.0, 1.0, 0.0, 1.0], [0.2, 0.4], [0.5, 0.9, 0.1]]
    found = eb_t(of(rows), fixed_repeats=2)
    pool = pool_variance(of([row[:2] for row in rows]).moments)
    expected = (pool.strength * pool.mean + np.var(rows[0]) * 4) / (pool.strength + 3)
    assert found.standard_error[0] == pytest.approx((expected / 4) ** 0.5)


@pytest.mark.parametrize("n", [1, 2, 10, 40])
def test_eb_wilson_of_passes_against_scipy(n: int) -> None:
    rows = [[1.0] * k + [0.0] * (n - k) for k in range(n + 1)]
    bounds = eb_wilson(of(rows), bounds=(0, 1)).confidence_intervals(0.95)
    for k in range(n + 1):
        expected = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert (bounds.low[k], bounds.high[k]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_eb_wilson_of_ratings_contains_eb_t_within_the_scale() -> None:
    rows = np.random.default_rng(4).integers(0, 5, (20, 6)).astype(float).tolist()
    narrow = eb_t(of(rows)).confidence_intervals()
    wide = eb_wilson(of(rows), bounds=(0, 4)).confidence_intervals()
    assert (wide.low <= np.maximum(narrow.low, 0) + 1e-12).all()
    assert (wide.high >= np.minimum(narrow.high, 4) - 1e-12).all()
    assert (wide.low >= 0).all()
    assert (wide.high <= 4).all()


def test_equal_scores_claim_no_interval_without_a_declared_range() -> None:
    readings = of([[1.0] * 3] * 4)
    for estimator in (eb_t, eb_wilson):
        found = estimator(readings)
        assert found.standard_error.tolist() == [0.0] * 4
        assert np.isnan(found.confidence_intervals().low).all()
    declared = eb_wilson(readings, bounds=(0, 1)).confidence_intervals()
    assert declared.high.tolist() == [1.0] * 4
    assert 0.3 < declared.low[0] < 0.6
    inside = eb_wilson(of([[2.0] * 3] * 4), bounds=(0, 4)).confidence_intervals()
    assert inside.low[0] < 2 < inside.high[0]


def test_items_read_once_or_never() -> None:
    once = of([[0.0], [1.0], []])
    assert np.isnan(eb_t(once).standard_error).all()
    assert np.isnan(eb_t(once).confidence_intervals().low).all()
    mixed = eb_t(of([[0.0, 1.0, 1.0], [1.0], []]))
    assert mixed.value.tolist()[1] == 1.0
    assert np.isfinite(mixed.standard_error[:2]).all()
    assert np.isnan(mixed.value[2])
    never = betting(once).confidence_intervals()
    assert (never.low[2], never.high[2]) == (0, 1)
    for estimator in (eb_t, eb_wilson, betting):
        assert estimator(of([[]])).confidence_intervals().low.size == 1


def test_betting_against_kernel_and_labels() -> None:
    rows = np.random.default_rng(5).integers(0, 5, (6, 9)).astype(float)
    found = betting(of(rows.tolist()), bounds=(0, 4), simultaneous=True)
    expected = betting_intervals(rows.ravel(), [9] * 6, bounds=(0, 4), simultaneous=True)
    np.testing.assert_array_equal(found.confidence_intervals().low, expected.low)
    assert (found.validity, found.coverage) == (Validity.ANYTIME, Coverage.SIMULTANEOUS)
    assert found.n.tolist() == [9] * 6
    with pytest.raises(InvalidInputError, match="declare the range"):
        betting(of(rows.tolist()))


def test_without_phases_readings_share_alike() -> None:
    readings = of([[1, 2, 6], [], [5]])
    assert readings.shares.tolist() == [1 / 3, 1 / 3, 1 / 3, 1]
    assert readings.item_means.tolist()[::2] == [3, 5]
    with pytest.raises(InvalidInputError, match=r"phase has shape \(1,\) and value \(2,\)"):
        ItemReadings.of([0, 0], [0, 1], [1.0, 2.0], phase=[0.0])


def test_eb_wilson_of_ratings_against_formula() -> None:
    """The variance as a share of the largest possible at mu, on a scale that is neither 0..1 nor at 0."""
    rows = [[1.0, 5.0, 3.0, 2.0], [4.0, 5.0, 5.0], [3.0, 3.0], [1.0, 2.0, 1.0, 1.0, 4.0]]
    unit = [[(x - 1) / 4 for x in row] for row in rows]
    s2 = [float(np.var(row, ddof=1)) for row in unit]
    d = sum(s2) / sum(np.mean(r) * (1 - np.mean(r)) + s / len(r) for r, s in zip(unit, s2, strict=True))
    pool = pool_variance(of(rows).moments)
    bounds = eb_wilson(of(rows), bounds=(1, 5)).confidence_intervals(0.9)
    plain = eb_t(of(rows)).confidence_intervals(0.9)
    for i, row in enumerate(unit):
        n, mean, ss = len(row), float(np.mean(row)), float(np.var(row) * len(row))
        t = float(pool.quantile(0.9, np.array([50.0 + n - 1]))[0])
        inside = [
            mu
            for mu in np.linspace(0, 1, 20_001)
            if n * (mean - mu) ** 2 <= t**2 * (50 * d * mu * (1 - mu) + ss) / (50 + n - 1)
        ]
        assert bounds.low[i] == pytest.approx(max(1, min(1 + 4 * inside[0], plain.low[i])), abs=4e-4)
        assert bounds.high[i] == pytest.approx(min(5, max(1 + 4 * inside[-1], plain.high[i])), abs=4e-4)


def test_levels_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="level"):
        eb_t(of([[0.0, 1.0]])).confidence_intervals(95)
