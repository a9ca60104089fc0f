"""Intervals of paired differences: as wide as they have to be, and no wider than the scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student_t
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import Comparison, compare
from evalbudget.hooks._plugins import plugins
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._clustered_mean import clustered_mean
from evalbudget.statistics._paired_interval import PairedMeans, ScoreSpan, widened

World = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]


def compared(first: FloatArray, second: FloatArray, documents: int | None = None) -> Comparison:
    n = len(first)
    labels = None if documents is None else tuple(f"d{i * documents // n}" for i in range(n))
    recorded = RecordedScores(
        np.stack([first, second])[:, :, None, None],
        ("a", "b"),
        tuple(map(str, range(n))),
        ("score",),
        categories=labels,
    )
    (row,) = compare(recorded, cluster=None if documents is None else "document").rows
    return row


def test_two_items_more_are_counted_not_two_clusters() -> None:
    assert float(widened(0.0, 1.0, 998)) == pytest.approx(math.sqrt(2.0) / 1000)
    assert float(widened(0.02, 0.0, 100)) == 0.02
    rng = np.random.default_rng(1)
    first, second = (rng.random(480) < p for p in (0.7, 0.5))
    row = compared(first.astype(float), second.astype(float), 12)
    plain = clustered_mean(first * 1.0 - second, np.arange(480) // 40)
    half = float(student_t.ppf(0.975, plain.degrees)) * plain.standard_error
    assert row.high - row.difference == pytest.approx(half, rel=0.03)


def test_a_difference_that_is_far_from_0_is_as_sure_as_one_that_is_not() -> None:
    noise = np.random.default_rng(2).normal(size=20)
    near, far = compared(50.0 + noise, np.full(20, 50.0)), compared(50.0 + noise, np.full(20, 40.0))
    assert far.high - far.low == pytest.approx(near.high - near.low)
    assert far.high - far.low < 1.2 * 2 * float(student_t.ppf(0.975, 19)) * far.standard_error


def test_no_interval_reaches_beyond_the_scale() -> None:
    row = compared(np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    assert (row.low, row.high) == (-1.0, 1.0)
    unknown = compared(np.array([3.0, 1.0, 3.0]), np.array([1.0, 3.0, 3.0]))
    assert unknown.high > 2.0  # nobody knows that 1 and 3 are the ends


def test_differences_that_are_all_alike_leave_room_for_others() -> None:
    span = ScoreSpan(2.0, known=False)
    found = PairedMeans(
        np.array([[0.5, np.nan]]),
        np.array([[0.0, np.nan]]),
        np.array([[9.0, np.nan]]),
        most=np.array([[0.0, np.nan]]),
        n=np.array([[10, 1]]),
        clusters=np.array([[10, 1]]),
        weights=np.array([[10.0, 1.0]]),
    ).intervals(alpha=0.05, span=span)
    share = 1.0 - 0.05**0.1
    assert found.low[0] == pytest.approx(0.5 * (1 - share) - 2.0 * share)
    assert found.high[0] == pytest.approx(0.5 * (1 - share) + 2.0 * share)
    assert np.isnan([found.low[1], found.high[1]]).all()


def of_documents(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """12 documents of 40 questions; a is .15 better, by documents that differ in it."""
    base = np.repeat(rng.uniform(0.35, 0.5, 12), 40)
    first = rng.random(480) < base + 0.15 + np.repeat(rng.uniform(-0.1, 0.1, 12), 40)
    return first.astype(float), (rng.random(480) < base).astype(float)


def of_ratings(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """20 items that are all about 10 apart."""
    item = rng.normal(50.0, 15.0, 20)
    return item + 10.0 + rng.normal(0.0, 0.3, 20), item


def of_few(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """20 items, pass or fail."""
    return (rng.random(20) < 0.7).astype(float), (rng.random(20) < 0.4).astype(float)


def of_tails(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """20 items whose differences have heavy tails."""
    return 5.0 + rng.standard_t(3, 20), np.full(20, 5.0)


def of_one_tail(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """20 items whose differences are small for most and large for some."""
    return 5.0 + rng.exponential(size=20), np.full(20, 5.0)


@pytest.mark.claim
@pytest.mark.parametrize(
    ("world", "truth", "documents", "expected"),
    [
        (of_documents, 0.15, 12, 1),
        variant(of_ratings, 10.0, None, 2),
        (of_few, 0.3, None, 2),
        variant(of_tails, 0.0, None, 2),
        (of_one_tail, 1.0, None, 3),
    ],
)
def test_intervals_are_hardly_wider_than_students(
    world: World, truth: float, documents: int | None, expected: int
) -> None:
    missed, wide, right = 0, 0.0, 0.0
    trials = replications(60, 4000)
    rng = np.random.default_rng(3)
    for _ in range(trials):
        first, second = world(rng)
        row = compared(first, second, documents)
        missed += not row.low <= truth <= row.high
        code = np.arange(len(first)) if documents is None else np.arange(len(first)) // 40
        plain = clustered_mean(first - second, code)
        wide += row.high - row.low
        right += 2 * float(student_t.ppf(0.975, plain.degrees)) * plain.standard_error
    binomial_claim(missed, trials, at_most=0.07)
    pinned(missed, expected)
    assert wide <= 1.15 * right


@pytest.mark.claim
@pytest.mark.parametrize(
    ("differ", "both_ways"), [(1, False), variant(2, False), variant(3, False), (2, True)]
)
def test_few_that_differ_are_not_too_sure(differ: int, both_ways: bool) -> None:
    """Of 1,000 items 1 to 3 differ on average."""
    missed, trials = 0, replications(27, 4000)
    rng = np.random.default_rng(4)
    truth = 0.0 if both_ways else differ / 1000
    for _ in range(trials):
        changed = (rng.random(1000) < differ / 1000).astype(float)
        way = rng.random(1000) < 0.5 if both_ways else np.ones(1000, dtype=bool)
        row = compared(np.where(way, changed, 0.0), np.where(way, 0.0, changed))
        missed += not row.low <= truth <= row.high
    binomial_claim(missed, trials, at_most=0.07)


@pytest.mark.parametrize(
    ("name", "cluster", "low", "high"),
    [
        ("docs_better", "document", 0.132, 0.222),
        ("docs", "document", -0.042, 0.017),
        ("shift", None, -10.03, -9.77),
        ("three", None, -1.0, 1.0),
    ],
)
def test_tables_from_the_field(name: str, cluster: str | None, low: float, high: float) -> None:
    path = Path(__file__).parent / "tables" / f"{name}.csv"
    (row,) = compare(plugins().open_scores(path, category=cluster), cluster=cluster).rows
    assert (row.low, row.high) == pytest.approx((low, high), abs=0.05 * (high - low))
