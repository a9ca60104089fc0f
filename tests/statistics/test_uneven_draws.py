from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student
from tests.statistics.uneven import drawn, every

from evalbudget.races._draws import Chances
from evalbudget.statistics._uneven_draws import UnevenDraws, WeightedMean, weighted_mean

POOLS = {
    "mixed": np.array([1.0, 0.0, 0.5, 1.0, 0.2]),
    "equal": np.full(5, 0.3),
    "ties": np.array([1.0, 1.0, 0.0, 0.0, 0.0]),
    "failures": np.array([1.0, np.nan, 0.5, 0.0, np.nan]),
    "one score": np.array([np.nan, 0.7, np.nan, np.nan]),
}


@pytest.mark.parametrize("pool", POOLS)
def test_each_draw_is_unbiased_and_the_weighted_sum_a_martingale(pool: str) -> None:
    scores = POOLS[pool]
    truth = float(np.nanmean(scores))
    for n in range(1, scores.size):
        plain = weighted = total = 0.0
        for draws, chance in every(scores, n):
            gap = draws.a - draws.b * truth
            total += chance
            plain += chance * gap[-1]
            weighted += chance * float((gap / draws.spread).sum())
        assert total == pytest.approx(1.0)
        assert plain == pytest.approx(0.0, abs=1e-12)
        assert weighted == pytest.approx(0.0, abs=1e-9)


def test_the_expected_variance_is_the_variance_where_scores_are_as_predicted() -> None:
    # over passes and failures drawn from f, of the first draw: by its definition
    f = np.array([0.2, 0.5, 0.9])
    q = np.array([0.5, 0.2, 0.3])
    first = second = third = 0.0
    for k in range(8):
        y = np.array([k >> i & 1 for i in range(3)], dtype=float)
        world = float(np.prod(np.where(y > 0, f, 1.0 - f)))
        gap = f.sum() + (y - f) / q - y.sum()
        first += world * float(q @ gap)
        second += world * float(q @ gap**2)
        third += world * float(q @ ((y - f) / q) ** 3)
    chances = Chances.of(f, q, np.array([1, 0]))
    assert first == pytest.approx(0.0)
    assert chances.variance[0] == pytest.approx(second)
    assert chances.skewness[0] == pytest.approx(third)


def test_chances_of_a_batch_are_those_of_one_draw_after_another() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.uniform(0.05, 0.95, 9), rng.dirichlet(np.ones(9))
    order = rng.permutation(9)
    chances = Chances.of(p, q, order)
    for t in range(9):
        left = order[t:]
        own = q[left] / q[left].sum()
        noise = p[left] * (1.0 - p[left])
        assert chances.propensity[t] == pytest.approx(own[0])
        assert chances.unread_sum[t] == pytest.approx(p[left].sum())
        assert chances.variance[t] == pytest.approx((noise / own - noise).sum(), abs=1e-9)
        assert chances.skewness[t] == pytest.approx((noise * (1.0 - 2.0 * p[left]) / own**2).sum())
        assert chances.least[t] <= (-p[left] / own).min() + 1e-9
        assert chances.most[t] >= ((1.0 - p[left]) / own).max() - 1e-9
    assert chances.propensity[-1] == pytest.approx(1.0)
    assert chances.variance[-1] == pytest.approx(0.0, abs=1e-9)


def test_chances_of_batches_are_joined_and_cut() -> None:
    p, q = np.full(4, 0.5), np.full(4, 0.25)
    two = [Chances.of(p, q, np.array([0, 1])), Chances.of(p[:2], 2.0 * q[:2], np.array([1]))]
    joined = Chances.joined(two, 3)
    assert joined.propensity == pytest.approx([1 / 4, 1 / 3, 1 / 2])
    assert Chances.joined(two, 1).propensity.size == 1
    assert Chances.joined([], 0).prediction.shape == (0,)


