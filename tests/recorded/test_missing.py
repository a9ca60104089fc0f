"""Scores that should be there and are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalbudget import Allocation
from evalbudget.backtest import Declared, HowBought, RecordedScores
from evalbudget.recorded._missing import missing_answers, missing_shares, score_range

NAN = np.nan


def two(scores: list[list[float]], **more: object) -> RecordedScores:
    """Models by items, one score each."""
    table = np.array(scores)[:, :, None, None]
    models = tuple(f"m{i}" for i in range(table.shape[0]))
    items = tuple(f"q{i}" for i in range(table.shape[1]))
    return replace(RecordedScores(table, models, items, ("r",)), **more)  # type: ignore[arg-type]


def test_an_item_that_others_have_is_missing_unless_the_source_says_otherwise() -> None:
    recorded = two([[1.0, 0.0, NAN], [1.0, NAN, NAN]])
    np.testing.assert_array_equal(missing_shares(recorded), [[0.0, 0.0, NAN], [0.0, 1.0, NAN]])
    assert missing_answers(recorded).tolist() == [0, 1]
    declared = Declared.of(recorded.models, recorded.items, recorded.raters, complete=["m1"])
    assert missing_answers(replace(recorded, declared=declared)).tolist() == [0, 0]


def test_a_failed_reading_is_missing_whoever_says_what() -> None:
    failed = np.array([[[0], [0]], [[0], [1]]])
    recorded = two([[1.0, 0.0], [1.0, NAN]], failed=failed)
    declared = Declared.of(recorded.models, recorded.items, recorded.raters, complete=["m0", "m1"])
    assert missing_answers(replace(recorded, declared=declared)).tolist() == [0, 1]


def test_some_failed_repeats_are_a_share_of_the_item() -> None:
    scores = np.array([[[[1.0, 0.0, NAN, NAN]]]])
    recorded = RecordedScores(scores, ("m",), ("q",), ("r",), failed=np.array([[[2]]]))
    assert missing_shares(recorded).tolist() == [[0.5]]
    assert missing_answers(recorded).tolist() == [2]
    asked_again = replace(recorded, purchases=(HowBought(Allocation.PHASED),))
    assert missing_shares(asked_again).tolist() == [[0.0]]


def test_the_range_is_declared_or_two_valued_or_as_seen() -> None:
    assert score_range(two([[1.0, 0.0]])) == ((0.0, 1.0), True)
    assert score_range(two([[0.0, 0.0]])) == ((0.0, 1.0), True)
    graded = two([[2.0, 5.0]])
    assert score_range(graded) == ((2.0, 5.0), False)
    declared = Declared.of(graded.models, graded.items, graded.raters, ranges={"r": (1.0, 10.0)})
    assert score_range(replace(graded, declared=declared)) == ((1.0, 10.0), True)
