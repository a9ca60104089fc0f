"""Differences on groups of tasks and on samples by strata: these are given, and their items were sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t

from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import Comparison, Outcome, compare
from evalbudget.recorded._declared import Declared
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._strata import Strata


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(4)


def recorded(scores: FloatArray, sizes: Sequence[int] = (), **more: Any) -> RecordedScores:
    """Of two models on a group of tasks of these sizes."""
    if sizes:
        tasks = tuple(f"t{task}" for task, n in enumerate(sizes) for _ in range(n))
        more |= {"categories": tasks, "by_category": True}
    names = tuple(map(str, range(scores.shape[1])))
    return RecordedScores(scores[:, :, None, None], ("a", "b"), names, ("s",), **more)


def compared(scores: RecordedScores, **options: Any) -> Comparison:
    """By compare, with the same interval as ranks go by."""
    (row,) = compare(scores, **options).rows
    if not options:
        bounds = Study.of(scores).pair_bounds
        assert (bounds.low[0, 1], bounds.high[0, 1]) == pytest.approx((row.low, row.high), nan_ok=True)
    return row


def by_hand(parts: Sequence[FloatArray], weights: Sequence[float]) -> tuple[float, float, float]:
    """Difference, standard error and half-width of the interval of parts of which many items differ."""
    share = np.asarray(weights) / sum(weights)
    variance = np.array([w**2 * part.var(ddof=1) / part.size for w, part in zip(share, parts, strict=True)])
    freedom = variance.sum() ** 2 / sum(v**2 / (d.size - 1) for v, d in zip(variance, parts, strict=True))
    error = float(np.sqrt(variance.sum()))
    half = float(student_t.ppf(0.975, freedom)) * error
    return float(share @ [part.mean() for part in parts]), error, half


@pytest.mark.parametrize("sizes", [(1000, 10), (100, 100), (50,) * 20])
def test_a_group_has_the_errors_of_its_tasks(sizes: tuple[int, ...], rng: np.random.Generator) -> None:
    scores = rng.normal(size=(2, sum(sizes)))
    scores[0] += np.repeat(np.linspace(-3.0, 3.0, len(sizes)), sizes)  # how tasks differ is no error
    row = compared(recorded(scores, sizes))
    value, error, half = by_hand(np.split(scores[0] - scores[1], np.cumsum(sizes)[:-1]), sizes)
    assert (row.difference, row.standard_error) == pytest.approx((value, error))
    assert half <= row.high - row.difference < 1.1 * half
    alone = compared(recorded(scores))
    assert alone.standard_error > 1.2 * error or sizes[0] == 1000


def test_a_task_that_never_differs_leaves_room(rng: np.random.Generator) -> None:
    scores = np.zeros((2, 110))
    scores[0, :100] = rng.random(100) < 0.3
    row, alone = compared(recorded(scores, (100, 10))), compared(recorded(scores[:, :100]))
    off = (1.0 - 0.05 ** (1 / 10)) / 11
    below, above = (np.hypot(abs(end - alone.difference) / 1.1, off) for end in (alone.low, alone.high))
    assert (row.difference - row.low, row.high - row.difference) == pytest.approx((below, above))
    same = np.ones((2, 110))
    same[:, ::2] = 0.0
    assert compared(recorded(same, (100, 10))).high == pytest.approx(compared(recorded(same)).high)


def test_two_more_items_are_in_the_task_where_they_count_most() -> None:
    scores = np.zeros((2, 1000))
    scores[0, [3, 503]] = 1.0
    row, alone = compared(recorded(scores, (500, 500))), compared(recorded(scores))
    assert row.high - row.low == pytest.approx(alone.high - alone.low, rel=0.02)


def test_tasks_of_one_model_alone_are_not_compared(rng: np.random.Generator) -> None:
    scores = rng.random((2, 60))
    scores[1, 40:] = np.nan
    row = compared(recorded(scores, (20, 20, 20)), missing="drop")
    assert (row.items, row.difference) == (40, pytest.approx(float(np.mean(scores[0, :40] - scores[1, :40]))))
    assert (
        "from the lowest to the highest seen in their task"
        in Study.of(recorded(scores + 1.0, (40, 20))).missing_note
    )
    assert "from 0 to 1." in Study.of(recorded(scores, (40, 20))).missing_note
    found = compared(recorded(scores, (20, 20, 20)), score_range=(0.0, 1.0))
    assert found.missing == (0, 20)
    for end, worst in ((found.low, 1.0), (found.high, 0.0)):
        scores[1, 40:] = worst
        filled = compared(recorded(scores, (20, 20, 20)), score_range=(0.0, 1.0))
        assert end == pytest.approx(filled.low if worst else filled.high)


def test_a_task_without_any_score_of_a_model_is_in_what_holds_at_worst(rng: np.random.Generator) -> None:
    scores = (rng.random((2, 60)) < 0.6).astype(float)
    scores[1, 40:] = np.nan
    rows = Study.of(recorded(scores, (20, 20, 20))).rows(1, 0.95)
    for end, worst in (("lower", 0.0), ("upper", 1.0)):
        scores[1, 40:] = worst
        filled = Study.of(recorded(scores, (20, 20, 20))).rows(1, 0.95)
        assert rows[end] == pytest.approx(filled[end])
    assert rows["items"] == 40


def test_a_lost_task_of_a_panel_or_of_an_unknown_range_is_in_what_holds_at_worst(
    rng: np.random.Generator,
) -> None:
    scores = (rng.random((2, 60)) < 0.6).astype(float)
    by_two = np.stack([scores, np.where(rng.random((2, 60)) < 0.2, 1.0 - scores, scores)], axis=2)
    by_two[1, 40:] = np.nan
    tasks = tuple(f"t{item // 20}" for item in range(60))
    items, judges = tuple(map(str, range(60))), ("j", "k")
    panel = RecordedScores(
        by_two[..., None], ("a", "b"), items, judges, categories=tasks, by_category=True, one_measure=True
    )
    rows = Study.of(panel).rows(1, 0.95)
    lowest, highest = (2 * rows["estimate"] / 3 + end / 3 for end in (0.0, 1.0))
    assert rows["lower"] < lowest < highest < rows["upper"]
    ratings = 2.0 + 5.0 * rng.random((2, 60))
    ratings[1, 40:] = np.nan
    rows = Study.of(recorded(ratings, (20, 20, 20))).rows(1, 0.95)
    seen = ratings[0, 40:]
    lowest, highest = (2 * rows["estimate"] / 3 + end / 3 for end in (seen.min(), seen.max()))
    assert rows["lower"] < lowest < highest < rows["upper"]


def test_of_a_lost_task_of_one_item_what_it_could_score_is_known_by_the_range(
    rng: np.random.Generator,
) -> None:
    scores = rng.random((2, 21))
    scores[0, :20] += 1.0
    scores[1, 20] = np.nan
    of = recorded(scores, (20, 1))
    row = compared(of, score_range=(0.0, 2.0))
    assert (row.missing, row.outcome) == ((0, 1), Outcome.FIRST)
    assert 0.0 < row.low < (20 * 1.0 - 2.0) / 21
    row = compared(of, against="b")
    assert row.outcome is Outcome.UNDECIDED
    assert np.isnan([row.low, row.high]).all()
    assert np.isnan(Study.of(of).pair_bounds.low[0, 1])
    assert "lower" not in Study.of(recorded(scores + 1.0, (20, 1))).rows(1, 0.95)


def test_a_task_of_one_item_may_be_anywhere_in_the_range(rng: np.random.Generator) -> None:
    scores = rng.random((2, 21))
    row = compared(recorded(scores, (20, 1)))
    assert np.isnan(row.standard_error)
    assert row.items_needed is None
    others = compared(recorded(scores[:, :20]))
    value, half = others.difference, others.high - others.difference
    apart = scores[0, 20] - scores[1, 20]
    low, high = (
        (20 * value + apart) / 21 + way * np.hypot(20 / 21 * half, 0.95 / 21 * (1.0 - way * apart))
        for way in (-1.0, 1.0)
    )
    assert (row.low, row.high) == pytest.approx((low, high), abs=1e-9)
    # where nobody knows the range it may be anywhere
    row = compared(recorded(2.0 * scores, (20, 1)))
    assert np.isnan([row.low, row.high]).all()


def test_tasks_that_were_sampled_are_clusters(rng: np.random.Generator) -> None:
    scores = rng.random((2, 60))
    assert compared(recorded(scores, (20, 20, 20)), cluster="task").clusters == 3


def test_strata_weigh_as_in_the_benchmark(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(2, 30))
    scores[0, :10] += 5.0
    strata = Strata(np.repeat([0, 1], (10, 20)), np.array([100, 300]))
    row = compared(recorded(scores, strata=strata))
    value, error, half = by_hand(np.split(scores[0] - scores[1], [10]), (100, 300))
    assert (row.difference, row.standard_error) == pytest.approx((value, error))
    assert half <= row.high - row.difference < 1.1 * half


def test_a_guaranteed_interval_holds_the_difference_that_stands_beside_it() -> None:
    scores = np.zeros((2, 400))
    scores[0, :200] = np.where(np.arange(200) < 20, 1.0, np.nan)
    of = recorded(scores, strata=Strata(np.repeat([0, 1], 200), np.array([2000, 2000])))
    row = compared(of, missing="drop", guaranteed=True, score_range=(0.0, 1.0))
    assert row.difference == pytest.approx(20 / 220)
    assert row.low < row.difference < row.high


@pytest.mark.parametrize("missing", [False, True])
def test_clusters_that_lie_across_strata_are_no_more_for_them(
    missing: bool, rng: np.random.Generator
) -> None:
    scores = rng.random((2, 120))
    scores[0] += np.repeat(rng.random(30), 4)
    if missing:
        scores[0, ::7] = np.nan
    items = [str(item) for item in range(120)]
    declared = Declared.of(
        ("a", "b"),
        items,
        ("s",),
        clusters={item: str(place // 4) for place, item in enumerate(items)},
        cluster="document",
        ranges={"s": (0.0, 2.0)},
    )
    strata = Strata(np.arange(120) % 4, np.array([100, 100, 100, 900]))
    across = recorded(scores, declared=declared, strata=strata)
    row = compared(across)
    shared = ~np.isnan(scores[0])
    share = (strata.sizes / np.bincount(strata.of_item[shared]))[strata.of_item[shared]]
    own = (scores[0] - scores[1])[shared]
    assert (row.difference, row.clusters) == (pytest.approx(float(np.average(own, weights=share))), 30)
    off = np.bincount(np.arange(120)[shared] // 4, share * (own - row.difference)) / share.sum()
    assert row.standard_error == pytest.approx(float(np.sqrt((off**2).sum())), rel=0.1)
    by_category = recorded(scores, categories=tuple(str(place // 4) for place in range(120)), strata=strata)
    assert compare(by_category, cluster="document").rows[0].standard_error == pytest.approx(
        row.standard_error
    )
    whole = replace(across, strata=Strata(np.repeat([0, 1], 60), np.array([100, 300])))
    assert len(Study.of(whole).blocks(np.repeat(np.arange(30), 4))) == 2
