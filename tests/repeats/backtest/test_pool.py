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


def drawn(pool: Pool, seed: int, item: int, n: int = 64) -> np.ndarray:
    """The first readings of an item."""
    return Draws(pool, seed).of(np.full(n, item), np.arange(n))


def test_draws_against_the_hash_written_out(small: RecordedScores) -> None:
    pool = Pool.of(small, 1, 1, min_repeats=2)  # item 3 has four repeats, with gaps
    for item in range(12):
        found = drawn(pool, 7, item, 201).tolist()
        assert found == [reading(pool, 7, item, epoch) for epoch in range(201)]


def test_draws_do_not_depend_on_what_else_is_there(small: RecordedScores) -> None:
    whole = Pool.of(small, 0, 0, min_repeats=1)
    kept = np.flatnonzero(small.counts[0, :, 0] >= 2)
    part = Pool.of(small.select("a", "r").part(items=kept), 0, 0, min_repeats=2)
    assert len(part.items) == len(whole.items) - 1
    for item in range(len(part.items)):
        assert drawn(whole, 3, item).tolist() == drawn(part, 3, item).tolist()
    other_source = Pool.of(small, 0, 0, min_repeats=1, source=1)
    for other in (drawn(whole, 4, 0), drawn(other_source, 3, 0)):
        assert other.tolist() != drawn(whole, 3, 0).tolist()


def test_draws_are_uniform_over_recorded_repeats_against_theory() -> None:
    values = np.arange(8, dtype=np.float64)
    recorded = RecordedScores(
        np.tile(values, (1, 50, 1, 1)), ("m",), tuple(str(i) for i in range(50)), ("r",)
    )
    pool = Pool.of(recorded, 0, 0, min_repeats=2)
    readings_ = np.array([drawn(pool, 0, item) for item in range(50)])
    observed = np.bincount(readings_.astype(int).ravel(), minlength=8)
    expected = readings_.size / 8
    assert ((observed - expected) ** 2 / expected).sum() < 24.3  # chi-square, 7 degrees of freedom, p = .001
    pairs = np.bincount((readings_[:, :-1] * 8 + readings_[:, 1:]).astype(int).ravel(), minlength=64)
    assert ((pairs - pairs.mean()) ** 2 / pairs.mean()).sum() < 103.5  # 63 degrees of freedom
    across = np.bincount((readings_[:-1] * 8 + readings_[1:]).astype(int).ravel(), minlength=64)
    assert ((across - across.mean()) ** 2 / across.mean()).sum() < 103.5
