"""What the report claims for all models at once, tested by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications
from tests.report.worlds import recorded

from evalbudget import Allocation
from evalbudget.backtest import HowBought
from evalbudget.comparisons import Verdicts
from evalbudget.missing import Missing
from evalbudget.report import report
from evalbudget.report._categories import Categories
from evalbudget.report._leaderboard import Leaderboard

SECTIONS = [Leaderboard, Verdicts]
TRUTH = np.array([0.8, 0.8, 0.7, 0.5, 0.5, 0.3])


def binary(rng: np.random.Generator, items: int = 150, repeats: int = 1) -> np.ndarray:
    """Pass or fail, difficulty shared by the models; their true means are TRUTH, two pairs of them tied."""
    spread = rng.uniform(-0.15, 0.15, size=items)
    chance = TRUTH[:, None, None] + spread[:, None]
    return np.asarray(rng.random((TRUTH.size, items, repeats)) < chance, dtype=float)[:, :, None, :]


@pytest.mark.claim
def test_intervals_and_ranks_hold_at_once() -> None:
    means = ranks = differences = 0
    trials = replications(24, 3000)
    better = (TRUTH[:, None] < TRUTH).sum(axis=1)
    worse = (TRUTH[:, None] > TRUTH).sum(axis=1)
    for seed in range(trials):
        found = report(recorded(binary(np.random.default_rng(seed)), raters=("r",)), sections=SECTIONS)
        board, against = found.sections
        assert isinstance(board, Leaderboard)
        assert isinstance(against, Verdicts)
        at = {row.model: int(row.model[1]) for row in board.rows}
        means += any(not row.all_low <= TRUTH[at[row.model]] <= row.all_high for row in board.rows)
        ranks += any(
            row.best_rank > 1 + better[at[row.model]] or row.worst_rank < 6 - worse[at[row.model]]
            for row in board.rows
        )
        leader = TRUTH[at[against.against]]
        differences += any(not row.low <= TRUTH[at[row.first]] - leader <= row.high for row in against.rows)
    binomial_claim(means, trials, at_most=0.05)
    binomial_claim(ranks, trials, at_most=0.05)
    binomial_claim(differences, trials, at_most=0.05)
    pinned(means, 0)
    pinned(ranks, 1)
    pinned(differences, 0)


@pytest.mark.claim
def test_adaptive_repeats_counted_as_bought_leave_no_bias() -> None:
    """Items that pass twice are not asked again: the mean of all readings is off, ours is not."""
    ours, naive, missed = [], [], 0
    trials = replications(120, 2000)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        chance = rng.beta(4, 1, size=100)
        x = np.asarray(rng.random((1, 100, 1, 8)) < chance[:, None, None], dtype=float)
        x[0, x[0, :, 0, :2].sum(axis=1) == 2, 0, 2:] = np.nan
        bought = recorded(x, raters=("r",), purchases=(HowBought(Allocation.ADAPTIVE, 2),))
        (row,) = report(bought, sections=[Leaderboard]).to_dict()["leaderboard"]["rows"]
        (wrong,) = report(recorded(x, raters=("r",)), sections=[Leaderboard]).to_dict()["leaderboard"]["rows"]
        ours.append(row["estimate"] - 0.8)
        naive.append(wrong["estimate"] - 0.8)
        missed += not row["low"] <= 0.8 <= row["high"]
    error = float(np.std(ours)) / np.sqrt(trials)
    assert abs(np.mean(ours)) < 4 * error
    assert abs(np.mean(naive)) > 10 * float(np.std(naive)) / np.sqrt(trials)
    binomial_claim(missed, trials, at_most=0.07)


@pytest.mark.claim
def test_categories_hold_where_what_is_wrong_fails_more_often() -> None:
    """Half of the wrong answers on hard items crash: the mean of the others is .67 in place of .5."""
    truth = {"easy": 0.8, "hard": 0.5}
    labels = tuple(name for name in truth for _ in range(60))
    alone = at_once = left_out = 0
    trials = replications(60, 3000)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        scores = (rng.random((1, 120)) < [truth[label] for label in labels]) * 1.0
        scores[(scores == 0.0) & (rng.random(120) < 0.5) & (np.array(labels) == "hard")] = np.nan
        failed = np.isnan(scores).astype(np.int64)[..., None]
        table = recorded(scores[..., None, None], raters=("r",), categories=labels, failed=failed)
        (found,) = report(table, sections=[Categories]).sections
        assert isinstance(found, Categories)
        _, hard = found.rows
        alone += not hard.low <= truth["hard"] <= hard.high
        at_once += any(not row.all_low <= truth[row.category] <= row.all_high for row in found.rows)
        (dropped,) = report(table, sections=[Categories], missing=Missing.DROP).sections
        assert isinstance(dropped, Categories)
        left_out += not dropped.rows[1].low <= truth["hard"] <= dropped.rows[1].high
    binomial_claim(alone, trials, at_most=0.05)
    binomial_claim(at_once, trials, at_most=0.05)
    assert left_out > trials / 2
    pinned(alone, 0)
    pinned(at_once, 1)
