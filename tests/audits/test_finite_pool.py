"""Evidence from a pool read in random order: every order of small pools, and plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evalbudget.audits._always_valid_evidence import GAMMA
from evalbudget.audits._finite_pool import GAPS, PoolMeans, Rest, pool_bets, pool_evidence
from evalbudget.statistics._bounds import FloatArray

Y = np.array([[0.9, 0.4], [0.2, 0.6], [0.7, 0.1], [0.4, 0.8], [0.3, 0.6]])
"""Scores of two arms whose means over five items are equal."""
F = np.array([[0.6, 0.5], [0.3, 0.9], [0.8, 0.2], [0.1, 0.6], [0.5, 0.3]])
UNKNOWN = np.array([[1, 1], [1, 0], [1, 1], [0, 1], [1, 1]], dtype=bool)
V = np.array([0.05, 0.2])


def rest(order: list[int], y: FloatArray = Y, unknown: np.ndarray = UNKNOWN) -> Rest:
    """The pool with its unknown items in some order."""
    known = np.where(unknown, 0.0, y).sum(axis=0)
    return Rest(len(y), known, known, F[order], unknown[order])


@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_over_all_orders_capital_is_1_on_average_at_the_edge_of_the_claim(
    margin: float, pair: tuple[int, int]
) -> None:
    """Exact: if i's total exceeds j's by just -margin * N, no bet gains or loses, at no moment."""
    i, j = pair
    y = Y.copy()
    y[:, j] += margin
    orders = list(itertools.permutations(range(5)))
    capital = np.zeros((5, GAPS.size))
    for order in orders:
        found = pool_evidence(rest(list(order), y), y[list(order)], y[list(order)], V, margin)
        capital += np.exp(found.log[:, i, j]) / len(orders)
    np.testing.assert_allclose(capital, 1.0, atol=1e-9)


def test_over_all_orders_capital_falls_below_1_where_the_claim_is_wrong_and_above_where_it_is_right() -> None:
    worse = Y - np.array([[0.15, 0.0]])
    orders = list(itertools.permutations(range(5)))
    against, for_ = 0.0, 0.0
    for order in orders:
        at = list(order)
        found = pool_evidence(rest(at, worse), worse[at], worse[at], V)
        against += float(np.exp(found.log[-2, 0, 1]).mean()) / len(orders)
        for_ += float(np.exp(found.log[-2, 1, 0]).mean()) / len(orders)
    assert against < 0.95
    assert for_ > 1.05


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_pool_evidence_against_a_loop(margin: float) -> None:
    order = [3, 0, 4, 1, 2]
    y, unknown, f = Y[order], UNKNOWN[order], F[order]
    high = y.copy()
    high[1, 1], low = 1.0, y.copy()
    low[1, 1] = 0.0  # a label that never came
    pool = rest(order)
    found = pool_evidence(pool, low[:4], high[:4], V, margin)
    for i, j in ((0, 1), (1, 0)):
        worst = max(
            (f[x, i] if unknown[x, i] else 0.0) + (1.0 - f[x, j] if unknown[x, j] else 0.0) for x in range(5)
        )
        log = [0.0] * len(GAPS)
        for t in range(4):
            left = [x for x in range(t, 5) if unknown[x, i] or unknown[x, j]]
            total = 0.0  # of low_i - high_j, known or predicted
            for x in range(5):
                seen = x < t
                for arm, sign, ends in ((i, 1.0, low), (j, -1.0, high)):
                    known = ends[x, arm] if seen or not unknown[x, arm] else f[x, arm]
                    total += sign * (Y[order][x, arm] if not unknown[x, arm] else known)
            if not (unknown[t, i] or unknown[t, j]):
                assert found.log[t, i, j] == pytest.approx(log)
                continue
            m = (-margin * 5 - total) / len(left)
            d = (low[t, i] - f[t, i] if unknown[t, i] else 0.0) - (
                high[t, j] - f[t, j] if unknown[t, j] else 0.0
            )
            v = sum(V[arm] * sum(unknown[x, arm] for x in left) / len(left) for arm in (i, j))
            for step, gap in enumerate(GAPS):
                g = gap * 5 / len(left)
                lam = min(g / (v + g * g), GAMMA / (m + worst))
                log[step] += math.log(1.0 + lam * (d - m))
            assert found.log[t, i, j] == pytest.approx(log)


def test_what_is_certain_is_what_no_completion_changes() -> None:
    """Brute force over all zeros and ones of what is not known yet."""
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(60):
        y = np.round(rng.random((4, 3)) * rng.choice([0.3, 1.0], 3), 1)
        unknown = rng.random((4, 3)) < 0.5
        known = np.where(unknown, 0.0, y).sum(axis=0)
        pool = Rest(4, known, known, np.full((4, 3), 0.5), unknown)
        n = int(rng.integers(1, 4))
        margin = float(rng.choice([0.0, 0.2]))
        found = pool_evidence(pool, y[:n], y[:n], np.full(3, 0.1), margin).certain[-1]
        open_ = unknown.copy()
        open_[:n] = False
        for i, j in itertools.permutations(range(3), 2):
            fixed = np.where(open_, 0.0, y).sum(axis=0)
            least = fixed[i] - fixed[j] - open_[:, j].sum()
            assert found[i, j] == (least > -4 * margin + 1e-9), (least, margin)
            seen += int(found[i, j])
        if not unknown[:n].any():
            np.testing.assert_array_equal(pool.certain(margin), found)
    assert seen > 20


def test_equal_totals_are_never_certain_to_differ() -> None:
    y = np.full((1000, 2), 0.1)
    pool = Rest(
        1000, y[::-1].sum(axis=0), y.cumsum(axis=0)[-1], np.zeros((0, 2)), np.zeros((0, 2), dtype=bool)
    )
    assert not pool.certain().any()
    ahead = np.array([1e-6, 0.0])
    more = Rest(1000, pool.low + ahead, pool.high + ahead, pool.prediction, pool.unknown)
    np.testing.assert_array_equal(more.certain(), [[False, True], [False, False]])


def test_no_score_on_any_item_left_can_ruin_a_bet() -> None:
    variance, m, worst = np.array(1e-9), np.array(0.3), np.array(1.1)
    bets = pool_bets(variance, np.array(4.0), m + worst)
    assert (1.0 - bets * (m + worst)).min() == pytest.approx(1.0 - GAMMA)
    far = pool_bets(np.array(0.5), np.array(2.0), np.array(1e-3))
    np.testing.assert_allclose(far, 2 * GAPS / (0.5 + 4 * GAPS**2))
    assert np.isfinite(pool_bets(variance, np.array(3.0), np.array(-0.2))).all()


def test_bounds_of_a_pool_are_attained_by_all_zeros_and_all_ones() -> None:
    pool = Rest(5, np.array([1.2, 0.0]), np.array([2.2, 0.0]), F, UNKNOWN)
    low, high = pool.bounds()
    np.testing.assert_allclose(low, [1.2 / 5, 0.0])
    np.testing.assert_allclose(high, [(2.2 + 4) / 5, 4 / 5])
    expected = [(1.7 + F[UNKNOWN[:, 0], 0].sum()) / 5, F[UNKNOWN[:, 1], 1].sum() / 5]
    np.testing.assert_allclose(pool.estimate, expected)


def means_of(order: list[int], n: int, grid: int = 9) -> PoolMeans:
    at = order
    means = PoolMeans(3, grid=grid)
    means.update(np.array([2, 0]), rest(at), Y[at][:n], Y[at][:n], V)
    return means


def test_over_all_orders_capital_is_1_on_average_at_the_true_mean() -> None:
    """Arm 2 is fed the first column, whose mean is .5, a candidate; both sides."""
    total = np.zeros((2, GAPS.size))
    orders = list(itertools.permutations(range(5)))
    for order in orders:
        total += np.exp(means_of(list(order), 5)._log[2, :, :, 4]) / len(orders)
    np.testing.assert_allclose(total, 1.0, atol=1e-9)


def test_pool_means_against_a_loop_and_capital_does_not_increase_in_the_candidate() -> None:
    """Of what is known one label, and of what is read another one, never came."""
    order = [2, 4, 0, 1, 3]
    ends = np.stack([Y[order], Y[order]])
    ends[:, 1, 0], ends[:, 4, 0] = [0.0, 1.0], [0.0, 1.0]
    assert UNKNOWN[order][1, 0]
    assert not UNKNOWN[order][4, 0]
    low, high = (np.where(UNKNOWN[order], 0.0, end).sum(axis=0) for end in ends)
    means = PoolMeans(3, grid=33)
    pool = Rest(5, low, high, F[order], UNKNOWN[order])
    means.update(np.array([2, 0]), pool, ends[0][:3], ends[1][:3], V)
    log = means._log[2]
    assert (np.diff(log, axis=2) <= 1e-9).all()
    assert (means._log[1] == 0.0).all()
    column, f = UNKNOWN[order][:, 0], F[order][:, 0]
    for side in (0, 1):
        score, guess = (ends[0][:, 0], f) if side == 0 else (1.0 - ends[1][:, 0], 1.0 - f)
        for c, candidate in enumerate(np.arange(33) / 32):
            expected = [0.0] * len(GAPS)
            for t in range(3):
                left = [x for x in range(t, 5) if column[x]]
                known = sum(score[x] if x < t or not column[x] else guess[x] for x in range(5))
                m = (5 * candidate - known) / len(left)
                room = m + max(guess[column])
                for step, gap in enumerate(GAPS):
                    g = gap * 5 / len(left)
                    lam = min(g / (V[0] + g * g), GAMMA / max(room, 1e-12))
                    expected[step] += math.log(max(1.0 + lam * (score[t] - guess[t] - m), 1e-12))
            np.testing.assert_allclose(log[side, :, c], expected, atol=1e-9)


def test_an_interval_is_the_last_candidate_rejected_on_either_side() -> None:
    means = PoolMeans(1, grid=5)
    assert means.interval(0, 0.05) == (0.0, 1.0)
    means._peak[0, 0] = [math.log(50.0), math.log(40.0), math.log(39.9), 0.0, 0.0]
    means._peak[0, 1] = [math.log(41.0), 0.0, 0.0, 0.0, 0.0]
    assert means.interval(0, 0.05) == (0.25, 1.0)
    means._peak[0, 1] = [math.log(41.0), math.log(41.0), 0.0, 0.0, 0.0]
    assert means.interval(0, 0.05) == (0.25, 0.75)
