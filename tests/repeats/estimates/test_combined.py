from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.claims import binomial_claim, pinned, replications, variant
from tests.repeats.estimates.worlds import of

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Estimate, Random
from evalbudget.repeats.estimates import (
    Strata,
    mean_over_fixed_items,
    mean_over_sampled_items,
    mean_over_stratified_items,
)
from evalbudget.repeats.estimates._combined import degrees_of_freedom, weighted_mean
from evalbudget.sampler import Allocation
from evalbudget.statistics._exact_share import exact_share
from evalbudget.statistics._most_off import most_off

FIXED = Allocation.FIXED


def sampled(rows: list[list[float]], bounds: tuple[float, float] | None = None) -> Estimate:
    return mean_over_sampled_items(of(rows), allocation=FIXED, bounds=bounds)


def test_errors_so_small_that_their_squares_vanish() -> None:
    """Tasks whose scores are equal but for rounding."""
    tiny = replace(sampled([[0.0], [1.0], [0.5]]), standard_error=1e-85)
    interval = weighted_mean([tiny, tiny], (1, 1)).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((0.5, 0.5))


def test_against_satterthwaite_by_hand() -> None:
    rng = np.random.default_rng(0)
    tasks = [[[float(x)] for x in rng.normal(size=n)] for n in (4, 9, 15)]
    weights = (4, 9, 3)
    found = weighted_mean([sampled(rows) for rows in tasks], weights)
    share = np.array(weights) / 16
    means = [np.mean(rows) for rows in tasks]
    parts = share**2 * np.array([np.var(rows, ddof=1) / len(rows) for rows in tasks])
    freedom = parts.sum() ** 2 / (parts**2 / np.array([3, 8, 14])).sum()
    assert found.value == pytest.approx(float(share @ means))
    assert found.standard_error == pytest.approx(parts.sum() ** 0.5)
    interval = found.confidence_interval(0.9)
    assert interval.half_width == pytest.approx(stats.t.ppf(0.95, freedom) * found.standard_error)
    assert (interval.low + interval.high) / 2 == pytest.approx(found.value)
    assert found.random == {Random.ITEMS, Random.REPEATS}
    assert found.n == 28


def test_two_equal_weights_are_welch() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=6), 3 * rng.normal(size=4)
    both = [sampled([[float(x)] for x in rows]) for rows in (a, b)]
    found = weighted_mean(both, [7, 7]).confidence_interval()
    welch = stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.95)
    assert (2 * found.low, 2 * found.high) == pytest.approx((welch.low, welch.high))


def test_one_estimate_stays_what_it_is() -> None:
    alone = mean_over_fixed_items(of([[0.0, 1.0, 1.0], [0.5, 0.0]]), allocation=FIXED)
    found = weighted_mean([alone], [3])
    assert (found.value, found.standard_error) == pytest.approx((alone.value, alone.standard_error))
    ours, theirs = found.confidence_interval(0.8), alone.confidence_interval(0.8)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert found.random == {Random.REPEATS}


@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.7, 40.0, 5000.0])
def test_degrees_are_read_off_the_interval(degrees: float) -> None:
    n = int(degrees) + 1
    if degrees == int(degrees) and n < 100:
        rows = np.random.default_rng(2).normal(size=(n, 1)).tolist()
        assert degrees_of_freedom(sampled(rows)) == pytest.approx(degrees, rel=1e-6)
        return
    half = float(stats.t.ppf(0.975, degrees))
    rows = [[0.0, 1.0], [0.0, 2.0]]
    template = mean_over_fixed_items(of(rows), allocation=FIXED)
    made = replace(
        template,
        standard_error=2.0,
        interval=lambda _level: type(template.confidence_interval())(1.0 - 2 * half, 1.0 + 2 * half),
    )
    assert degrees_of_freedom(made) == pytest.approx(degrees, rel=1e-5)


