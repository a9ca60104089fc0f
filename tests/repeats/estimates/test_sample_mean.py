"""The mean from a random sample of items: by hand, over all samples there are, and its coverage."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.asking import Asking, first_items
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget import Allocation, Design, Reading
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import describe_mean
from evalbudget.repeats.estimates import (
    ItemReadings,
    Strata,
    mean_of_full_run,
    mean_over_sampled_items,
    mean_over_stratified_items,
    strata_labels,
)
from evalbudget.repeats.samplers import Sample
from evalbudget.statistics._bounds import FloatArray

LEVEL = 0.95
HOW: Any = {"allocation": Allocation.FIXED, "fixed_repeats": 0}


def once(items: list[int] | FloatArray, values: FloatArray) -> ItemReadings:
    """One score of each of these items."""
    return ItemReadings.of(items, np.zeros(len(items)), values[items], n_items=values.size)  # type: ignore[index]


def test_two_strata_by_hand() -> None:
    values = np.array([1.0, 3.0, 9.0, 9.0, 10.0, 12.0, 0.0, 0.0, 0.0, 0.0])
    strata = Strata.of(["a"] * 4 + ["b"] * 6, 10)
    readings = once([0, 1, 4, 5, 6], values)
    full = mean_of_full_run(readings, strata)
    # a: mean 2, s^2 2, 2 of 4; b: mean 22/3, s^2 124/3, 3 of 6
    assert full.value == pytest.approx(0.4 * 2 + 0.6 * 22 / 3)
    parts = np.array([0.16 * 0.5 * 2 / 2, 0.36 * 0.5 * (124 / 3) / 3])
    assert full.standard_error == pytest.approx(np.sqrt(parts.sum()))
    degrees = parts.sum() ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / 2)
    from scipy.stats import t

    half = t.ppf(0.975, degrees) * full.standard_error
    interval = full.confidence_interval(LEVEL)
    assert (interval.low, interval.high) == pytest.approx((full.value - half, full.value + half))
    total = mean_over_stratified_items(readings, strata)
    assert total.value == full.value
    assert total.standard_error == pytest.approx(full.standard_error * np.sqrt(2))


def test_strata_of_which_nothing_was_read_are_one_of_their_own() -> None:
    strata = Strata.of_read([7, 2, 2], {7: 4, 2: 3}, 12)
    assert strata.of_item.tolist() == [1, 0, 0]
    assert strata.sizes.tolist() == [3, 4, 5]
    assert Strata.of_read([7, 2, 2], {7: 4, 2: 3}, 7).sizes.tolist() == [3, 4]


def test_with_one_stratum_the_estimate_is_that_of_any_run() -> None:
    values = np.random.default_rng(0).normal(size=30)
    readings = once(list(range(12)), values)
    ours = mean_over_stratified_items(readings, Strata.of(None, 30))
    other = mean_over_sampled_items(readings, allocation=Allocation.FIXED)
    assert ours.value == pytest.approx(other.value, abs=1e-15)
    assert ours.standard_error == pytest.approx(other.standard_error, abs=1e-15)
    assert ours.confidence_interval().low == pytest.approx(other.confidence_interval().low, abs=1e-12)


def test_over_all_samples_there_are_it_is_unbiased_and_so_is_its_variance() -> None:
    values = np.array([0.0, 1.0, 5.0, 7.0, 2.0, 2.0, 3.0, 11.0])
    strata = Strata.of(["a"] * 4 + ["b"] * 4, 8)
    found = [
        mean_of_full_run(once([*first, *second], values), strata)
        for first in combinations(range(4), 2)
        for second in combinations(range(4, 8), 3)
    ]
    estimates = np.array([one.value for one in found])
    assert estimates.mean() == pytest.approx(values.mean(), abs=1e-12)
    variances = np.array([one.standard_error for one in found]) ** 2
    assert variances.mean() == pytest.approx(estimates.var(), abs=1e-12)


def test_the_first_scores_are_those_of_a_full_run() -> None:
    values = np.array([1.0, 2.0, 4.0])
    readings = ItemReadings.of([0, 0, 1, 2], [0, 1, 0, 0], [1.0, 8.0, 2.0, 4.0], n_items=3)
    full = mean_of_full_run(readings, Strata.of(None, 3))
    assert full.value == pytest.approx(values.mean())
    assert full.standard_error == 0.0
    interval = full.confidence_interval()
    assert interval.low == interval.high == full.value
    rows = describe_mean(
        readings, allocation=Allocation.FIXED, fixed_repeats=0, strata=Strata.of(None, 3)
    ).rows
    assert "full_lower" not in rows  # nothing is left to be said


def test_nothing_varies() -> None:
    values, strata = np.ones(100), Strata.of(None, 100)
    readings = once(list(range(40)), values)
    assert np.isnan(mean_of_full_run(readings, strata).confidence_interval().low)
    rows = describe_mean(readings, allocation=Allocation.FIXED, fixed_repeats=0, strata=strata).rows
    assert {"lower", "full_lower"}.isdisjoint(rows)
    interval = mean_of_full_run(readings, strata, bounds=(0.0, 1.0)).confidence_interval()
    # .6^5 = .078 and .6^6 = .047: at most five of the others may fail
    assert (interval.low, interval.high) == pytest.approx((0.95, 1.0))
    assert np.isnan(mean_of_full_run(once([], values), strata, bounds=(0.0, 1.0)).value)
    one = mean_of_full_run(once([3], values), strata, bounds=(0.0, 1.0))
    assert one.value == 1.0
    assert np.isnan(one.standard_error)


def test_what_was_read_leaves_the_mean_no_more_room() -> None:
    values = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    interval = mean_of_full_run(once([0, 1, 2, 3, 4], values), Strata.of(None, 6), bounds=(0.0, 1.0))
    assert interval.confidence_interval(0.99).low == pytest.approx(4 / 6)
    assert interval.confidence_interval(0.99).high == pytest.approx(5 / 6)


def test_small_strata_are_taken_together_by_their_sizes() -> None:
    labels = ["large"] * 40 + ["pair"] * 2 + ["one"] + ["other"] + ["six"] * 6
    read = np.zeros(50, dtype=bool)
    read[[0, 1, 2, 3, 4, 5, 6, 7, 42, 44]] = True  # a fifth: six of "six" promise less than two
    whole = Strata.of(labels, 50).collapsed(read)
    assert sorted(whole.sizes) == [10, 40]
    assert len(set(whole.of_item[40:])) == 1
    # alone they would show nothing
    read[:] = False
    read[:10] = True
    assert Strata.of(labels, 50).collapsed(read).sizes.tolist() == [50]


def test_strata_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="number them from 0"):
        Strata(np.array([0, 2]), np.array([5, 5]))
    with pytest.raises(InvalidInputError, match="more items than its size"):
        Strata(np.array([0, 0]), np.array([1]))
    assert strata_labels([1, None, 1], "kind", ["kind"]) == ("1", "", "1")
    with pytest.raises(InvalidInputError, match="no item has a field 'kind': they have level; name one"):
        strata_labels([None, None], "kind", ["level"])
    with pytest.raises(InvalidInputError, match="each of the 3 items has a value of its own"):
        strata_labels(["a", "b", "c"], "id", ["id"])


KINDS: dict[str, Callable[[int], list[str]]] = {
    "one": lambda n: [""] * n,
    "unequal": lambda n: [min(str(i % 64), "9") if i % 4 == 3 else "ab"[i % 4 // 2] for i in range(n)],
    "pairs": lambda n: [str(i // 2) for i in range(n)],
}
SCORES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "coins": lambda u, rng: (rng.random(u.size) < 0.3 + 0.5 * u).astype(float),
    "ratings": lambda u, rng: np.clip(np.round(rng.normal(5 + 3 * u, 2)), 1, 10),
    "normal": lambda u, rng: 3 * u + rng.normal(size=u.size),
    "ties": lambda u, rng: np.where(rng.random(u.size) < 0.9, 1.0, rng.integers(0, 4, u.size) / 3),
    "rare": lambda u, rng: (rng.random(u.size) < 0.99).astype(float),
    "skewed": lambda u, rng: np.exp(u + 1.2 * rng.normal(size=u.size)),
}
BOUNDS = {"coins": (0.0, 1.0), "ratings": (1.0, 10.0), "ties": (0.0, 1.0), "rare": (0.0, 1.0)}


def misses(kind: str, scores: str, n_items: int, n: int, runs: int) -> int:
    """How often the full run's mean is outside of its interval."""
    rng = np.random.default_rng(n_items + n)
    labels = KINDS[kind](n_items)
    strata = Strata.of(labels, n_items)
    level = np.random.default_rng(1).random(strata.sizes.size)[strata.of_item]
    design = Design(items=tuple(map(str, range(n_items))), categories=tuple(labels))
    missed = 0
    for seed in range(runs):
        values = SCORES[scores](level, rng)
        items = first_items(Sample(design, seed=seed), n)
        full = mean_of_full_run(once(items, values), strata, bounds=BOUNDS.get(scores))
        interval = full.confidence_interval(LEVEL)
        missed += not interval.low - 1e-9 <= values.mean() <= interval.high + 1e-9
    return missed


