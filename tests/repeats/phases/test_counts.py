"""How phases end, what readings say of items, and how many readings each item gets: small exact cases."""

import math

import numpy as np
import pytest

from evalbudget.repeats._objective import Objective
from evalbudget.repeats.phases._counts import Pool, equal_counts, phase_ends, rest_in_order
from evalbudget.repeats.phases._spread import Scores, Spread, of_levels, of_two_values, spread_of

LEVELS = np.array([-1.0, -1 / 3, 1 / 3, 1.0])  # of 1, 3, 5, 7


@pytest.mark.parametrize(
    ("total", "items", "ends"),
    [
        (30, 3, [6, 12, 24, 30]),
        (60, 3, [6, 12, 24, 48, 60]),
        (150, 3, [6, 12, 24, 48, 96, 150]),
        (54, 3, [6, 12, 24, 48, 54]),
        (51, 3, [6, 12, 24, 51]),  # the last phase would have been too short
        (7, 3, [6, 7]),
        (5, 3, [5]),
        (1000, 100, [200, 400, 800, 1000]),
        (2050, 100, [200, 400, 800, 1600, 2050]),
    ],
)
def test_phases_double_and_a_short_last_one_is_joined(total: int, items: int, ends: list[int]) -> None:
    assert phase_ends(total, items) == ends