def alike(scores: np.ndarray, f: float, t: int) -> UnevenDraws:
    """Equal probabilities and one prediction for all."""
    n = scores.size
    chances = Chances.of(np.full(n, f), np.full(n, 1.0 / n), np.arange(n))
    return UnevenDraws(
        pool=n,
        value=scores[:t],
        prediction=chances.prediction[:t],
        unread_sum=chances.unread_sum[:t],
        propensity=chances.propensity[:t],
        variance=chances.variance[:t],
        skewness=chances.skewness[:t],
        least=chances.least[:t],
        most=chances.most[:t],
    )


@pytest.mark.parametrize("f", [0.1, 0.5, 0.8])
def test_items_that_are_all_alike_give_the_plain_mean(f: float) -> None:
    scores = np.random.default_rng(2).random(30)
    found = weighted_mean(alike(scores, f, 12))
    assert found.value == pytest.approx(scores[:12].mean())
    # expected variance f (1 - f), seen what was seen, with the factor of the finite pool
    seen = float(((scores[:12] - scores[:12].mean()) ** 2).sum())
    assert found.error**2 <= (8.0 * f * (1.0 - f) + 1.5 * seen) / 19.0 / 12.0 * (1.0 - 12.0 / 30.0) * 1.1


def test_the_error_by_its_definition() -> None:
    draws, _ = drawn(POOLS["mixed"], [2, 4, 0])
    found = weighted_mean(draws)
    weight = 1.0 / draws.variance
    z = draws.a / 5.0
    value = float(weight @ z / weight.sum())
    seen = float((25.0 * (z - value) ** 2 * weight).sum())
    assert found.value == pytest.approx(value)
    assert found.error == pytest.approx(np.sqrt((8.0 + seen) / 10.0 / weight.sum()) / 5.0)
    assert found.degrees == 10.0


def test_margins_without_skewness_are_students() -> None:
    low, high = WeightedMean(0.5, 0.1, 12.0, 0.0).margins(0.9)
    assert low == high == pytest.approx(0.1 * student.ppf(0.95, 12))


@pytest.mark.parametrize("skewness", [-0.8, -0.1, 0.1, 0.8])
def test_margins_solve_halls_equation(skewness: float) -> None:
    low, high = WeightedMean(0.5, 1.0, 30.0, skewness).margins(0.95)
    quantile = student.ppf(0.975, 30)
    for T, x in ((low, quantile), (-high, -quantile)):
        assert T + skewness * T**2 / 3 + skewness**2 * T**3 / 27 + skewness / 6 == pytest.approx(x)
    # values that now and then come out far too high: the mean may lie far above, not far below
    assert (high > low) == (skewness > 0)


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_read_to_its_end_is_exact(pool: str) -> None:
    scores = POOLS[pool]
    draws, _ = drawn(scores, list(range(scores.size)))
    found = weighted_mean(draws)
    assert found.value == pytest.approx(np.nanmean(scores))
    assert found.error == 0.0
    assert found.margins(0.95) == (0.0, 0.0)


def test_no_score_is_no_estimate() -> None:
    for order in ([], [1], [1, 4]):
        draws, _ = drawn(POOLS["failures"], order)
        assert np.isnan(weighted_mean(draws).value)
    one, _ = drawn(POOLS["mixed"], [0])
    assert np.isfinite(weighted_mean(one).value)
    assert np.isnan(weighted_mean(one).error)


def test_scores_turned_round_give_the_same_turned_round() -> None:
    scores = np.random.default_rng(3).integers(0, 2, 40).astype(float)
    p = np.random.default_rng(4).uniform(0.1, 0.9, 40)
    order = np.random.default_rng(5).permutation(40)[:15]
    found = []
    for y, f in ((scores, p), (1.0 - scores, 1.0 - p)):
        chances = Chances.of(f, np.sqrt(f * (1 - f)) / np.sqrt(f * (1 - f)).sum(), order)
        draws = UnevenDraws(
            40,
            y[order],
            chances.prediction,
            chances.unread_sum,
            chances.propensity,
            chances.variance,
            chances.skewness,
            chances.least,
            chances.most,
        )
        found.append(weighted_mean(draws))
    there, back = found
    assert there.value == pytest.approx(1.0 - back.value)
    assert there.error == pytest.approx(back.error)
    assert there.margins(0.95) == pytest.approx(back.margins(0.95)[::-1])
