from __future__ import annotations

import numpy as np
import pytest
from tests.races.estimates.drawn import bernoulli, draw

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Coverage
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates import (
    benchmark_mean,
    differences_from,
    model_means,
    model_ranks,
    paired_difference,
)


def race(means: list[float], n_drawn: list[int], seed: int = 0) -> list[ModelDraws]:
    order = np.random.default_rng(seed).permutation(400)
    return [
        draw(bernoulli(p, 400, 10 + k), np.full(400, 0.5), t, order=order)
        for k, (p, t) in enumerate(zip(means, n_drawn, strict=True))
    ]


def test_intervals_share_the_error() -> None:
    draws = race([0.9, 0.5, 0.1, 0.5], [200] * 4)
    means = model_means(draws)
    assert [m.coverage for m in means] == [Coverage.SIMULTANEOUS] * 4
    for d, m in zip(draws, means, strict=True):
        ours, alone = m.confidence_interval(0.9), benchmark_mean(d).confidence_interval(0.975)
        assert (ours.low, ours.high) == pytest.approx((alone.low, alone.high))


def test_ranks_against_counting() -> None:
    ranks = model_ranks(model_means(race([0.9, 0.5, 0.1, 0.5], [300, 200, 200, 250])))
    for i in range(4):
        above = sum(ranks.low[j] > ranks.high[i] for j in range(4))
        below = sum(ranks.high[j] < ranks.low[i] for j in range(4))
        assert (ranks.best[i], ranks.worst[i]) == (1 + above, 4 - below)
    assert ranks.best.tolist() == [1, 2, 4, 2]
    assert ranks.worst.tolist() == [1, 3, 4, 3]


def test_ties_stay_ties() -> None:
    draws = race([0.5, 0.5], [100, 400])
    same = [draws[1], draws[1], draws[0]]
    ranks = model_ranks(model_means(same))
    assert ranks.best.tolist() == [1, 1, 1]
    assert ranks.worst.tolist() == [3, 3, 3]
    # exhausted and exactly equal: they still share the first rank
    assert model_ranks(model_means(same[:2])).best.tolist() == [1, 1]


def test_a_model_without_draws_may_have_any_rank() -> None:
    ranks = model_ranks(model_means(race([0.5, 0.9], [100, 0])))
    assert (ranks.best[1], ranks.worst[1]) == (1, 2)


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match="no models"):
        model_means([])
    with pytest.raises(InvalidInputError, match="level"):
        model_ranks(model_means(race([0.5], [10])), 95)


def test_differences_share_the_error_over_all_pairs() -> None:
    draws = race([0.9, 0.5, 0.1, 0.5], [200] * 4)
    for d, difference in zip(draws, differences_from(draws, 1), strict=True):
        ours = difference.confidence_interval(0.9)
        alone = paired_difference(draws[1], d).confidence_interval(1 - 0.1 / 6)
        assert (ours.low, ours.high) == pytest.approx((alone.low, alone.high))
    with pytest.raises(InvalidInputError, match="reference 4"):
        differences_from(draws, 4)
    assert differences_from(draws[:1], 0)[0].value == pytest.approx(0.0)


def test_pairing_tells_alike_models_apart_sooner() -> None:
    rng = np.random.default_rng(3)
    order = rng.permutation(400)
    a = bernoulli(0.6, 400, 1)
    b = np.where(rng.random(400) < 0.12, 0.0, a)
    draws = [draw(x, np.full(400, 0.5), 250, order=order) for x in (a, b)]
    assert model_ranks(model_means(draws)).best.tolist() == [1, 1]
    assert differences_from(draws, 0)[1].confidence_interval().low > 0
