"""Item means folded over phases: exact cases, and every outcome of a small run."""

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from evalbudget.repeats._objective import Objective
from evalbudget.repeats.phases._counts import Pool
from evalbudget.repeats.phases._spread import Scores, Spread
from evalbudget.statistics._phase_means import PhaseMeans, item_shares, phase_means

Phase = Sequence[Sequence[float]]
FIRST: Phase = [[7, 7], [1, 7], [3, 5]]


def _fold(*phases: Phase) -> PhaseMeans:
    rows = [(i, p, x) for p, phase in enumerate(phases) for i, own in enumerate(phase) for x in own]
    item, phase, value = (np.array(column) for column in zip(*rows, strict=True))
    return phase_means(item, phase.astype(float), value.astype(float), len(phases[0]))


@pytest.mark.parametrize(
    ("phases", "mean", "variance"),
    [
        pytest.param([FIRST], [7, 4, 4], [0, 9, 1], id="first phase"),
        pytest.param(
            [FIRST, [[7], [5, 1, 3], [5, 5]]], [7, 3.5, 4.5], [0, 9 / 4 + 9.2 / 36, 0.3125], id="two phases"
        ),
        pytest.param(
            [FIRST, [[], [5], [5]]], [7, 13 / 3, 13 / 3], [0, 4.074074, 0.518519], id="stopped in the head"
        ),
        pytest.param([FIRST, [[7], [5, 1], [5]]], [7, 3.6, 4.4], [0, 3.6, 0.466667], id="in the rest"),
        pytest.param([[[7, 7], [1], [3]]], [7, 1, 3], [0, 0, 0], id="in the second sweep"),
        pytest.param(
            [[[7, 3], [1, 7], []], [[7], [5], [2, 6]]], [6, 4.5, 4], [1.666667, 2.416667, 4], id="read late"
        ),
        pytest.param(
            [[[7, 3], [1, 7], []], [[7], [5], [2]]],
            [5.857143, 4.428571, 2],
            [1.795918, 3.061224, 1.666667],
            id="read late, once",
        ),
        pytest.param([[[1, 3], [2, 2], []], [[], [], [5]]], [2, 2, 5], [1, 0, 1], id="read late, alone"),
        pytest.param([[[1], [3]], [[2], [3]]], [1.5, 3], [0.1875, 0.0625], id="once and once more"),
    ],
)
def test_exact_cases(phases: list[Phase], mean: list[float], variance: list[float]) -> None:
    found = _fold(*phases)
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)
    np.testing.assert_allclose(found.variance, variance, atol=1e-6)


def test_items_without_a_reading_change_nothing() -> None:
    """Whoever reads a log may not know of items whose every call failed."""
    item, phase = np.array([0, 0, 1, 1, 0, 1, 1]), np.array([0.0, 0, 0, 0, 1, 1, 1])
    value = np.array([7.0, 3, 1, 7, 5, 1, 3])
    alone, among = (phase_means(item, phase, value, n) for n in (2, 20))
    np.testing.assert_array_equal(among.mean[:2], alone.mean)
    np.testing.assert_array_equal(among.share, alone.share)


def test_shares_make_the_means_and_add_up_to_one() -> None:
    item = np.array([0, 0, 1, 1, 2, 2, 0, 1, 1, 1, 2, 2])
    phase = np.repeat([0.0, 1.0], 6)
    value = np.array([7.0, 7, 1, 7, 3, 5, 7, 5, 1, 3, 5, 5])
    found = phase_means(item, phase, value, 4)
    np.testing.assert_allclose(np.bincount(item, found.share), 1.0)
    np.testing.assert_allclose(np.bincount(item, found.share * value), found.mean[:3])
    np.testing.assert_allclose(found.share[item == 1], [0.25, 0.25, 1 / 6, 1 / 6, 1 / 6])
    np.testing.assert_array_equal(item_shares(item, phase, 4), found.share)
    np.testing.assert_allclose(item_shares(item, None, 4)[item == 1], 0.2)
    assert np.isnan(found.mean[3])
    assert np.isnan(found.variance[3])


def test_a_part_counts_the_phases_in_which_nothing_of_it_was_read() -> None:
    found = phase_means(
        np.array([0, 0]), np.array([0.0, 2.0]), np.array([1.0, 3.0]), 1, sizes=(2.0, 2.0, 4.0)
    )
    assert found.share.tolist() == [0.5, 0.5]


def test_the_order_of_readings_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    item, phase, value = rng.integers(0, 5, 60), rng.integers(0, 3, 60).astype(float), rng.normal(size=60)
    turn = rng.permutation(60)
    one, other = (phase_means(item[t], phase[t], value[t], 5) for t in (np.arange(60), turn))
    np.testing.assert_allclose(one.mean, other.mean)
    np.testing.assert_allclose(one.variance, other.variance)
    np.testing.assert_allclose(one.share[turn], other.share)


