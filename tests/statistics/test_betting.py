from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import DTypeLike
from tests.statistics import oracles

from evalbudget.errors import InvalidInputError
from evalbudget.statistics import betting_intervals
from references.sequences import WatchedSequences

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=0, max_size=14)


def feed(rows: list[list[float]], dtype: DTypeLike = np.float32) -> WatchedSequences:
    sequences = WatchedSequences(len(rows), dtype=dtype)
    for t in range(max(map(len, rows), default=0)):
        index = [i for i, row in enumerate(rows) if len(row) > t]
        sequences.update(np.array(index), np.array([rows[i][t] for i in index]))
    return sequences


@settings(max_examples=25, deadline=None)
@given(SCORES, st.sampled_from([0.5, 0.9, 0.99]))
def test_intervals_against_brute_force(x: list[float], level: float) -> None:
    found = betting_intervals(x, [len(x)], level, grid=33, dtype=np.float64)
    low, high = oracles.betting(x, 1 - level, 33)
    assert found.low[0] == pytest.approx(min(low, high), abs=1e-12) or low > high
    assert found.high[0] == pytest.approx(max(low, high), abs=1e-12) or low > high


def test_long_sequence_against_brute_force() -> None:
    x = (np.random.default_rng(1).random(60) < 0.8).astype(float).tolist()
    found = betting_intervals(x, [60], 0.95, grid=65, dtype=np.float64)
    assert (found.low[0], found.high[0]) == pytest.approx(oracles.betting(x, 0.05, 65), abs=1e-12)


def test_capital_does_not_increase_in_the_candidate_against_theory() -> None:
    # the shape that makes the grid conservative
    rng = np.random.default_rng(2)
    sequences = feed([rng.beta(0.3, 0.6, 40).tolist() for _ in range(20)], dtype=np.float64)
    assert (np.diff(sequences._peak, axis=2) <= 1e-12 * sequences._peak[:, :, :-1]).all()


@pytest.mark.parametrize(
    ("n", "pinned", "other"), [(50, 0.40527, 0.485), (200, 0.19941, 0.240), (1000, 0.09219, 0.121)]
)
def test_width_on_coin_flips_against_itself(n: int, pinned: float, other: float) -> None:
    x = (np.random.default_rng(0).random((60, n)) < 0.5).astype(float)
    width = float(betting_intervals(x.ravel(), [n] * 60).width.mean())
    assert width == pytest.approx(pinned, abs=5e-4)
    assert width < other  # predictable plug-in empirical Bernstein


def test_incremental_against_batch_and_any_interleaving() -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 30, 70)
    rows = [rng.random(n).tolist() for n in lengths]
    batch = betting_intervals(np.concatenate(rows), lengths, 0.9, simultaneous=True)
    together = feed(rows).intervals(0.9, simultaneous=True)
    one_by_one = WatchedSequences(70)
    for i in rng.permutation(np.repeat(np.arange(70), lengths)):
        one_by_one.update([i], [rows[i][one_by_one.n[i]]])
    alone = one_by_one.intervals(0.9, simultaneous=True)
    for other in (together, alone):
        np.testing.assert_array_equal(batch.low, other.low)
        np.testing.assert_array_equal(batch.high, other.high)


def test_single_precision_against_double() -> None:
    x = (np.random.default_rng(4).random((8, 3000)) < 0.3).astype(float)
    single = betting_intervals(x.ravel(), [3000] * 8)
    double = betting_intervals(x.ravel(), [3000] * 8, dtype=np.float64)
    assert np.abs(single.low - double.low).max() <= 1 / 512
    assert np.abs(single.high - double.high).max() <= 1 / 512
    assert (single.low != double.low).mean() <= 0.25


def test_intervals_only_shrink() -> None:
    sequences = WatchedSequences(5)
    low, high = np.zeros(5), np.ones(5)
    for row in np.random.default_rng(5).random((60, 5)):
        sequences.update(np.arange(5), row)
        now = sequences.intervals()
        assert (now.low >= low).all()
        assert (now.high <= high).all()
        low, high = now.low, now.high


def test_declared_range_only_scales() -> None:
    x = np.random.default_rng(6).integers(0, 5, 50) / 4
    unit, rating = betting_intervals(x, [50]), betting_intervals(4 * x - 1, [50], bounds=(-1, 3))
    np.testing.assert_allclose(rating.low, 4 * unit.low - 1)
    np.testing.assert_allclose(rating.high, 4 * unit.high - 1)


def test_nothing_read_is_the_whole_range() -> None:
    found = betting_intervals([], [0, 0], bounds=(0, 4))
    assert found.low.tolist() == [0, 0]
    assert found.high.tolist() == [4, 4]
    assert betting_intervals([], []).low.shape == (0,)
    assert np.isnan(WatchedSequences(1).mean).all()


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_equal_scores_narrow_like_log_n_over_n_around_the_score(value: float) -> None:
    widths = []
    for n in (10, 100, 1000):
        found = betting_intervals([value] * n, [n])
        assert found.contains(value).all()
        widths.append(float(found.width[0]))
    assert widths[0] > widths[1] > widths[2] > 0
    assert widths[2] < 0.02


def test_a_drifting_mean_gives_the_contradiction_not_a_crash() -> None:
    found = betting_intervals([1.0] * 400 + [0.0] * 4000, [4400])
    assert 0 <= found.low[0] < found.high[0] <= 1
    assert found.contains(400 / 4400).all()


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.5])
def test_unusable_scores_are_named(bad: float) -> None:
    sequences = WatchedSequences(2)
    with pytest.raises(InvalidInputError, match=r"score .* is outside bounds \(0, 1\)"):
        sequences.update([0], [bad])
    assert sequences.n.tolist() == [0, 0]
    with pytest.raises(InvalidInputError, match="bounds"):
        betting_intervals([0.5, bad], [2])


def test_unusable_calls() -> None:
    with pytest.raises(InvalidInputError, match="twice"):
        WatchedSequences(2).update([1, 1], [0.0, 1.0])
    with pytest.raises(InvalidInputError, match="there are 2 sequences"):
        WatchedSequences(2).update([2], [0.0])
    with pytest.raises(InvalidInputError, match="one value per index"):
        WatchedSequences(2).update([0, 1], [0.0])
    with pytest.raises(InvalidInputError, match="add up"):
        betting_intervals([0.0, 1.0], [1])
    with pytest.raises(InvalidInputError, match="not a range"):
        WatchedSequences(2, bounds=(1, 1))
    with pytest.raises(InvalidInputError, match="level"):
        WatchedSequences(2).intervals(1.0)
    with pytest.raises(InvalidInputError, match="candidates"):
        WatchedSequences(2, grid=2)
