"""Items and repeats random: a race's ordinary standard error and interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from tests.claims import binomial_claim, pinned, replications
from tests.races.estimates.drawn import bernoulli, draw

from evalbudget.estimate import Coverage, Random, Validity
from evalbudget.races.estimates import as_sample

NOTHING = np.full(60, 0.5)


def test_without_predictions_against_the_textbook() -> None:
    scores = bernoulli(0.7, 60, 1)
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