@pytest.mark.claim
@pytest.mark.parametrize(
    ("kind", "scores", "n_items", "n", "expected", "at_most"),
    [
        ("one", "coins", 400, 80, 0, 0.06),
        ("one", "normal", 400, 390, 0, 0.06),
        variant("one", "ties", 400, 80, 3, 0.1),
        ("one", "rare", 400, 80, 2, 0.06),
        variant("one", "skewed", 400, 80, 3, 0.12),
        variant("unequal", "coins", 400, 80, 1, 0.06),
        ("unequal", "ratings", 400, 80, 2, 0.06),
        variant("unequal", "normal", 400, 200, 1, 0.06),
        variant("unequal", "rare", 400, 200, 1, 0.06),
        ("unequal", "skewed", 400, 200, 1, 0.09),
        ("pairs", "coins", 400, 80, 1, 0.06),
        variant("pairs", "normal", 400, 390, 0, 0.06),
    ],
)
def test_the_interval_holds_the_full_runs_mean(
    kind: str, scores: str, n_items: int, n: int, expected: int, at_most: float
) -> None:
    runs = replications(18, 4000)
    missed = misses(kind, scores, n_items, n, runs)
    pinned(missed, expected)
    binomial_claim(missed, runs, at_most=at_most)


@pytest.mark.claim
def test_the_estimate_covers_items_like_these_in_the_same_proportions() -> None:
    rng = np.random.default_rng(0)
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    strata, truth = Strata.of(labels, 100), np.array([0.2, 0.5, 0.9])
    design = Design(items=tuple(map(str, range(100))), categories=tuple(labels))
    runs, missed, wider = replications(100, 4000), 0, 0
    for seed in range(runs):
        values = (rng.random(100) < truth[strata.of_item]).astype(float)
        readings = once(first_items(Sample(design, seed=seed), 50), values)
        interval = mean_over_stratified_items(readings, strata).confidence_interval()
        missed += not interval.low <= strata.sizes @ truth / 100 <= interval.high
        plain = mean_over_sampled_items(readings, allocation=Allocation.FIXED).confidence_interval()
        wider += plain.half_width > interval.half_width
    pinned(missed, 11)
    binomial_claim(missed, runs, at_most=0.06)
    assert wider > 0.9 * runs  # what differs between strata adds nothing