def test_equal_scores_add_what_their_own_interval_leaves() -> None:
    varied, equal = [[0.0], [1.0], [1.0], [0.0], [1.0]], [[1.0]] * 4
    alone, still = sampled(varied), sampled(equal, (0.0, 1.0))
    found = weighted_mean([alone, still], [1, 3])
    assert found.value == pytest.approx(0.25 * 0.6 + 0.75)
    half, left = alone.confidence_interval().half_width / 4, 0.75 * (1 - exact_share(4, 4, 0.95)[0])
    interval = found.confidence_interval()
    assert interval.high - found.value == pytest.approx(half)
    assert found.value - interval.low == pytest.approx(math.hypot(half, left))
    normal = float(stats.norm.ppf(0.975))
    assert found.standard_error == pytest.approx(math.hypot(alone.standard_error / 4, left / 2 / normal))


def test_equal_scores_of_an_unknown_range_leave_no_interval() -> None:
    found = weighted_mean([sampled([[0.0], [1.0], [1.0]]), sampled([[1.0]] * 4)], [1, 1])
    assert math.isnan(found.confidence_interval().low)


def test_equal_scores_at_one_end_are_taken_together() -> None:
    """Twelve tasks of 50 documents are one of 600, and not twelve times the worst."""
    tasks = [sampled([[1.0]] * 50, (0.0, 1.0))] * 12
    found = weighted_mean(tasks, [1.0] * 12)
    interval = found.confidence_interval()
    assert (interval.low, interval.high) == pytest.approx((exact_share(600, 600, 0.95)[0], 1.0))


def test_the_most_that_tasks_at_an_end_can_be_off_by_brute_force() -> None:
    widths, cases = (0.7, 0.3), (40.0, 8.0)
    found = most_off(widths, cases, alpha=0.05)
    first = np.linspace(0, 1 - 0.05 ** (1 / 40), 20_001)
    second = 1 - (0.05 / (1 - first) ** 40) ** (1 / 8)
    assert found == pytest.approx(float((0.7 * first + 0.3 * second).max()), abs=1e-7)
    assert most_off((1.0,), (25.0,), alpha=0.025) == pytest.approx(exact_share(0, 25, 0.95)[1])


def test_where_nothing_varies_at_opposite_ends_each_side_has_its_own() -> None:
    ones, zeros = [[1.0]] * 4, [[0.0]] * 8
    parts = [sampled(rows, (0.0, 1.0)) for rows in (ones, zeros)]
    found = weighted_mean(parts, [1, 2])
    assert found.standard_error == 0.0
    interval = found.confidence_interval()
    assert interval.high - found.value == pytest.approx(2 / 3 * exact_share(0, 8, 0.95)[1])
    assert found.value - interval.low == pytest.approx((1 - exact_share(4, 4, 0.95)[0]) / 3)
    # inside of the scale half-widths add in squares
    inside = [sampled([[0.5]] * 6, (0.0, 1.0)), sampled([[0.25]] * 6, (0.0, 1.0))]
    interval, own = (
        weighted_mean(inside, [1, 1]).confidence_interval(),
        [one.confidence_interval() for one in inside],
    )
    assert interval.high - 0.375 == pytest.approx(math.hypot(own[0].high - 0.5, own[1].high - 0.25) / 2)


def test_an_error_that_is_unknown_stays_unknown() -> None:
    single = sampled([[0.5]])
    found = weighted_mean([single, sampled([[0.0], [1.0], [0.5]])], [1, 1])
    assert found.value == 0.5
    assert math.isnan(found.standard_error)
    assert math.isnan(found.confidence_interval().low)


@pytest.mark.parametrize("weights", [[], [1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan], [1.0, 2.0, 3.0]])
def test_weights_that_are_none(weights: list[float]) -> None:
    both = [sampled([[0.0], [1.0], [0.5]])] * 2
    with pytest.raises(InvalidInputError, match="one positive weight"):
        weighted_mean(both, weights)


def test_nothing_to_weigh() -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        weighted_mean([], [])


