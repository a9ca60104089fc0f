from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics import oracles

from evalbudget.errors import InvalidInputError
from evalbudget.statistics import betting_intervals
from evalbudget.statistics._anytime_betting import RHO
from evalbudget.statistics._pool_mean_sequence import late_bets
from references.empirical_bernstein import empirical_bernstein_intervals
from references.without_replacement import WithoutReplacementSequences, without_replacement_intervals


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=1, max_size=12), st.integers(0, 10))
def test_intervals_against_brute_force(x: list[float], unread: int) -> None:
    pool = len(x) + unread
    found = without_replacement_intervals(x, [len(x)], [pool], 0.9, grid=33, dtype=np.float64)
    if unread:
        low, high = oracles.betting(x, 0.1, 33, pool)
        if low <= high:
            assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=1e-12)
    else:
        assert found.low[0] == found.high[0] == pytest.approx(np.mean(x))


def test_exhausted_pool_is_known_exactly() -> None:
    x = np.random.default_rng(0).integers(0, 5, 37).astype(float)
    for found in (
        without_replacement_intervals(x, [37], [37], bounds=(0, 4)),
        empirical_bernstein_intervals(x, [37], pool_sizes=[37], bounds=(0, 4)),
    ):
        assert found.width[0] == 0
        assert found.low[0] == pytest.approx(x.mean())


def test_logically_impossible_means_are_cut_off() -> None:
    found = without_replacement_intervals([1.0] * 9, [9], [10], level=0.05)
    assert found.low[0] == pytest.approx(0.9, abs=1e-12) or found.low[0] > 0.9
    assert found.high[0] == 1.0


def test_a_huge_pool_against_independent_readings() -> None:
    x = np.random.default_rng(1).random(80)
    finite, infinite = without_replacement_intervals(x, [80], [10**9]), betting_intervals(x, [80])
    np.testing.assert_allclose(finite.low, infinite.low, atol=1 / 512)
    np.testing.assert_allclose(finite.high, infinite.high, atol=1 / 512)


def test_incremental_against_batch() -> None:
    rng = np.random.default_rng(2)
    pools = rng.integers(1, 40, 50)
    lengths = rng.integers(0, pools + 1)
    rows = [rng.random(n) for n in lengths]
    batch = without_replacement_intervals(np.concatenate(rows), lengths, pools)
    sequences = WithoutReplacementSequences(pools)
    for i in rng.permutation(np.repeat(np.arange(50), lengths)):
        sequences.update([i], [rows[i][sequences.n[i]]])
    np.testing.assert_array_equal(batch.low, sequences.intervals().low)
    np.testing.assert_array_equal(batch.high, sequences.intervals().high)


def test_half_a_pool_is_narrower_than_independent_readings() -> None:
    x = (np.random.default_rng(3).random((40, 200)) < 0.5).astype(float)
    finite = without_replacement_intervals(x.ravel(), [200] * 40, [400] * 40).width.mean()
    assert finite == pytest.approx(0.14092, abs=5e-4)
    assert finite < 0.8 * betting_intervals(x.ravel(), [200] * 40).width.mean()


def test_stakes_grow_from_those_without_a_pool_as_it_empties() -> None:
    variance = np.full(4, 0.2)
    bets = late_bets(variance, np.array([1.0, 1.5, 4.0, 20.0]))
    np.testing.assert_allclose(bets[:, 0], RHO / np.sqrt(0.2))
    assert (np.diff(bets[1:, :3], axis=1) > 0).all()
    # at the gap .5 * sd * 20 = 4.47
    assert bets[0, 3] == pytest.approx(4.4721 / (0.2 + 4.4721**2 - 0.05), rel=1e-4)


def test_reading_beyond_the_pool_is_refused() -> None:
    sequences = WithoutReplacementSequences([1])
    sequences.update([0], [1.0])
    with pytest.raises(InvalidInputError, match="pool of 1 items is read 2 times"):
        sequences.update([0], [1.0])
    with pytest.raises(InvalidInputError, match="pool of 1 items is read 2 times"):
        without_replacement_intervals([1.0, 1.0], [2], [1])
    with pytest.raises(InvalidInputError, match="sizes of 1 or more"):
        WithoutReplacementSequences([0])
    with pytest.raises(InvalidInputError, match="one size per sequence"):
        without_replacement_intervals([1.0], [1], [1, 2])