@pytest.mark.claim
@pytest.mark.parametrize(
    ("lost", "expected", "of_an_epoch"), [variant(0.0, 1, 1), (0.3, 1, 11), variant(0.8, 1, 21)]
)
def test_with_failures_it_holds_the_mean_of_the_items_that_can_be_scored(
    lost: float, expected: int, of_an_epoch: int
) -> None:
    """Strata weigh as drawn; a plain epoch gives less weight to one of which it scores less."""
    labels = ["a"] * 150 + ["b"] * 150
    strata = Strata.of(labels, 300)
    design = Design(items=tuple(map(str, range(300))), categories=tuple(labels))
    rng, runs, missed, missed_epoch = np.random.default_rng(3), replications(36, 4000), 0, 0
    for seed in range(runs):
        values = rng.normal(strata.of_item.astype(float))
        can = (strata.of_item == 0) | (rng.random(300) >= lost)
        sampler, read = Asking(Sample(design, seed=seed)), []
        for _ in range(10 + int(10 * lost)):
            asked = sampler.ask(12)
            items = [request.cell.item for request in asked]
            told = [float(values[item]) if can[item] else None for item in items]
            sampler.tell([Reading(request, value) for request, value in zip(asked, told, strict=True)])
            read += [item for item in items if can[item]]
        interval = mean_of_full_run(once(read, values), strata).confidence_interval(LEVEL)
        target = 0.5 * (values[:150].mean() + values[150:][can[150:]].mean())
        missed += not interval.low <= target <= interval.high
        missed_epoch += not interval.low <= values[can].mean() <= interval.high
    pinned(missed, expected)
    pinned(missed_epoch, of_an_epoch)
    binomial_claim(missed, runs, at_most=0.06)


