"""Races that are hardly races: one item, two items, equal scores, the same model twice, another benchmark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.races.worlds import MODELS, history, new_race, played, worlds

from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.races._config import RaceConfig
from evalbudget.races._leaderboard import Leaderboard, leaderboard_of
from evalbudget.races._purchase import RacePurchase
from evalbudget.races._verdict import Finding, Status
from evalbudget.statistics._bounds import FloatArray

READ_ALL = ("race", "paired-eprocess", "uniform", "lucb", "ucb-e", "pulse", "visit")
"""Those that read everything of models they cannot tell apart."""
BATCH = {"race": 4, "lucb": 4, "ucb-e": 4, "pulse": 4}


def finish(scores: FloatArray, sampler: str, budget: int | None = None, **options: Any) -> Leaderboard:
    if sampler in BATCH:
        options = {"batch": BATCH[sampler], **options}
    return leaderboard_of(played(new_race(scores, budget or scores.size, sampler, 0, **options), scores))


@pytest.mark.parametrize("sampler", READ_ALL)
@pytest.mark.parametrize("items", [1, 2])
def test_one_item_and_two(items: int, sampler: str) -> None:
    board = finish(np.vstack([np.ones(items), np.zeros(items)]), sampler)
    assert board.sentence.startswith("lab/model-a is best: ")
    assert board.proof.startswith("exact")
    for standing in board.standings:
        assert (standing.lower, standing.upper) == (None, None)
        assert "an interval needs 3 or more" in str(standing.no_interval)
        assert standing.stderr is None
    same = finish(np.ones((2, items)), sampler)
    assert same.outcome == Finding.TIE
    assert same.sentence.endswith(f"the same mean over all {items} items, as scored once; none is better.")


def test_one_model_is_visited_by_itself() -> None:
    scores = (np.random.default_rng(3).random((1, 60)) < 0.8).astype(float)
    board = finish(scores, "visit", 30)
    assert board.sentence.startswith("lab/model-a scores 0.833 on these 60 items; 95% interval 0.582 to")
    (standing,) = board.standings
    assert standing.readings == 30
    assert standing.lower is not None
    assert standing.all_lower <= scores.mean() <= standing.all_upper
    assert finish(scores, "visit").standings[0].estimate == pytest.approx(scores.mean())


def test_a_visit_ends_when_the_mean_is_known_well_enough() -> None:
    scores = (np.random.default_rng(4).random((2, 400)) < [[0.8], [0.3]]).astype(float)
    race = played(new_race(scores, scores.size, "visit", 0, half_width=0.12), scores)
    board = leaderboard_of(race)
    assert race.stop_reason == "every model's mean is known to within 0.12"
    for standing in board.standings:
        assert standing.all_upper - standing.all_lower <= 0.24
        assert standing.readings < 300


@pytest.mark.parametrize("sampler", READ_ALL)
def test_all_scores_equal(sampler: str) -> None:
    board = finish(np.full((3, 12), 0.5), sampler)
    assert set(board.named(Status.TIE)) == set(MODELS[:3])
    for standing in board.standings:
        assert standing.stderr is None
        assert standing.lower is not None
        assert standing.upper is not None
        assert standing.lower < 0.5 < standing.upper  # the items are a sample of items like them


@pytest.mark.parametrize("sampler", [*READ_ALL, "successive-rejects", "sequential-halving"])
def test_the_same_model_twice_is_never_told_apart(sampler: str) -> None:
    row = np.random.default_rng(2).random(30).round(1)
    scores = np.vstack([row, row, 0.1 * row])
    for budget in (50, 80, 90):
        board = finish(scores, sampler, budget)
        assert board.outcome in (Finding.UNDECIDED, Finding.TIE)
        assert {"lab/model-a", "lab/model-b"} <= set(
            board.named(Status.LEADS, Status.POSSIBLE) or board.named(Status.TIE)
        )
    if sampler == "uniform":
        assert board.outcome == Finding.TIE


@pytest.mark.parametrize("sampler", ["race", "uniform"])
def test_a_range_that_scores_leave(sampler: str) -> None:
    scores = np.full((2, 8), 4.0)
    scores[1, 3] = 11.0
    with pytest.raises(
        InvalidInputError, match=r"the score 11 of model 'lab/model-b', item 'i3'.*score_range"
    ):
        finish(scores, sampler, score_range="1..10")


def test_a_history_of_another_benchmark_is_left_aside() -> None:
    scores = (np.random.default_rng(1).random((3, 20)) < [[0.9], [0.5], [0.2]]).astype(float)
    config = RaceConfig.of(budget=40, sampler="race", batch=4)
    renamed = replace(history(20, 0), items=tuple(f"other-{k}" for k in range(20)))
    items = [f"i{k}" for k in range(20)]
    race = RacePurchase(config, MODELS[:3], items, widths=[20] * 3, predictor=renamed)
    board = leaderboard_of(played(race, scores))
    (note,) = board.notes
    assert "0 of the 20 items" in note
    plain = new_race(scores, 40, "race", 0, batch=4)
    assert leaderboard_of(played(plain, scores)).standings == board.standings


def test_a_race_until_proved_needs_no_budget_and_one_without_does() -> None:
    with pytest.raises(BudgetError, match=r"needs a budget.*--until-proved"):
        RaceConfig.of()
    with pytest.raises(BudgetError, match="above zero"):
        RaceConfig.of(budget=0, until_proved=True)
    scores = (np.random.default_rng(1).random((3, 40)) < [[0.95], [0.4], [0.2]]).astype(float)
    config = RaceConfig.of(until_proved=True)
    race = RacePurchase(config, MODELS[:3], [f"i{k}" for k in range(40)], widths=[40] * 3)
    assert race.budget.amount == race.grid == 120
    board = leaderboard_of(played(race, scores))
    assert board.outcome == Finding.BEST
    assert board.spent < 120
    assert board.until_proved
    assert board.sentence == "lab/model-a is best on these 40 items, as scored once, with 95% confidence."
    assert "of the budget" not in board.table(width=200)


def test_a_cap_is_said_and_kept() -> None:
    scores = (np.random.default_rng(1).random((2, 60)) < [[0.6], [0.5]]).astype(float)
    board = finish(scores, "race", 30, until_proved=True)
    assert board.spent == 30
    assert board.outcome == Finding.UNDECIDED
    words = " ".join(board.table(width=80).split())
    assert f"{board.unread} more evaluations decide it at the latest" in words
    assert words.endswith("Raise --budget.")


def test_small_grids_with_retries_have_a_cap_that_covers_the_first_readings() -> None:
    config = RaceConfig.of(until_proved=True)
    race = RacePurchase(config, MODELS[:2], ["i0"], attempts=3)
    assert race.budget.amount == 4


def test_what_is_typed_as_nothing_is_the_default() -> None:
    nothing: dict[str, Any] = {"sampler": "", "seed": "", "score": "", "until_proved": False}
    assert RaceConfig.of(budget=9, **nothing) == RaceConfig.of(budget=9)
    with pytest.raises(BudgetError, match="above zero"):
        RaceConfig.of(budget=0)
    with pytest.raises(InvalidInputError, match="2024 does not exist"):  # a folder's name may be a number
        RaceConfig.of(budget=9, history=2024)
    with pytest.raises(UnknownNameError, match="options"):
        RaceConfig.of(budget=9, options={"batch": 3})


@pytest.mark.parametrize("missing", ["worst", "zero", "drop"])
@pytest.mark.parametrize("world", ["plain", "graded", "a tie", "failures", "a broken model"])
def test_a_race_for_the_lowest_is_one_for_the_highest_seen_in_a_mirror(world: str, missing: str) -> None:
    scores = 1.0 + 4.0 * worlds(3)[world]
    options: dict[str, Any] = {"score_range": "1..5", "missing": missing}
    for budget in (16, 20, 40):
        up = finish(scores, "race", budget, **options)
        down = finish(6.0 - scores, "race", budget, lower_is_better=True, **options)
        assert (down.outcome, down.spent, down.lower_is_better) == (up.outcome, up.spent, True)
        assert [s.name for s in down.standings] == [s.name for s in up.standings]
        assert down.sentence.endswith("Lower is better.") or "missing" in down.sentence
        for low, high in zip(down.standings, up.standings, strict=True):
            assert (low.status, low.rank, low.rank_best) == (high.status, high.rank, high.rank_best)
            assert (low.stderr, low.behind) == pytest.approx((high.stderr, high.behind))
            assert 6.0 - low.all_lower == pytest.approx(high.all_upper)
            assert 6.0 - low.all_upper == pytest.approx(high.all_lower)
            if high.estimate is not None and low.estimate is not None:
                assert 6.0 - low.estimate == pytest.approx(high.estimate)
            if high.lower is not None and low.upper is not None:
                assert 6.0 - low.upper == pytest.approx(high.lower)
