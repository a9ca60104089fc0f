from __future__ import annotations

import hashlib

import numpy as np
import pytest

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.repeats.backtest._pool import Draws, Pool, pools_of

MASK = 2**64 - 1


def mix(state: int) -> int:
    """SplitMix64 as published, in plain integers."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def reading(pool: Pool, seed: int, item: int, epoch: int) -> float:
    """One draw, written out."""
    name = "\0".join(("0", pool.model, pool.rater, pool.items[item])).encode()
    key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little")
    bits = mix((mix(key ^ mix(seed)) + epoch * 0x9E3779B97F4A7C15) & MASK) >> 32
    return float(pool.values[item, (bits * int(pool.counts[item])) >> 32])


def test_pools_keep_items_with_enough_repeats(small: RecordedScores) -> None:
    first, second, third, fourth = pools_of([small], model=None, rater=None, min_repeats=5)
    assert (first.model, first.rater, len(first.items), first.dropped, first.unrecorded) == (
        "a",
        "r",
        10,
        1,
        1,
    )
    assert (second.model, second.rater, len(second.items)) == ("a", "s", 12)
    assert (third.dropped, fourth.dropped, fourth.unrecorded) == (0, 1, 0)
    np.testing.assert_allclose(first.means, small.scores[0, :10, 0].mean(axis=1))
    np.testing.assert_allclose(first.variances, small.scores[0, :10, 0].var(axis=1), rtol=1e-6)


def test_pools_by_name(small: RecordedScores) -> None:
    (only,) = pools_of([small], model="b", rater="s", min_repeats=2)
    assert str(only) == "model 'b', rater 's'"
    assert len(pools_of([small, small], model=None, rater="s", min_repeats=2)) == 4
    with pytest.raises(UnknownNameError, match=r"unknown model 'B'\. Did you mean 'b'"):
        pools_of([small], model="B", rater=None, min_repeats=2)
    with pytest.raises(InvalidInputError, match=r"no item has 7 recorded repeats.*most in the file is 6"):
        pools_of([small], model=None, rater=None, min_repeats=7)
    with pytest.raises(InvalidInputError, match="min_repeats is 0"):
        pools_of([small], model=None, rater=None, min_repeats=0)


def test_draws_against_the_hash_written_out(small: RecordedScores) -> None:
    pool = Pool.of(small, 1, 1, min_repeats=2)  # item 3 has four repeats, with gaps
    draws = Draws(pool, seed=7, readings=60)
    for item in range(12):
        for epoch in range(5):
            assert draws.values[item][epoch] == reading(pool, 7, item, epoch)
    assert draws.further(3, 200) == reading(pool, 7, 3, 200)
    assert draws.values[3][:201] == [reading(pool, 7, 3, epoch) for epoch in range(201)]


def test_draws_do_not_depend_on_what_else_is_there(small: RecordedScores) -> None:
    whole = Pool.of(small, 0, 0, min_repeats=1)
    kept = np.flatnonzero(small.counts[0, :, 0] >= 2)
    part = Pool.of(small.select("a", "r").part(items=kept), 0, 0, min_repeats=2)
    assert len(part.items) == len(whole.items) - 1
    many, few = Draws(whole, 3, 10_000), Draws(part, 3, 1)
    for item in range(len(part.items)):
        few.further(item, 63)
        assert many.values[item][:64] == few.values[item][:64]
    other_seed, other_source = (
        Draws(whole, 4, 10_000),
        Draws(Pool.of(small, 0, 0, min_repeats=1, source=1), 3, 10_000),
    )
    assert other_seed.values != many.values
    assert other_source.values != many.values


def test_draws_are_uniform_over_recorded_repeats_against_theory() -> None:
    values = np.arange(8, dtype=np.float64)
    recorded = RecordedScores(
        np.tile(values, (1, 50, 1, 1)), ("m",), tuple(str(i) for i in range(50)), ("r",)
    )
    draws = Draws(Pool.of(recorded, 0, 0, min_repeats=2), seed=0, readings=50 * 64)
    drawn = np.array(draws.values)
    observed = np.bincount(drawn.astype(int).ravel(), minlength=8)
    expected = drawn.size / 8
    assert ((observed - expected) ** 2 / expected).sum() < 24.3  # chi-square, 7 degrees of freedom, p = .001
    pairs = np.bincount((drawn[:, :-1] * 8 + drawn[:, 1:]).astype(int).ravel(), minlength=64)
    assert ((pairs - pairs.mean()) ** 2 / pairs.mean()).sum() < 103.5  # 63 degrees of freedom
    across = np.bincount((drawn[:-1] * 8 + drawn[1:]).astype(int).ravel(), minlength=64)
    assert ((across - across.mean()) ** 2 / across.mean()).sum() < 103.5