def test_nothing_is_said_of_repeats_that_nobody_saw() -> None:
    values = np.arange(100.0) % 2
    readings, strata = once(list(range(40)), values), Strata.of(None, 100)
    rows = describe_mean(
        readings, allocation=Allocation.FIXED, fixed_repeats=0, bounds=(0.0, 1.0), strata=strata
    ).rows
    interval = mean_over_stratified_items(readings, strata, bounds=(0.0, 1.0)).confidence_interval()
    assert (rows["lower"], rows["upper"]) == pytest.approx((interval.low, interval.high))
    assert rows["lower"] < rows["full_lower"]
    assert not [name for name in rows if name.startswith("repeats_")]


def test_nothing_is_said_of_a_full_run_once_more_than_one_was_bought() -> None:
    """The estimate is of all readings, and could lie outside an interval of the first ones."""
    strata = Strata.of(None, 6)
    twice = ItemReadings.of([*range(5), *range(4)], [0] * 5 + [1] * 4, [0.0] * 4 + [1] * 5, n_items=6)
    found = describe_mean(twice, strata=strata, given_up=[5], **HOW)
    assert found.full is None
    assert "full_lower" not in found.rows
    assert found.rows["lower"] < found.rows["estimate"]


def test_the_full_run_is_known_once_all_that_can_be_scored_was_read() -> None:
    values, strata = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]), Strata.of(["a"] * 3 + ["b"] * 3, 6)
    readings = once([0, 1, 2, 3, 4], values)
    open_ = describe_mean(readings, strata=strata, bounds=(0.0, 1.0), given_up=[1], **HOW)
    assert "full_lower" in open_.rows
    found = describe_mean(readings, strata=strata, bounds=(0.0, 1.0), given_up=[5], **HOW)
    assert "full_lower" not in found.rows
    assert found.full is not None
    interval = found.full.confidence_interval()
    assert interval.low == interval.high == pytest.approx(found.rows["estimate"])
    # a host that only shows what was scored does not know what was given up
    scored = Strata(strata.of_item[:5], strata.sizes)
    table = ItemReadings.of(range(5), [0] * 5, values[:5])
    assert "full_lower" in describe_mean(table, strata=scored, bounds=(0.0, 1.0), **HOW).rows