class TestOfLevels:
    def test_three_items_whose_readings_agree_only_by_chance(self) -> None:
        found = of_levels(np.array([[0, 0, 0, 2], [1, 0, 0, 1], [0, 1, 1, 0]], dtype=float), LEVELS)
        assert found is not None
        np.testing.assert_allclose(found.variance, [0.88573, 0.561906, 0.112286], atol=1e-6)
        np.testing.assert_allclose(found.fourth, [1.188757, 1.29919, 0.01365], atol=1e-6)
        for objective in (Objective.MEAN, Objective.WORST_ITEM):
            assert _counts(found, 2, 6, objective) == [3, 2, 1]
            assert _counts(found, 2, 12, objective) == [6, 4, 2]

    def test_six_items(self) -> None:
        counts = [[0, 0, 0, 2], [0, 0, 0, 2], [2, 0, 0, 0], [1, 1, 0, 0], [0, 0, 2, 0], [0, 1, 0, 1]]
        found = of_levels(np.array(counts, dtype=float), LEVELS)
        assert found is not None
        np.testing.assert_allclose(
            found.variance, [0.184189, 0.184189, 0.070517, 0.475549, 0.000412, 0.639377], atol=1e-6
        )
        np.testing.assert_allclose(
            found.fourth, [0.226103, 0.226103, 0.018484, 0.782967, 0.00053, 0.652739], atol=1e-6
        )
        assert _counts(found, 2, 12, Objective.MEAN) == [2, 2, 1, 3, 1, 3]
        assert _counts(found, 2, 12, Objective.WORST_ITEM) == [2, 2, 1, 3, 1, 3]
        assert _counts(found, 2, 24, Objective.MEAN) == [4, 4, 2, 6, 1, 7]
        assert _counts(found, 2, 24, Objective.WORST_ITEM) == [4, 4, 1, 7, 1, 7]

    def test_where_nothing_is_to_be_gained_for_the_worst_item_counts_are_equal(self) -> None:
        counts = [[0, 0, 4]] * 3 + [[0, 1, 3], [4, 0, 0], [2, 0, 2], [1, 2, 1], [0, 4, 0]]
        found = of_levels(np.array(counts, dtype=float), np.array([-1.0, 0.0, 1.0]))
        assert found is not None
        np.testing.assert_allclose(
            found.variance,
            [0.170815, 0.170815, 0.170815, 0.290609, 0.362978, 0.95953, 0.544029, 0.128528],
            atol=1e-6,
        )
        assert _counts(found, 4, 32, Objective.MEAN) == [3, 3, 3, 4, 4, 7, 5, 3]
        assert _counts(found, 4, 32, Objective.WORST_ITEM) is None

    def test_an_item_that_was_never_read_is_like_the_pool(self) -> None:
        counts = np.array([[2, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
        found = of_levels(counts, LEVELS)
        assert found is not None
        g = counts.sum(axis=0) / 4
        assert found.variance[2] == pytest.approx(g @ LEVELS**2 - (g @ LEVELS) ** 2)


class TestOfTwoValues:
    def test_four_items(self) -> None:
        found = of_two_values(np.full(4, 2), np.array([2, 2, 1, 0]))
        assert found is not None  # on [-1, 1]: four times that of shares
        np.testing.assert_allclose(found.variance / 4, [0.089342, 0.089342, 0.188088, 0.133229], atol=1e-6)
        assert _counts(found, 2, 8, Objective.MEAN) == [2, 2, 2, 2]
        assert _counts(found, 2, 12, Objective.MEAN) == [3, 2, 4, 3]
        assert _counts(found, 2, 20, Objective.MEAN) == [4, 4, 7, 5]

    def test_against_the_beta_posterior_by_numerical_integration(self) -> None:
        n, x = np.array([2, 3, 4, 4]), np.array([1, 3, 0, 2])
        found = of_two_values(n, x)
        assert found is not None
        q = np.mean(x * (n - x) / (n * (n - 1)))
        m = np.mean(x / n)
        r = q / (m * (1 - m))
        s = r / (1 - r)
        p = (np.arange(200_000) + 0.5) / 200_000
        for i in range(4):
            density = p ** (s * m + x[i] - 1) * (1 - p) ** (s * (1 - m) + n[i] - x[i] - 1)
            expected = (density * p * (1 - p)).sum() / density.sum()
            assert found.variance[i] / 4 == pytest.approx(expected, rel=1e-3)


class TestSpreadOf:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([0, 1, 0, 0, 1, 1], Scores.TWO_VALUES),
            ([1, 2, 3, 3, 2, 2, 1, 1], Scores.LEVELS),
            ([0.1, 0.2, 0.3, 0.4, 0.5, 0.7], Scores.NUMBERS),
        ],
    )
    def test_the_kind_of_scores_follows_from_what_was_read(self, values: list[float], kind: Scores) -> None:
        found = spread_of(np.arange(len(values)) // 2, np.array(values, dtype=float), len(values) // 2)
        assert found is not None
        assert found.scores is kind

    def test_more_levels_than_a_table_should_have_are_numbers(self) -> None:
        values = np.random.default_rng(0).integers(0, 40, 400) * 1.0
        found = spread_of(np.arange(400) % 50, values, 50, Scores.LEVELS)
        assert found is not None
        assert np.unique(values).size > 32
        assert found.scores is Scores.NUMBERS

    @pytest.mark.parametrize("values", [[], [0.7] * 6, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0], [1, 1, 2, 2, 3, 3]])
    def test_where_no_two_readings_of_an_item_differ_there_is_nothing_to_go_by(
        self, values: list[float]
    ) -> None:
        item = np.arange(len(values)) // 2
        for scores in (None, *Scores):
            assert spread_of(item, np.array(values, dtype=float), 3, scores) is None

    @pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
    @pytest.mark.parametrize("offset", [-0.5, 0.0])
    def test_neither_unit_nor_origin_of_the_scores_matters(self, scale: float, offset: float) -> None:
        item = np.arange(24) % 6
        values = np.random.default_rng(0).integers(0, 5, 24) / 4
        one, other = spread_of(item, values, 6), spread_of(item, (values + offset) * scale, 6)
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(one.variance, other.variance, rtol=1e-9)

    def test_of_numbers_shrinks_sample_variances_to_the_pools(self) -> None:
        values = np.array([0.0, 1.0, 0.4, 0.6, 0.45, 0.55])
        found = spread_of(np.arange(6) // 2, values, 3)
        assert found is not None
        own = np.array([2.0, 0.08, 0.02])  # on [-1, 1]
        assert ((own.min() < found.variance) & (found.variance < own.max())).all()
        assert np.argsort(found.variance).tolist() == [2, 1, 0]
        assert found.bonus == pytest.approx(math.sqrt(math.log(3) * own.mean()))


class TestPrices:
    def test_where_the_noise_is_the_same_cheap_items_are_read_more_often(self) -> None:
        price = np.array([0.2, 0.2, 0.2, 3.4])
        pool = Pool(_same(4), np.full(4, 2), np.ones(4), price)
        for objective in Objective:
            found = pool.counts(40, objective)
            assert found is not None
            assert found[0] > found[3]
            assert abs(float(price @ found) - 40) <= price.max()

    @pytest.mark.parametrize("objective", [Objective.MEAN, Objective.WORST_ITEM])
    def test_where_dear_items_are_the_noisy_ones_money_is_spread_evenly(self, objective: Objective) -> None:
        price = np.array([0.5, 1.0, 1.0, 1.5])
        spread = Spread(price**2, price**4, Scores.LEVELS)
        assert Pool(spread, np.full(4, 2), np.ones(4), price).counts(40, objective) is None


class TestOrder:
    def test_equal_counts_differ_by_one_at_most(self) -> None:
        found = equal_counts(17, 5, np.random.default_rng(0))
        assert sorted(found) == [3, 3, 3, 4, 4]

    def test_the_rest_has_of_each_item_what_the_head_left(self) -> None:
        counts = np.array([1, 3, 2, 7])
        found = rest_in_order(counts, np.random.default_rng(0))
        assert np.bincount(found, minlength=4).tolist() == [0, 2, 1, 6]

    def test_wherever_it_ends_each_item_had_its_share(self) -> None:
        counts = np.array([41, 21, 11])
        found = rest_in_order(counts, np.random.default_rng(1))
        for end in range(found.size):
            had = np.bincount(found[:end], minlength=3)
            assert (np.abs(had - (counts - 1) * end / found.size) <= 2).all()


def test_mse_goes_by_all_readings_and_mean_by_those_of_the_phase() -> None:
    pool = Pool(_same(3), np.array([2, 4, 9]), np.ones(3))
    assert (pool.counts(15, Objective.MSE) == [8, 6, 1]).all()
    assert (pool.counts(15, Objective.MEAN) == [5, 5, 5]).all()


def test_weights_of_the_benchmark_mean_count_squared() -> None:
    found = Pool(_same(2), np.full(2, 2), np.array([3.0, 1.0])).counts(40, Objective.MEAN)
    assert found is not None
    assert found[0] / found[1] == pytest.approx(3.0, rel=0.1)


def _same(n: int) -> Spread:
    return Spread(np.ones(n), np.ones(n), Scores.LEVELS)


def _counts(spread: Spread, read: int, size: int, objective: Objective) -> list[int] | None:
    n = spread.variance.size
    found = Pool(spread, np.full(n, read), np.ones(n)).counts(size, objective)
    return None if found is None else found.tolist()