@pytest.mark.claim
@pytest.mark.parametrize("weighs_size", [True, False])
def test_intervals_of_groups_cover(weighs_size: bool) -> None:
    """Tasks of 4 to 40 pass/fail documents, some of which nearly always pass: about 95% cover the truth."""
    rng = np.random.default_rng(int(weighs_size))
    sizes = np.array([4, 6, 8, 10, 12, 15, 20, 25, 30, 40])
    alpha, beta = np.array([3, 9, 2, 1, 6, 3, 9, 2, 5, 4.0]), np.array([1, 1, 2, 1, 2, 3, 1, 1, 5, 2.0])
    weights = sizes if weighs_size else np.ones(len(sizes))
    truth = float(weights @ (alpha / (alpha + beta)) / weights.sum())
    missed, trials = 0, replications(75, 10_000)
    for _ in range(trials):
        tasks = []
        for n, a, b in zip(sizes, alpha, beta, strict=True):
            p = rng.beta(a, b, size=n)
            tasks.append(sampled((rng.random((n, 3)) < p[:, None]).astype(float).tolist(), (0.0, 1.0)))
        interval = weighted_mean(tasks, weights.tolist()).confidence_interval()
        missed += not interval.low <= truth <= interval.high
    binomial_claim(missed, trials, at_most=0.06)
    pinned(missed, {True: 3, False: 2}[weighs_size])


SMALL_TASKS = {
    "1000+10": [(1000, 0.5), (10, 0.97)],
    "1000+10, of middling difficulty": [(1000, 0.8), (10, 0.65)],
    "1000+10, hard": [(1000, 0.9), (10, 0.8)],
    "100+100": [(100, 0.5), (100, 0.99)],
    "100+100, at both ends": [(100, 0.03), (100, 0.99)],
    "20x50": [(50, 0.97)] * 20,
    "20x50, easy": [(50, 0.99)] * 20,
}


@pytest.mark.claim
@pytest.mark.parametrize("weighs_size", [True, variant(False)])
@pytest.mark.parametrize("group", SMALL_TASKS)
def test_groups_with_tasks_that_nearly_always_pass(group: str, weighs_size: bool) -> None:
    """At least .93 cover; on average at most 1.15 of the wider of the t and the tasks' exact intervals."""
    sizes, p = (np.array(each) for each in zip(*SMALL_TASKS[group], strict=True))
    weights = sizes if weighs_size else np.ones(len(sizes))
    share = weights / weights.sum()
    rng = np.random.default_rng(29)
    trials = replications(60, 5_000)
    normal = 2 * float(stats.norm.ppf(0.975)) * math.sqrt(float((share**2 * p * (1 - p) / sizes).sum()))
    missed, widths, exact = 0, [], []
    for _ in range(trials):
        passed = rng.binomial(sizes, p)
        tasks = [_task(int(k), int(n)) for k, n in zip(passed, sizes, strict=True)]
        interval = weighted_mean(tasks, weights.tolist()).within(0.0, 1.0).confidence_interval()
        missed += not interval.low <= float(share @ p) <= interval.high
        widths.append(interval.high - interval.low)
        own = np.array([exact_share(int(k), int(n), 0.95) for k, n in zip(passed, sizes, strict=True)])
        off = share[:, None] * np.abs(own - (passed / sizes)[:, None])
        exact.append(float(np.hypot.reduce(off, axis=0).sum()))
    binomial_claim(missed, trials, at_most=0.07)
    assert np.mean(widths) <= 1.15 * max(normal, float(np.mean(exact)))


@functools.cache
def _task(passed: int, n: int) -> Estimate:
    return sampled([[1.0]] * passed + [[0.0]] * (n - passed), (0.0, 1.0))


def test_a_group_of_one_task_in_clusters_is_that_task() -> None:
    rng = np.random.default_rng(4)
    clusters = np.arange(24) % 4
    rows = [[float(rng.random() < 0.3 + 0.15 * cluster)] for cluster in clusters]
    strata = Strata.of([str(i % 2) for i in range(24)], 24)
    for one in (
        mean_over_stratified_items(of(rows), strata, bounds=(0.0, 1.0), clusters=clusters),
        mean_over_sampled_items(of(rows), allocation=Allocation.FIXED, bounds=(0.0, 1.0), clusters=clusters),
    ):
        alone, group = one.confidence_interval(), weighted_mean([one], [1.0]).confidence_interval()
        assert (group.low, group.high) == pytest.approx((alone.low, alone.high))
