from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.races.estimates.drawn import bernoulli, draw, with_failures

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimate import Coverage, Random, Validity
from evalbudget.races.estimates import benchmark_mean, paired_difference
from evalbudget.races.estimates._draws_for_sequences import of_model
from evalbudget.statistics._bounds import FloatArray, IntArray
from references.controlled import benchmark_mean_by
from references.without_replacement import without_replacement_intervals

P = np.random.default_rng(8).beta(0.6, 0.6, 80)
SCORES = bernoulli(P, 80, 9)


def refitted(seen: IntArray, scores: FloatArray) -> FloatArray:
    """Predictions that change with every batch."""
    return np.asarray(np.clip(P + 0.3 * (scores.mean() - 0.5 if scores.size else 0.0), 0, 1))


@pytest.mark.parametrize("n_anchors", [0, 5])
def test_without_predictions_it_is_the_plain_mean(n_anchors: int) -> None:
    draws = draw(SCORES, refitted, 30, n_anchors=n_anchors)
    estimate = benchmark_mean_by(draws, coefficient="zero")
    plain = (draws.known.sum() + draws.pool * draws.value.mean()) / 80
    assert estimate.value == pytest.approx(plain, abs=1e-12)
    s2 = draws.value.var(ddof=1)
    error = draws.pool / 80 * math.sqrt(s2 / 30 * (1 - 30 / draws.pool))
    assert estimate.standard_error == pytest.approx(error, abs=1e-12)
    if not n_anchors:
        low = without_replacement_intervals(draws.value, [30], [80], 0.9, grid=8193, dtype=np.float64)
        interval = estimate.confidence_interval(0.9)
        assert (interval.low, interval.high) == pytest.approx((low.low[0], low.high[0]), abs=0.003)


def test_with_frozen_predictions_it_is_the_difference_estimator() -> None:
    draws = draw(SCORES, P, 30, n_anchors=4)
    unseen = P.sum() - P[draws.known_item].sum()
    difference = (draws.known.sum() + unseen + draws.pool * (draws.value - draws.prediction).mean()) / 80
    assert benchmark_mean_by(draws, coefficient="one").value == pytest.approx(difference, abs=1e-12)


@pytest.mark.parametrize("coefficient", ["regression", "one", "zero"])
def test_value_against_a_naive_loop(coefficient: str) -> None:
    scores = with_failures(SCORES, 0.1, 4)
    draws = draw(scores, refitted, 41, batch=7, n_anchors=6)
    order = np.random.default_rng(0).permutation(80)
    rest = order[6:]
    lost = {int(j) for j in rest[:41] if math.isnan(scores[j])}
    n = draws.n_items - len(lost)
    past: list[tuple[float, float]] = []
    top = bottom = 0.0
    for t in range(41):
        j = int(rest[t])
        first = t - t % 7
        seen = order[: 6 + first]
        seen = seen[~np.isnan(scores[seen])]
        f = refitted(seen, scores[seen])
        if math.isnan(scores[j]):
            continue
        beta = {"one": 1.0, "zero": 0.0}.get(coefficient, 1.0)
        if coefficient == "regression" and past:
            s, g = np.array(past).T
            own = ((g - g.mean()) ** 2).sum()
            slope = ((s - s.mean()) * (g - g.mean())).sum() / own if own > 1e-9 else 1.0
            beta = float(np.clip((len(past) * slope + 8) / (len(past) + 8), 0, 1))
        left = [int(i) for i in rest[t:] if int(i) not in lost]
        theta = draws.known.sum() + sum(p[0] for p in past)
        theta += len(left) * (scores[j] - beta * (f[j] - f[rest[t:]].mean()))
        weight = 1 / (len(left) * (len(left) - 1))
        top, bottom = top + weight * theta / n, bottom + weight
        past.append((scores[j], f[j]))
    estimate = benchmark_mean_by(draws, coefficient=coefficient)  # type: ignore[arg-type]
    assert estimate.value == pytest.approx(top / bottom, abs=1e-10)
    assert estimate.details["failed"] == len(lost)
    assert f"{n} items without a failure" in estimate.target


def test_what_it_says_of_itself() -> None:
    estimate = benchmark_mean(draw(SCORES, P, 30))
    assert estimate.random == {Random.DRAWS}
    assert estimate.validity is Validity.ANYTIME
    assert estimate.coverage is Coverage.EACH
    assert not estimate.asymptotic
    assert (estimate.n, estimate.cost) == (30, 30.0)
    assert benchmark_mean(draw(SCORES, P, 30), simultaneous=2).coverage is Coverage.SIMULTANEOUS


def test_simultaneous_is_bonferroni() -> None:
    draws = draw(SCORES, P, 30)
    ten = benchmark_mean(draws, simultaneous=10).confidence_interval(0.9)
    one = benchmark_mean(draws).confidence_interval(0.99)
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