def test_equal_readings_have_exactly_no_variance() -> None:
    item = np.arange(60) % 3
    found = phase_means(item, np.repeat([0.0, 1.0, 2.0], 20), np.full(60, 0.7), 3)
    assert (found.variance == 0.0).all()
    assert (found.mean == 0.7).all()


def test_many_phases_of_many_items_take_no_pass_over_all_of_them_each() -> None:
    item = np.arange(20_000)
    began = time.process_time()
    found = phase_means(item, np.arange(20_000.0) // 2, np.ones(20_000), 20_000)
    assert time.process_time() - began < 3.0  # half a second; with such passes ten times that
    assert (found.share == 1.0).all()


def test_one_reading_of_each_item_shows_no_variance() -> None:
    assert np.isnan(phase_means(np.arange(3), np.zeros(3), np.array([0.0, 1.0, 1.0]), 3).variance).all()


def test_wherever_it_stops_the_mean_is_unbiased_and_so_is_its_error_nearly() -> None:
    """Every outcome of two items, pass or fail, read 4 times in phase 0 and 10 times in phase 1.

    The second phase goes by the first one's scores, so that plain means of all readings would be biased.
    """
    p = np.array([0.5, 0.95])
    value, variance, claimed = (np.zeros(15) for _ in range(3))
    seen = set()
    for first in itertools.product([0, 1], repeat=4):
        begun = [[first[0], first[2]], [first[1], first[3]]]
        order = _second_phase(begun)
        seen.add(tuple(np.bincount(order).tolist()))
        for end, phases, chance in _stops(begun, order, p):
            found = _fold(*phases)
            value[end] += chance * found.mean.mean()
            variance[end] += chance * (found.mean.mean() - p.mean()) ** 2
            claimed[end] += chance * np.nan_to_num(found.variance).sum() / 4
    assert seen == {(3, 7), (5, 5), (7, 3)}
    ends = [4, 5, 7, 9]
    np.testing.assert_allclose(value[ends], p.mean(), atol=1e-12)
    np.testing.assert_allclose(variance[ends], [0.037188, 0.026771, 0.020285, 0.015732], atol=1e-6)
    np.testing.assert_allclose(claimed[ends], [0.037188, 0.026771, 0.020236, 0.015709], atol=1e-6)


def test_some_items_of_a_run_are_folded_as_in_the_whole_of_it() -> None:
    rng = np.random.default_rng(5)
    item = np.concatenate([np.tile(np.arange(6), 2), rng.integers(0, 6, 20), rng.integers(0, 3, 20)])
    phase, value = np.repeat([0.0, 1.0, 2.0], [12, 20, 20]), rng.normal(size=item.size)
    whole, some = phase_means(item, phase, value, 6), item < 3
    sizes = [12 / 6, 20 / 6, 20 / 6]
    part = phase_means(item[some], phase[some], value[some], 3, sizes)
    np.testing.assert_array_equal(part.mean, whole.mean[:3])
    np.testing.assert_array_equal(part.variance, whole.variance[:3])
    np.testing.assert_array_equal(item_shares(item[some], phase[some], 3, sizes), whole.share[some])
    alone = phase_means(item[some], phase[some], value[some], 3)
    assert (np.abs(alone.mean - whole.mean[:3]) > 1e-3).all()


def _second_phase(begun: Phase) -> list[int]:
    """The items of the second phase, in order, by a rule that goes by the first one's scores."""
    x = np.array([sum(own) for own in begun])
    spread = (x + 0.1) * (2 - x + 0.1) / 2.2**2
    pool = Pool(Spread(spread, spread**2, Scores.TWO_VALUES), np.full(2, 2), np.ones(2))
    counts = pool.counts(10, Objective.MEAN)
    assert counts is not None
    rest = sorted(((k - 0.5) / (c - 1), i) for i, c in enumerate(counts.tolist()) for k in range(1, c))
    return [0, 1, *(i for _, i in rest)]


def _stops(begun: Phase, order: list[int], p: np.ndarray) -> Iterator[tuple[int, list[Phase], float]]:
    """Every outcome up to some stops after phase 0, with its chance."""
    chance = np.prod([p[i] if x else 1 - p[i] for i, own in enumerate(begun) for x in own])
    for n in (0, 1, 3, 5):
        for outcome in itertools.product([0, 1], repeat=n):
            own = [[x for i, x in zip(order, outcome, strict=False) if i == item] for item in (0, 1)]
            likely = np.prod([p[i] if x else 1 - p[i] for i, x in zip(order, outcome, strict=False)])
            yield 4 + n, [begun, own] if n else [begun], float(chance * likely)
