"""Items and repeats random: a race's ordinary standard error and interval."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from tests.claims import binomial_claim, pinned, replications
from tests.races.estimates.drawn import bernoulli, draw

from evalbudget import Allocation
from evalbudget.estimate import Coverage, Random, Validity
from evalbudget.races._draws import Chances, ModelDraws
from evalbudget.races.estimates import as_sample, benchmark_mean
from evalbudget.repeats.estimates import ItemReadings, mean_over_sampled_items
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._exact_share import exact_share

NOTHING = np.full(60, 0.5)


def one_by_one(scores: FloatArray, n_drawn: int, seed: int = 0, q: FloatArray | None = None) -> ModelDraws:
    """Draws with chances of their own; by default these turn out the same for all items."""
    N = scores.size
    plain = draw(scores, np.zeros(N), n_drawn, seed=seed)
    chances = Chances.of(np.full(N, 0.3), np.full(N, 1.0 / N) if q is None else q, plain.item)
    return replace(plain, chances=chances)


def test_without_predictions_against_the_textbook() -> None:
    scores = np.random.default_rng(1).random(60)
    found = as_sample(draw(scores, NOTHING, 25, seed=2))
    read = scores[np.random.default_rng(2).permutation(60)[:25]]
    error = read.std(ddof=1) / math.sqrt(25)
    margin = student.ppf(0.975, 24) * error
    interval = found.confidence_interval()
    assert found.value == pytest.approx(read.mean())
    assert found.standard_error == pytest.approx(error)
    assert (interval.low, interval.high) == pytest.approx(
        (read.mean() - margin, min(1.0, read.mean() + margin))
    )
    assert (found.validity, found.coverage) == (Validity.FIXED_N, Coverage.EACH)
    assert found.random == {Random.ITEMS, Random.REPEATS}


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, 5.0)])
@pytest.mark.parametrize("kind", ["few pass", "none pass", "all pass", "ratings", "all alike"])
def test_it_is_the_interval_that_repeats_have_of_these_scores(kind: str, bounds: tuple[float, float]) -> None:
    scores = {
        "few pass": np.r_[np.ones(3), np.zeros(57)],
        "none pass": np.zeros(60),
        "all pass": np.ones(60),
        "ratings": np.random.default_rng(4).choice([0.0, 0.25, 1.0], 60),
        "all alike": np.full(60, 0.25),
    }[kind]
    for make in (lambda n: draw(scores, NOTHING, n, seed=5), lambda n: one_by_one(scores, n, 5)):
        for n in (20, 60):
            draws = make(n)
            item, once = np.arange(n), np.zeros(n, np.int64)
            of_repeats = mean_over_sampled_items(
                ItemReadings.of(item, once, bounds[0] + (bounds[1] - bounds[0]) * draws.value, n_items=n),
                allocation=Allocation.FIXED,
                bounds=bounds,
            )
            found, theirs = as_sample(draws, bounds=bounds), of_repeats.within(*bounds)
            assert found.value == pytest.approx(of_repeats.value)
            mine, other = found.confidence_interval(), theirs.confidence_interval()
            assert (mine.low, mine.high) == pytest.approx((other.low, other.high))


def test_one_of_twenty_by_hand() -> None:
    scores = np.r_[1.0, np.zeros(19)]
    for draws in (draw(scores, np.full(20, 0.5), 20), one_by_one(scores, 20)):
        interval = as_sample(draws).confidence_interval()
        assert (interval.low, interval.high) == pytest.approx((0.008, 0.261), abs=5e-4)


def test_draws_of_items_that_nothing_tells_apart_have_the_plain_mean() -> None:
    scores = bernoulli(0.3, 60, 3)
    draws = one_by_one(scores, 30)
    assert draws.drawn_alike
    assert benchmark_mean(draws).value == pytest.approx(draws.value.mean())
    uneven = one_by_one(scores, 30, q=np.linspace(1.0, 2.0, 60) / 90.0)
    assert not uneven.drawn_alike
    assert benchmark_mean(uneven).value != pytest.approx(uneven.value.mean())
    expected = np.linspace(0.1, 0.9, 60)
    told_apart = replace(draws, chances=Chances.of(expected, np.full(60, 1.0 / 60), draws.item))
    assert not told_apart.drawn_alike
    assert benchmark_mean(told_apart).value != pytest.approx(draws.value.mean())


def test_equal_scores_of_uneven_draws_have_the_exact_interval_at_least() -> None:
    draws = one_by_one(np.zeros(60), 30, q=np.linspace(1.0, 2.0, 60) / 90.0)
    assert as_sample(draws).confidence_interval().high >= exact_share(0, 30, 0.95)[1]
    read = one_by_one(np.zeros(60), 60, q=np.linspace(1.0, 2.0, 60) / 90.0)
    interval = as_sample(read).confidence_interval()
    assert (interval.low, interval.high) == pytest.approx(exact_share(0, 60, 0.95))


def test_anchors_are_no_cases() -> None:
    few = as_sample(draw(np.zeros(60), NOTHING, 5, n_anchors=15)).confidence_interval()
    assert (few.low, few.high) == pytest.approx(exact_share(0, 5, 0.95))
    only = as_sample(draw(np.zeros(60), NOTHING, 0, n_anchors=15)).confidence_interval()
    assert math.isnan(only.low)
    one = as_sample(draw(bernoulli(0.5, 60, 1), NOTHING, 1, n_anchors=15)).confidence_interval()
    assert one.high - one.low > 0.9


def test_on_the_full_grid_it_is_the_hosts_own() -> None:
    scores = bernoulli(0.7, 60, 1)
    found = as_sample(draw(scores, NOTHING, 60))
    assert found.standard_error == pytest.approx(scores.std(ddof=1) / math.sqrt(60))


def test_the_scale_is_mapped_back() -> None:
    scores = np.random.default_rng(0).random(60)
    unit = as_sample(draw(scores, NOTHING, 30))
    wide = as_sample(draw(scores, NOTHING, 30), bounds=(1.0, 11.0))
    assert wide.value == pytest.approx(1.0 + 10.0 * unit.value)
    assert wide.standard_error == pytest.approx(10.0 * unit.standard_error)
    assert wide.confidence_interval().low == pytest.approx(1.0 + 10.0 * unit.confidence_interval().low)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_equal_scores_have_no_standard_error_and_an_interval_with_a_width(level: float) -> None:
    found = as_sample(draw(np.full(60, level), NOTHING, 20))
    assert math.isnan(found.standard_error)
    interval = found.confidence_interval()
    assert interval.low <= level <= interval.high
    assert 0.1 < interval.high - interval.low < 0.5


def test_fewer_than_three_scores_have_no_interval() -> None:
    for n in (0, 1, 2):
        interval = as_sample(draw(bernoulli(0.5, 60, 1), NOTHING, n)).confidence_interval()
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)
    failed = np.where(np.arange(60) < 58, np.nan, 1.0)
    assert math.isnan(as_sample(draw(failed, NOTHING, 60)).confidence_interval().low)


def test_predictions_cannot_carry_it_out_of_the_range() -> None:
    """One score of 1 where 0 was predicted, on a pool predicted at 1: unbiased, and far above 1."""
    predicted = np.where(np.arange(60) == 0, 0.0, 0.95)
    order = np.arange(60)
    found = as_sample(draw(np.ones(60), predicted, 1, order=order))
    assert found.value <= 1.0


@pytest.mark.claim
def test_the_interval_covers_the_mean_of_all_items_like_them() -> None:
    R, missed = replications(400, 4000), 0
    for seed in range(R):
        rng = np.random.default_rng([seed, 3])
        scores = rng.beta(2, 1, 120)
        interval = as_sample(draw(scores, np.full(120, 0.5), 40, seed=seed)).confidence_interval()
        missed += not interval.low <= 2 / 3 <= interval.high
    binomial_claim(missed, R, at_most=0.05)
    pinned(missed, 19)


@pytest.mark.claim
@pytest.mark.parametrize(
    ("way", "p", "expected"),
    [
        ("drawn of 60", 0.05, 3),
        ("drawn of 60", 0.16, 9),
        ("drawn of 60", 0.24, 10),
        ("all of 20", 0.05, 4),
        ("all of 20", 0.16, 7),
        ("all of 20", 0.24, 4),
    ],
)
def test_it_covers_where_few_of_few_items_pass(way: str, p: float, expected: int) -> None:
    """Student's interval misses .12 of the time at .16, and the normal one .16, and .12 at .24."""
    R, missed = replications(240, 10_000), 0
    for seed in range(R):
        if way == "all of 20":
            draws = one_by_one(_of(20, p, seed), 20, seed)
        else:
            draws = draw(_of(60, p, seed), NOTHING, 20, seed=seed)
        interval = as_sample(draws).confidence_interval()
        missed += not interval.low <= p <= interval.high
    binomial_claim(missed, R, at_most=0.05)
    pinned(missed, expected)


@pytest.mark.claim
@pytest.mark.parametrize("p", [0.05, 0.3, 0.9])
def test_it_is_hardly_wider_than_the_exact_one(p: float) -> None:
    R, missed, widths, exact = replications(120, 4000), 0, [], []
    for seed in range(R):
        draws = draw(_of(400, p, seed), np.full(400, 0.5), 200, seed=seed)
        interval = as_sample(draws).confidence_interval()
        missed += not interval.low <= p <= interval.high
        low, high = exact_share(draws.value.sum(), 200, 0.95)
        widths.append(interval.high - interval.low)
        exact.append(high - low)
    binomial_claim(missed, R, at_most=0.06)  # asymptotic: .943 for some shares
    assert np.mean(widths) <= 1.1 * np.mean(exact)


def _of(n_items: int, p: float, seed: int) -> FloatArray:
    return (np.random.default_rng([seed, 3]).random(n_items) < p).astype(float)