def test_exhausted_model_is_exact() -> None:
    scores = with_failures(SCORES, 0.1, 4)
    draws = draw(scores, refitted, 77, n_anchors=3)
    assert draws.exhausted
    estimate = benchmark_mean(draws)
    mean = np.nanmean(scores)
    interval = estimate.confidence_interval()
    assert (estimate.value, interval.low, interval.high) == pytest.approx((mean, mean, mean), abs=1e-12)
    assert estimate.standard_error == 0.0


def test_nothing_drawn() -> None:
    draws = draw(SCORES, P, 0, n_anchors=10)
    estimate = benchmark_mean(draws)
    assert math.isnan(estimate.value)
    interval = estimate.confidence_interval()
    assert interval.low == pytest.approx(draws.known.sum() / 80, abs=1e-9)
    assert interval.high == pytest.approx((draws.known.sum() + 70) / 80, abs=1e-9)


def test_declared_range_maps_everything() -> None:
    draws = draw(SCORES, P, 30)
    unit, ratings = benchmark_mean(draws), benchmark_mean(draws, bounds=(1, 5))
    assert ratings.value == pytest.approx(1 + 4 * unit.value)
    assert ratings.standard_error == pytest.approx(4 * unit.standard_error)
    assert ratings.confidence_interval().low == pytest.approx(1 + 4 * unit.confidence_interval().low)


def test_range_of_predictions_covers_one_that_stands_out() -> None:
    for usual, extreme in ((0.1, 0.9), (0.9, 0.1)):
        f = np.full(80, usual)
        order = np.random.default_rng(5).permutation(80)
        f[order[60]] = extreme
        pool = of_model(draw(SCORES, f, 80, batch=8, order=order))
        for t in range(80):
            assert pool.low[t] <= f[order[t:]].min()
            assert f[order[t:]].max() <= pool.high[t]


def test_paired_difference_against_differences() -> None:
    other = bernoulli(0.3, 80, 2)
    order = np.random.default_rng(1).permutation(80)
    a = draw(SCORES, 0.5 * np.ones(80), 50, order=order, n_anchors=4)
    b = draw(other, 0.2 * np.ones(80), 32, order=order, n_anchors=4)
    estimate = paired_difference(a, b)
    d = SCORES[order[4:36]] - other[order[4:36]]
    known = (SCORES - other)[order[:4]].sum()
    assert estimate.value == pytest.approx((known + 76 * d.mean()) / 80)
    assert estimate.standard_error == pytest.approx(
        76 / 80 * d.std(ddof=1) / math.sqrt(32) * math.sqrt(44 / 76)
    )
    assert estimate.n == 36
    back = paired_difference(b, a)
    assert back.value == pytest.approx(-estimate.value)
    one, two = estimate.confidence_interval(), back.confidence_interval()
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=0.002)


def test_paired_difference_leaves_failures_out() -> None:
    order = np.random.default_rng(1).permutation(80)
    x, y = with_failures(SCORES, 0.2, 1), with_failures(bernoulli(0.4, 80, 5), 0.2, 2)
    a, b = draw(x, P, 75, order=order, n_anchors=5), draw(y, P, 75, order=order, n_anchors=5)
    estimate = paired_difference(a, b)
    assert estimate.value == pytest.approx(np.nanmean(x - y))
    assert estimate.confidence_interval().half_width == pytest.approx(0.0)
    assert "neither" in estimate.target


def test_identical_models_never_differ() -> None:
    order = np.random.default_rng(1).permutation(80)
    a = draw(SCORES, P, 40, order=order)
    estimate = paired_difference(a, a)
    assert estimate.value == pytest.approx(0.0)
    interval = estimate.confidence_interval()
    assert interval.low <= 0 <= interval.high


def test_models_with_orders_of_their_own_cannot_be_paired() -> None:
    a, b = draw(SCORES, P, 40, seed=1), draw(SCORES, P, 40, seed=2)
    with pytest.raises(InvalidInferenceError, match="share one order"):
        paired_difference(a, b)
    with pytest.raises(InvalidInferenceError, match="same pool"):
        paired_difference(a, draw(SCORES, P, 40, seed=1, n_anchors=2))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"n_items": 20}, "at most once"),
        ({"batch": np.arange(30) * 2}, "without gaps"),
        ({"prediction": np.zeros(3)}, "one of each per draw"),
        ({"unseen_prediction_sum": np.zeros(7)}, "one per batch"),
        ({"value": np.full(30, 3.0)}, "outside"),
    ],
)
def test_bad_draws(change: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidInputError, match=what):
        replace(draw(SCORES, P, 30), **change)  # type: ignore[arg-type]


def test_bad_arguments() -> None:
    draws = draw(SCORES, P, 30)
    with pytest.raises(InvalidInputError, match="simultaneous is 0"):
        benchmark_mean(draws, simultaneous=0)
    with pytest.raises(InvalidInputError, match="level"):
        benchmark_mean(draws).confidence_interval(1.0)
