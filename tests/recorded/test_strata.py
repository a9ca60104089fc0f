"""Recorded scores of a random sample of a benchmark's items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalbudget.backtest import Declared, RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import ItemReadings, Strata, mean_over_stratified_items
from evalbudget.report import report


@pytest.fixture
def sampled() -> RecordedScores:
    """Six of thirty items, three from each of two strata."""
    scores = np.array([0.1, 0.3, 0.2, 0.9, 0.7, 0.8]).reshape(1, 6, 1, 1)
    strata = Strata(np.array([0, 0, 0, 1, 1, 1]), np.array([20, 10]))
    return RecordedScores(scores, ("m",), tuple("abcdef"), ("r",), strata=strata)


def test_their_mean_weighs_strata_by_their_size(sampled: RecordedScores) -> None:
    (row,) = report(sampled)["leaderboard"].rows  # type: ignore[attr-defined]
    assert row.estimate == pytest.approx((20 * 0.2 + 10 * 0.8) / 30)
    readings = ItemReadings.of(range(6), [0] * 6, sampled.scores.ravel(), n_items=6)
    expected = mean_over_stratified_items(readings, sampled.strata)
    assert (row.estimate, row.standard_error) == (expected.value, expected.standard_error)
    assert row.items == 6


def test_some_of_a_sample_are_none(sampled: RecordedScores) -> None:
    assert sampled.part(items=np.array([0, 1])).strata is None
    assert sampled.part(raters=np.array([0])).strata is sampled.strata


def test_strata_of_other_items_are_refused(sampled: RecordedScores) -> None:
    with pytest.raises(InvalidInputError, match="strata are of 5 items, and the scores of 6"):
        replace(sampled, strata=Strata(np.zeros(5, dtype=np.int64), np.array([9])))


def test_a_panel_of_several_models_is_reported_with_all_that_is_declared() -> None:
    rng = np.random.default_rng(1)
    names = ("a", "b"), tuple("cdefgh"), ("x", "y")
    made = RecordedScores(rng.random((2, 6, 2, 2)), *names)
    whole = replace(made, failed=np.zeros((2, 6, 2), dtype=np.int64), declared=Declared.of(*names))
    assert report(whole)["leaderboard"].to_dict() == report(made)["leaderboard"].to_dict()
