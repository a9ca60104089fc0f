"""What a host prints of one model's readings: the rows of the benchmark mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications
from tests.repeats.estimates.worlds import of

from evalbudget import Allocation
from evalbudget.repeats._item_columns import item_columns
from evalbudget.repeats._mean_rows import describe_mean
from evalbudget.repeats.estimates import mean_over_fixed_items, mean_over_sampled_items

FIXED: dict[str, Any] = {"allocation": Allocation.FIXED, "fixed_repeats": 2}
INTERVALS = {"lower", "upper", "repeats_lower", "repeats_upper"}


def test_rows_against_the_estimators() -> None:
    readings = of([[1.0, 3.0], [4.0, 5.0, 6.0], [8.0, 8.5], [2.0, 2.5]])
    rows = dict(describe_mean(readings, **FIXED).rows)
    total, again = mean_over_sampled_items(readings, **FIXED), mean_over_fixed_items(readings, **FIXED)
    wide, narrow = total.confidence_interval(), again.confidence_interval()
    assert list(rows) == [
        *("estimate", "stderr", "lower", "upper", "repeats_stderr", "repeats_lower", "repeats_upper"),
        *("items", "readings"),
    ]
    assert rows == pytest.approx(
        {
            "estimate": total.value,
            "stderr": total.standard_error,
            "lower": wide.low,
            "upper": wide.high,
            "repeats_stderr": again.standard_error,
            "repeats_lower": narrow.low,
            "repeats_upper": narrow.high,
            "items": 4,
            "readings": 9,
        }
    )


def test_intervals_stay_within_the_range() -> None:
    readings = of([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    free = dict(describe_mean(readings, **FIXED).rows)
    assert free["lower"] < 0.0
    assert free["upper"] > 1.0
    found = dict(describe_mean(readings, bounds=(0.0, 1.0), **FIXED).rows)
    assert 0.0 < found["lower"] < found["upper"] < 1.0


@pytest.mark.parametrize("again", [[0.0], [1.0], [1.0, 0.0, 0.0]])
def test_a_few_items_that_were_read_twice_make_no_interval_wider(again: list[float]) -> None:
    """As where a run ends soon after its first reading of each item; they say too little of repeats alone."""
    items: list[list[float]] = [[float(i % 2)] for i in range(40)]
    for item, value in zip(items, again, strict=False):
        item.append(value)
    found = dict(describe_mean(of(items), bounds=(0.0, 1.0), **FIXED).rows)
    assert (found["repeats_lower"], found["repeats_upper"]) == (found["lower"], found["upper"])
    assert found.get("repeats_stderr", 0.0) <= found["stderr"]
    once = dict(describe_mean(of([item[:1] for item in items]), bounds=(0.0, 1.0), **FIXED).rows)
    assert found["upper"] - found["lower"] == pytest.approx(once["upper"] - once["lower"], rel=0.05)


def test_the_error_is_never_below_the_repeats_own() -> None:
    readings = of([[0.0, 10.0], [0.0, 10.2], [0.1, 10.0], [0.0, 10.1]])  # means all but equal
    rows = dict(describe_mean(readings, **FIXED).rows)
    assert mean_over_sampled_items(readings, **FIXED).standard_error < 0.1
    assert rows["stderr"] == rows["repeats_stderr"] > 2.0
    assert rows["lower"] == rows["repeats_lower"]
    assert rows["upper"] == rows["repeats_upper"]
    even = dict(describe_mean(of([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), **FIXED).rows)  # means equal
    assert even["stderr"] == even["repeats_stderr"] > 0.0
    assert even["lower"] < even["estimate"] < even["upper"]


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([[1.0, 2.0, 3.0]], "an interval needs at least 3 items, and 1 item was scored"),
        ([[1.0, 2.0], [4.0, 6.0]], "an interval needs at least 3 items, and 2 items were scored"),
    ],
)
@pytest.mark.parametrize("bounds", [None, (0.0, 10.0)])
def test_fewer_than_three_items_have_no_interval(
    items: list[list[float]], why: str, bounds: tuple[float, float] | None
) -> None:
    found = describe_mean(of(items), bounds=bounds, **FIXED)
    assert found.rows.keys() == {"estimate", "repeats_stderr", "items", "readings"}
    assert found.no_interval == why


def test_equal_scores_have_no_interval_without_width() -> None:
    same = of([[3.0, 3.0]] * 5)
    found = describe_mean(same, **FIXED)
    assert found.rows.keys() == {"estimate", "items", "readings"}
    assert found.no_interval == "all items have the same score, and the range of the scores is not declared"
    known = describe_mean(same, bounds=(0.0, 3.0), **FIXED)
    assert known.rows.keys() == {"estimate", "items", "readings"} | INTERVALS
    assert 0.0 <= known.rows["lower"] < known.rows["upper"] == 3.0
    assert known.no_interval is None
    # repeats that agree prove no error of 0 either
    agreeing = describe_mean(of([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]), **FIXED).rows
    assert "repeats_stderr" not in agreeing
    assert agreeing["stderr"] > 0.0
    assert "repeats_lower" not in agreeing
    assert agreeing["lower"] < agreeing["upper"]


def test_nothing_scored() -> None:
    found = describe_mean(None, **FIXED)
    assert found.rows == {"items": 0.0, "readings": 0.0}
    assert found.no_interval == "nothing was scored"


def test_what_counts_is_counted() -> None:
    readings = of([[1.0, 3.0, 2.0, 2.0], [4.0, 5.0], [8.0, 8.5]])
    assert describe_mean(readings, **FIXED).counted == 8
    assert describe_mean(readings, allocation=Allocation.ADAPTIVE, fixed_repeats=2).counted == 6


def test_an_average_interval_is_never_wider_than_the_guaranteed_one() -> None:
    rng = np.random.default_rng(2)
    items = [rng.integers(1, 11, n).astype(float).tolist() for n in (2, 3, 20, 60)]
    columns = item_columns(of(items), bounds=(1.0, 10.0), **FIXED)
    for low, high, least, most in zip(
        *(columns[key] for key in ("lower", "upper", "anytime_lower", "anytime_upper")), strict=True
    ):
        assert least <= low < high <= most


def test_where_counts_did_not_depend_on_scores_all_readings_tell_the_pools_variance() -> None:
    quiet_at_first = [[float(i)] * 2 + [i - 2.0, i + 2.0] * 4 for i in range(5)]
    columns = item_columns(of(quiet_at_first), **FIXED)
    assert all(high > low for low, high in zip(columns["lower"], columns["upper"], strict=True))


@pytest.mark.claim
@pytest.mark.parametrize(("twice", "expected"), [(3, 8), (30, 6)])
def test_intervals_hold_however_few_items_were_read_twice(twice: int, expected: int) -> None:
    rng, missed, missed_these = np.random.default_rng(twice), 0, 0
    n = replications(100, 4000)
    for _ in range(n):
        p = rng.beta(0.3, 0.3, 100)
        items = [(rng.random(1 + (i < twice)) < p[i]).astype(float).tolist() for i in range(100)]
        found = dict(describe_mean(of(items), bounds=(0.0, 1.0), **FIXED).rows)
        missed += not found["lower"] <= 0.5 <= found["upper"]
        missed_these += not found["repeats_lower"] <= p.mean() <= found["repeats_upper"]
    pinned(missed, expected)
    binomial_claim(missed, n, at_most=0.06)
    binomial_claim(missed_these, n, at_most=0.06)
