"""Races in which answers fail: what is proved whatever they are, and what they cost in power and calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, is_full, pinned, replications, variant
from tests.races.worlds import MODELS, design, new_race, played

from evalbudget.races._leaderboard import Leaderboard, leaderboard_of
from evalbudget.races._summary import closing_lines
from evalbudget.races._verdict import Finding, Status
from evalbudget.races.estimates import possible_winners
from evalbudget.races.samplers import LUCB, UCBE, Race, RacingSampler
from evalbudget.statistics._bounds import FloatArray
from evalbudget.testing import play


@dataclass(frozen=True)
class Ended:
    """One race of two models at its end."""

    sampler: RacingSampler
    calls: int
    decided: bool
    wrong: bool


def raced(
    seed: int,
    chances: tuple[float, float],
    *,
    items: int = 200,
    of_wrong: float = 0.0,
    for_good: bool = True,
    at_random: float = 0.0,
    flaky: float = 0.0,
    make: Any = Race,
) -> Ended:
    """Play a race of two models.

    Args:
        of_wrong: which share of the second model's wrong answers fails.
        for_good: always the same answers; or each call for a wrong answer with that probability.
        at_random: which share of all answers always fails.
        flaky: which share of all calls fails.
    """
    rng, luck = np.random.default_rng([seed, 29]), np.random.default_rng([seed, 30])
    scores = (rng.random((2, items)) < np.array(chances)[:, None]).astype(float)
    never = rng.random(scores.shape) < at_random
    wrong = scores[1] == 0.0
    never[1] |= wrong & (rng.random(items) < of_wrong * for_good)
    fails = np.full(scores.shape, flaky)
    fails[1, wrong] += (1.0 - flaky) * of_wrong * (not for_good)
    fails[never] = 1.0
    options = {"until_proved": True} if make is Race else {"batch": 16}
    sampler: RacingSampler = make(design(2, items), seed=seed, **options)
    bought = play(
        sampler,
        60 * items,
        score=lambda c: None if luck.random() < fails[c.model, c.item] else float(scores[c.model, c.item]),
        concurrency=8,
        together=8,
    )
    found = possible_winners(
        [sampler.draws(m) for m in range(2)],
        n_items=items,
        among={0, 1} - sampler.lost,
        dropped=sampler.proved_worse if sampler.proved_error else None,
    )
    decided = len(found.models) == 1 and not sampler.lost
    total = scores.sum(axis=1)
    best = set(np.flatnonzero(total == total.max()).tolist())
    return Ended(sampler, len(bought.readings), decided, decided and not found.models <= best)


LEADS, TIED = (0.7, 0.6), (0.65, 0.65)


@pytest.mark.claim
@pytest.mark.parametrize(
    ("of_wrong", "for_good", "chances"),
    [
        (0.4, True, LEADS),
        (1.0, True, TIED),
        (0.6, False, LEADS),
        *(variant(share, True, LEADS) for share in (0.2, 0.6, 0.8, 1.0)),
        *(variant(share, True, TIED) for share in (0.2, 0.4, 0.6, 0.8)),
        *(variant(share, False, LEADS) for share in (0.2, 0.4, 0.8)),
        *(variant(share, False, TIED) for share in (0.2, 0.4, 0.6, 0.8)),
    ],
)
def test_a_model_whose_wrong_answers_fail_is_not_proved_the_best(
    of_wrong: float, for_good: bool, chances: tuple[float, float]
) -> None:
    runs = replications(6, 2000)
    ended = (raced(seed, chances, items=60, of_wrong=of_wrong, for_good=for_good) for seed in range(runs))
    wrong = sum(each.wrong for each in ended)
    binomial_claim(wrong, runs, at_most=0.05)
    pinned(wrong, 0)


@pytest.mark.claim
@pytest.mark.parametrize("make", [LUCB, UCBE])
def test_nor_by_samplers_that_keep_no_proof(make: Any) -> None:
    runs = replications(6, 2000)
    wrong = sum(raced(seed, LEADS, items=100, of_wrong=0.8, make=make).wrong for seed in range(runs))
    binomial_claim(wrong, runs, at_most=0.05)
    pinned(wrong, 0)


@pytest.mark.claim
def test_two_in_a_hundred_missing_at_random_leave_most_races_decided() -> None:
    runs = replications(3, 400)
    without = sum(raced(seed, (0.7, 0.6), items=400).decided for seed in range(runs))
    ended = [raced(seed, (0.7, 0.6), items=400, at_random=0.02) for seed in range(runs)]
    assert sum(each.decided for each in ended) >= 0.9 * without
    assert sum(bool(each.sampler.closed) for each in ended) >= 0.9 * runs


@cache
def without_failures(runs: int) -> list[Ended]:
    return [raced(seed, (0.8, 0.6), items=400) for seed in range(runs)]


@pytest.mark.claim
@pytest.mark.parametrize(("flaky", "most", "expected"), [variant(0.1, 1.15, 0), (0.3, 1.5, 0)])
def test_failures_at_random_cost_what_they_cost(flaky: float, most: float, expected: int) -> None:
    runs = replications(11, 400)
    without = without_failures(runs)
    ended = [raced(seed, (0.8, 0.6), items=400, flaky=flaky) for seed in range(runs)]
    given_up = sum(bool(each.sampler.closed) for each in ended)
    binomial_claim(given_up, runs, at_most=0.05)
    pinned(given_up, expected)
    assert sum(each.decided for each in ended) >= 0.95 * sum(each.decided for each in without)
    calls, calls_without = (np.array([each.calls for each in races]) for races in (ended, without))
    assert np.median(calls / calls_without) <= most
    if is_full():  # of few races one that took long decides the mean
        assert calls.sum() <= most * calls_without.sum()


def crashed(of_wrong: float = 1.0, items: int = 100) -> FloatArray:
    """The first model answers everything and has .7, the second has .6 and fails where it would be wrong."""
    rng = np.random.default_rng(1)
    first, second = (rng.permutation(np.arange(items) < share * items).astype(float) for share in (0.7, 0.6))
    second[(second == 0.0) & (rng.random(items) < of_wrong)] = np.nan
    return np.vstack([first, second])


def board_of(scores: FloatArray, **options: Any) -> Leaderboard:
    return leaderboard_of(
        played(new_race(scores, 50 * scores.size, "race", 0, until_proved=True, **options), scores)
    )


def test_an_undecided_race_says_whose_answers_are_missing_and_what_they_would_have_to_be() -> None:
    board = board_of(crashed())
    assert board.outcome == Finding.UNDECIDED
    assert board.sentence == (
        f"Undecided: 40 answers of {MODELS[1]} are missing. {MODELS[1]} is level with {MODELS[0]} if they "
        "average 0.250."  # 60 points and 40 missing against 70
    )
    assert board.of(MODELS[1]).missing == 40
    assert board.of(MODELS[1]).all_lower == pytest.approx(0.6)
    assert board.of(MODELS[1]).all_upper == pytest.approx(1.0)
    assert board.of(MODELS[0]).all_lower == board.of(MODELS[0]).all_upper == pytest.approx(0.7)
    assert (board.of(MODELS[0]).rank_worst, board.of(MODELS[1]).rank_best) == (2, 1)
    told = dict(closing_lines(board))
    assert told["Missing"].startswith(f"40 answers of {MODELS[1]}: calls failed there more often")
    assert "--missing zero" in told["Missing"]
    assert Leaderboard.from_json(board.as_json) == board


def test_what_is_left_to_ask_is_no_promise_where_answers_are_missing() -> None:
    scores = crashed()
    board = leaderboard_of(played(new_race(scores, 250, "race", 0, until_proved=True), scores))
    assert board.of(MODELS[1]).missing
    told = dict(closing_lines(board))["Next"]
    assert told.startswith(f"{board.unread} evaluations are left, all that")
    assert "what is missing may still leave it undecided" in told
    assert "at the latest" not in told


def test_that_every_score_is_0_is_said_before_anything_is_concluded_from_it() -> None:
    nothing, cancelling = np.zeros((2, 20)), np.tile([1.0, -1.0], (2, 10))
    told = dict(closing_lines(board_of(nothing)))["Next"]
    assert told.startswith("40 of 40 scores are 0: look at some answers first")
    board = board_of(cancelling, score_range=(-1.0, 1.0))
    assert board.leader.estimate == 0.0
    assert dict(closing_lines(board))["Next"].startswith("choose by price or speed")


def test_where_both_lack_answers_it_says_between_what_they_are() -> None:
    scores = crashed()
    scores[0, :3] = np.nan
    low = np.nansum(scores, axis=1) / 100
    high = low + np.isnan(scores).sum(axis=1) / 100
    sentence = board_of(scores).sentence
    assert f"3 answers of {MODELS[0]}" in sentence
    assert f"40 answers of {MODELS[1]}" in sentence
    for model in (0, 1):
        assert f"{MODELS[model]} has {low[model]:.3f} to {high[model]:.3f}" in sentence


def test_where_lower_is_better_what_is_missing_is_said_in_the_scores_of_the_task() -> None:
    scores = 1.0 - crashed()
    one = board_of(scores, lower_is_better=True)
    assert one.sentence.endswith(f"{MODELS[1]} is level with {MODELS[0]} if they average 0.750.")
    scores[0, :3] = np.nan
    low = np.nansum(scores, axis=1) / 100
    high = low + np.isnan(scores).sum(axis=1) / 100
    both = board_of(scores, lower_is_better=True)
    for model in (0, 1):
        assert f"{MODELS[model]} has {low[model]:.3f} to {high[model]:.3f}" in both.sentence
        assert both.of(MODELS[model]).all_lower == pytest.approx(low[model])


def test_a_person_may_say_that_a_crash_is_a_wrong_answer_or_counts_for_nothing() -> None:
    zero = board_of(crashed(), missing="zero")
    assert zero.sentence.startswith(f"{MODELS[0]} is best")
    assert zero.proof.endswith("missing answers counted as the worst score there is")
    assert zero.of(MODELS[1]).estimate is not None
    assert zero.of(MODELS[1]).estimate < 0.8  # 1 over what it answered
    drop = board_of(crashed(), missing="drop")
    assert drop.sentence.startswith(f"{MODELS[1]} is best on the items that any two of them answered")
    assert (
        drop.proof.endswith("only items counted that two models both answered")
        or "; only items" in drop.proof
    )
    for board, missing in ((zero, "zero"), (drop, "drop")):
        assert board.missing == missing
        assert "As asked for" in dict(closing_lines(board))["Missing"]


def test_a_lead_that_missing_answers_cannot_change_is_a_lead() -> None:
    scores = crashed(of_wrong=0.2)
    scores[1, np.flatnonzero(scores[1] == 1.0)[:30]] = 0.0
    board = board_of(scores)
    assert board.sentence.startswith(f"{MODELS[0]} is best")
    assert board.of(MODELS[1]).status is Status.BEHIND
    assert "missing answers counted as the worst" in board.proof or not board.of(MODELS[1]).missing


def test_one_new_model_has_an_interval_that_holds_whatever_is_missing() -> None:
    scores = crashed()[1:]
    board = leaderboard_of(played(new_race(scores, 10_000, "visit", 0), scores))
    (only,) = board.standings
    assert only.missing == 40
    assert (only.all_lower, only.all_upper) == pytest.approx((0.6, 1.0))
    assert board.sentence == (
        f"{MODELS[0]} scores 1.000 on the 60 of these 100 items that it answered, and 0.600 to 1.000 on all "
        "of them, whatever its 40 missing answers are."
    )
