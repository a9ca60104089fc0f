from __future__ import annotations

import numpy as np
import pytest
from tests.statistics.test_uneven_draws import POOLS, alike
from tests.statistics.uneven import Floats, drawn, every

from evalbudget.statistics._anytime_betting import RHO
from evalbudget.statistics._uneven_draws import UnevenDraws
from evalbudget.statistics._uneven_sequence import _Bets, uneven_betting


def naive_capital(draws: UnevenDraws, m: float) -> Floats:
    """Capital against a mean of at most m after each draw, one draw after another."""
    total, failed, surprise = 0.0, 0, 0.0
    weights = against = 0.0
    capital, path = np.ones(RHO.size), []
    gap_of_first = np.sqrt(draws.variance[0])
    for t in range(draws.value.size):
        y, f, q, v = (x[t] for x in (draws.value, draws.prediction, draws.propensity, draws.variance))
        known = total + draws.unread_sum[t]
        room = m * (draws.pool - failed) - known - draws.least[t]
        g = RHO * gap_of_first
        stake = np.minimum(g / ((8.0 + surprise) / (8.0 + t) * v + g * g), 0.9 / room)
        b = draws.pool - failed - (1.0 / q if np.isnan(y) else 0.0)
        a = known + ((0.0 if np.isnan(y) else y) - f) / q
        capital = capital * (1.0 + stake * (a - b * m))
        path.append(capital.mean())
        weights, against = weights + b / v, against + a / v
        guess = min(max(against / weights, 0.0), 1.0) if weights > 0 else 0.0
        surprise += (a - b * guess) ** 2 / v
        total, failed = total + (0.0 if np.isnan(y) else y), failed + int(np.isnan(y))
    return np.array(path)


@pytest.mark.parametrize("pool", POOLS)
def test_against_one_draw_after_another(pool: str) -> None:
    for draws, _ in list(every(POOLS[pool], POOLS[pool].size - 1))[::7]:
        if draws.failed.any():
            continue
        for m in (0.35, 0.5, 0.8):
            found = _Bets.upwards(draws).peak(np.array([m]))[0]
            if (m * (draws.pool - draws.failed_before) - draws.known - draws.least > 1e-9).all():
                assert found == pytest.approx(naive_capital(draws, m).max())


@pytest.mark.parametrize("pool", POOLS)
def test_the_capital_against_the_truth_is_fair(pool: str) -> None:
    # over all orders, with their probabilities
    scores = POOLS[pool]
    truth = float(np.nanmean(scores))
    for n in range(1, scores.size):
        for side, mean in ((_Bets.upwards, truth), (_Bets.downwards, 1.0 - truth)):
            expected = 0.0
            for draws, chance in every(scores, n):
                factors = side(draws)._factors(np.array(mean), slice(None))
                assert (factors > 0.0).all()
                expected += chance * float(factors.prod(axis=1).mean())
            assert expected == pytest.approx(1.0)


@pytest.mark.parametrize("pool", POOLS)
def test_the_capital_falls_as_the_candidate_rises(pool: str) -> None:
    candidates = np.linspace(0.0, 1.0, 101)
    for draws, _ in list(every(POOLS[pool], 3))[::5]:
        for side in (_Bets.upwards, _Bets.downwards):
            assert (np.diff(side(draws).peak(candidates)) <= 1e-9).all()


@pytest.mark.parametrize("pool", POOLS)
def test_failed_draws_count_as_the_least_up_to_a_candidate(pool: str) -> None:
    fine = np.linspace(0.0, 1.0, 2001)
    for draws, _ in list(every(POOLS[pool], 3))[::3]:
        for bets in (_Bets.upwards(draws), _Bets.downwards(draws)):
            for k, i in enumerate(bets.failed.tolist()):
                first = max(bets.limit, bets.least[i] / bets.size[i])
                for m in (0.3, 0.6, 0.95):
                    between = fine[(fine >= first) & (fine <= max(m, first))]
                    grid = np.concatenate([[first], between, [max(m, first)]])
                    lowest = bets._factors(grid[:, None, None], np.array([i])).min(axis=0)[:, 0]
                    found = bets._of_failed(np.array([[[m]]]))[0, :, k]
                    assert found == pytest.approx(lowest, abs=1e-3)
                    assert (found <= lowest + 1e-12).all()


@pytest.mark.parametrize("pool", POOLS)
def test_every_order_of_a_tiny_pool_holds_its_mean(pool: str) -> None:
    scores = POOLS[pool]
    truth = float(np.nanmean(scores))
    for n in range(scores.size + 1):
        missed = 0.0
        for draws, chance in every(scores, n):
            low, high = uneven_betting(draws, 0.2)
            missed += chance * (not low - 1e-12 <= truth <= high + 1e-12)
        assert missed <= 0.2


def test_a_pool_read_to_its_end_has_no_width() -> None:
    for scores in POOLS.values():
        draws, _ = drawn(scores, list(range(scores.size)))
        assert uneven_betting(draws, 0.05) == pytest.approx((np.nanmean(scores),) * 2)


def test_nothing_read_and_everything_failed() -> None:
    nothing, _ = drawn(POOLS["mixed"], [])
    assert uneven_betting(nothing, 0.05) == (0.0, 1.0)
    failed, _ = drawn(np.full(3, np.nan), [0, 1, 2])
    assert np.isnan(uneven_betting(failed, 0.05)).all()
    some, _ = drawn(POOLS["failures"], [1, 4])
    low, high = uneven_betting(some, 0.05)
    assert (low, high) == pytest.approx((0.0, 1.0))


def test_more_draws_never_widen_it() -> None:
    scores = np.random.default_rng(7).random(60)
    before = (0.0, 1.0)
    for t in range(1, 61, 3):
        low, high = uneven_betting(alike(scores, 0.5, t), 0.05)
        assert low >= before[0] - 2**-15
        assert high <= before[1] + 2**-15
        before = (low, high)


def test_less_error_is_a_wider_interval() -> None:
    scores = np.random.default_rng(8).random(200)
    found = [uneven_betting(alike(scores, 0.5, 80), alpha) for alpha in (0.2, 0.05, 0.001)]
    assert found[0][0] > found[1][0] > found[2][0]
    assert found[0][1] < found[1][1] < found[2][1]


def test_scores_turned_round_turn_the_interval_round() -> None:
    scores = np.random.default_rng(9).random(100)
    low, high = uneven_betting(alike(scores, 0.3, 40), 0.05)
    back = uneven_betting(alike(1.0 - scores, 0.7, 40), 0.05)
    assert (1.0 - high, 1.0 - low) == pytest.approx(back, abs=2**-15)
