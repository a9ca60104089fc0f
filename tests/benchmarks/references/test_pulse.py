from __future__ import annotations

import math

import numpy as np
import pytest
from tests.races.estimates.drawn import bernoulli, draw

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Validity
from references.controlled import benchmark_mean_by
from references.pulse import Corrections, freedman_half_width, pulse_mean, pulse_weighted

P = np.random.default_rng(8).beta(0.6, 0.6, 80)
SCORES = bernoulli(P, 80, 9)


def naive_thetas(order: list[int], b: int, t: int, n_anchors: int) -> tuple[list[float], list[float]]:
    thetas: list[float] = []
    lambdas: list[float] = []
    gaps: list[float] = []
    for start in range(0, t, b):
        batch = order[n_anchors + start : n_anchors + min(start + b, t)]
        unseen = order[n_anchors + start :]
        F, Phi = sum(P[j] for j in unseen), sum(P[j] ** 2 for j in unseen)
        z = sum(gaps) / len(gaps) if gaps else 0.0
        lam = min(1.0, max(0.0, 1 - F * z / (len(unseen) * Phi)))
        pi = len(batch) / len(unseen)
        theta = sum(SCORES[j] for j in order[: n_anchors + start]) + lam * F
        theta += sum((SCORES[j] - lam * P[j]) / pi for j in batch)
        thetas.append(theta / 80)
        lambdas.append(lam)
        gaps.append(sum((P[j] - SCORES[j]) / pi for j in batch))
    return thetas, lambdas


@pytest.mark.parametrize(("b", "t", "n_anchors"), [(8, 40, 0), (8, 37, 5), (1, 10, 2)])
def test_literal_against_a_naive_loop(b: int, t: int, n_anchors: int) -> None:
    draws = draw(SCORES, P, t, batch=b, n_anchors=n_anchors, seed=3)
    order = np.random.default_rng(3).permutation(80).tolist()
    thetas, lambdas = naive_thetas(order, b, t, n_anchors)
    steps = Corrections.of(draws)
    np.testing.assert_allclose(steps.theta, thetas)
    np.testing.assert_allclose(steps.coefficient, lambdas)
    assert pulse_mean(draws).value == pytest.approx(sum(thetas) / len(thetas))
    left = [80 - n_anchors - start for start in range(0, t, b)]
    size = [min(b, t - start) for start in range(0, t, b)]
    weights = [s / (u * (u - s)) for s, u in zip(size, left, strict=True)]
    weighted = sum(w * x for w, x in zip(weights, thetas, strict=True)) / sum(weights)
    assert pulse_weighted(draws)[0] == pytest.approx(weighted)


def test_constant_predictions_with_precision_weights_are_the_plain_mean() -> None:
    # with a constant prediction lambda changes nothing, and b draws weigh like b single ones
    draws = draw(SCORES, np.full(80, 0.5), 40, batch=8)
    value, error = pulse_weighted(draws)
    plain = benchmark_mean_by(draws, coefficient="zero")
    assert value == pytest.approx(plain.value, abs=1e-12)
    assert error == pytest.approx(plain.standard_error, rel=0.2)
    assert pulse_mean(draws).value != pytest.approx(plain.value, abs=1e-4)


def test_freedman_solves_its_bound() -> None:
    for variance, K in ((0.01, 5), (0.0, 1), (0.002, 400)):
        eps = freedman_half_width(variance, K, 0.95)
        bound = 2 * math.exp(-(eps**2) / (2 * (variance / K + 2 * eps / (3 * K))))
        assert bound == pytest.approx(0.05)
    with pytest.raises(InvalidInputError, match="at least 1"):
        freedman_half_width(0.1, 0, 0.95)


def test_what_the_literal_estimate_claims() -> None:
    estimate = pulse_mean(draw(SCORES, P, 40, batch=8))
    assert estimate.validity is Validity.FIXED_N
    assert estimate.asymptotic
    assert "literal" in estimate.method


def test_ends_of_the_scale() -> None:
    done = pulse_mean(draw(SCORES, P, 80, batch=16))
    interval = done.confidence_interval()
    assert (done.value, interval.low, interval.high) == pytest.approx((SCORES.mean(),) * 3)
    assert done.standard_error == 0.0
    nothing = pulse_mean(draw(SCORES, P, 0), bounds=(0, 10))
    assert math.isnan(nothing.value)
    assert nothing.confidence_interval().high == 10.0
    # one batch: its interval is the whole range, never an error
    first = pulse_mean(draw(np.ones(80), P, 4, batch=4)).confidence_interval()
    assert (first.low, first.high) == (0.0, 1.0)


def test_a_batch_that_failed_altogether_is_left_out() -> None:
    order = np.random.default_rng(0).permutation(80)
    scores = SCORES.copy()
    scores[order[8:16]] = np.nan
    draws = draw(scores, P, 40, batch=8)
    steps = Corrections.of(draws)
    assert steps.theta.size == 4
    assert steps.left.tolist() == [72.0, 64.0, 56.0, 48.0]


@pytest.mark.parametrize("b", [1, 7, 40])
@pytest.mark.parametrize("predictions", ["good", "opposite", "ones"])
def test_range_of_a_batch_is_that_of_a_single_draw(b: int, predictions: str) -> None:
    # what Freedman's bound needs, and it is stated for single draws
    f = {"good": P, "opposite": 1 - P, "ones": np.ones(80)}[predictions]
    largest = 0.0
    for seed in range(40):
        scores = bernoulli(0.9 if seed % 2 else 0.1, 80, seed)
        steps = Corrections.of(draw(scores, f, 79, batch=b, seed=seed))
        limit = (1 + steps.coefficient) * steps.left / 80
        assert (np.abs(steps.theta - scores.mean()) <= limit + 1e-12).all()
        largest = max(largest, float(np.abs(steps.theta - scores.mean()).max()))
    # but a batch comes nowhere near it
    assert largest < {1: 2.0, 7: 1.0, 40: 0.3}[b]
