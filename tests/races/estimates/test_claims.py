"""Coverage at every stopping time: an intersection over time that holds the mean at the end always held it.

Unbiasedness and variances of the averages of theta_t.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant
from tests.races.estimates.drawn import Predictor, bernoulli, draw, with_failures

from evalbudget.estimate import Estimate
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates import (
    benchmark_mean,
    model_means,
    model_ranks,
    paired_difference,
)
from evalbudget.races.prediction import FactorModel
from evalbudget.statistics._bounds import FloatArray, IntArray
from references.controlled import benchmark_mean_by
from references.pulse import pulse_mean, pulse_weighted

pytestmark = pytest.mark.claim
N = 240
P = np.random.default_rng(1).beta(0.5, 0.5, N)


def misses(estimate: Estimate, truth: float, level: float = 0.95) -> int:
    interval = estimate.confidence_interval(level)
    return int(not interval.low - 1e-9 <= truth <= interval.high + 1e-9)


def own_answers(seen: IntArray, scores: FloatArray) -> FloatArray:
    """Predictions that follow the model's own answers, and wildly so."""
    base = scores.mean() if scores.size else 0.5
    return np.asarray(np.clip(P + 2.0 * (base - P.mean()), 0, 1))


PREDICTIONS: dict[str, FloatArray | Predictor] = {
    "perfect": P,
    "constant": np.full(N, 0.5),
    "useless": np.random.default_rng(2).random(N),
    "adversarial": 1 - P,
    "refitted": own_answers,
}


@pytest.mark.parametrize(
    ("predictions", "failing", "expected"),
    [
        ("perfect", 0.0, 3),
        variant("constant", 0.0, 3),
        variant("useless", 0.0, 3),
        ("adversarial", 0.0, 4),
        ("refitted", 0.0, 4),
        variant("perfect", 0.2, 2),
        ("refitted", 0.2, 2),
    ],
)
def test_coverage_at_every_time_against_theory(predictions: str, failing: float, expected: int) -> None:
    R = replications(80, 10_000)
    scores = bernoulli(P, N, 3)
    if failing:
        # easy items fail more often: the draws that remain are not a sample of all items
        scores = with_failures(np.where(P > 0.6, with_failures(scores, 0.5, 5), scores), failing / 2, 4)
    failed = 0
    for k in range(R):
        draws = draw(scores, PREDICTIONS[predictions], N - 13, n_anchors=6, seed=k)
        failed += misses(benchmark_mean(draws), float(np.nanmean(scores)))
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


@pytest.mark.parametrize(
    ("sequence", "p", "expected"),
    [
        ("betting", 0.5, 3),
        variant("betting", 0.97, 1),
        ("empirical-bernstein", 0.5, 0),
        variant("empirical-bernstein", 0.97, 0),
    ],
)
def test_coverage_of_both_sequences_against_theory(sequence: str, p: float, expected: int) -> None:
    R = replications(80, 10_000)
    scores, f = bernoulli(p, N, 3), np.full(N, p)
    estimates = [benchmark_mean_by(draw(scores, f, 200, seed=k), sequence=sequence) for k in range(R)]  # type: ignore[arg-type]
    failed = sum(misses(e, scores.mean()) for e in estimates)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


@pytest.mark.parametrize(
    ("predictions", "expected"), [variant("perfect", 1), variant("adversarial", 0), ("refitted", 0)]
)
def test_coverage_of_equal_scores_against_theory(predictions: str, expected: int) -> None:
    # a model that fails, passes or half-passes everything, while predictions say otherwise
    R = replications(18, 4000)
    failed = 0
    for k in range(R):
        value = (0.0, 0.5, 1.0)[k % 3]
        draws = draw(np.full(N, value), PREDICTIONS[predictions], 200, seed=k)
        failed += misses(benchmark_mean(draws), value)
        assert not misses(benchmark_mean_by(draws, coefficient="zero"), value, 0.5)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


def test_paired_difference_of_tied_models_against_theory() -> None:
    R = replications(80, 10_000)
    rng = np.random.default_rng(6)
    a = bernoulli(P, N, 3)
    # the same mean on other items
    b = a[np.argsort(P + rng.normal(0, 0.1, N))]
    failed = 0
    for k in range(R):
        order = np.random.default_rng(k).permutation(N)
        one = draw(a, own_answers, 200, order=order, batch=8)
        two = draw(b, P, 230, order=order, batch=16)
        failed += misses(paired_difference(one, two), 0.0)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, 3)


def test_simultaneous_after_an_adaptive_race_against_theory() -> None:
    # one shared order; the next batch goes to the largest upper end, and the race stops when it looks best
    R = replications(24, 1500)
    models = [bernoulli(p, N, 20 + k) for k, p in enumerate((0.5, 0.55, 0.6, 1.0, 0.0))]
    models.append(models[2].copy())
    truth = [float(m.mean()) for m in models]
    failed = wrong_winner_interval = 0
    for k in range(R):
        order = np.random.default_rng(k).permutation(N)
        drawn = [16] * len(models)
        for _ in range(25):
            index = [
                np.inf if t >= N else models[i][order[:t]].mean() + np.sqrt(0.3 / t)
                for i, t in enumerate(drawn)
            ]
            chosen = int(np.argmax([x if x < np.inf else -np.inf for x in index]))
            drawn[chosen] = min(N, drawn[chosen] + 16)
        draws: list[ModelDraws] = [
            draw(m, own_answers, t, order=order) for m, t in zip(models, drawn, strict=True)
        ]
        means = model_means(draws)
        failed += any(misses(e, m) for e, m in zip(means, truth, strict=True))
        ranks = model_ranks(means)
        w = int(np.argmax([mean.value for mean in means]))
        wrong_winner_interval += not ranks.low[w] - 1e-9 <= truth[w] <= ranks.high[w] + 1e-9
    binomial_claim(failed, R, at_most=0.05)
    assert wrong_winner_interval <= failed
    pinned(failed, 0)


def test_real_factors_against_theory() -> None:
    # history, training, refits after every batch: the whole chain
    R = replications(60, 2000)
    rng = np.random.default_rng(7)
    level, easy = rng.normal(0.5, 1, 25), rng.normal(0, 1.5, N)
    history = (rng.random((24, N)) < 1 / (1 + np.exp(-(level[:24, None] + easy)))).astype(float)
    scores = (rng.random(N) < 1 / (1 + np.exp(-(level[24] + easy)))).astype(float)
    model = FactorModel.train(history, rank=1, ridge=3.0)

    def predict(seen: IntArray, values: FloatArray) -> FloatArray:
        return model.predict(model.fit(seen, values))

    widths = []
    failed = 0
    for k in range(R):
        draws = draw(scores, predict, 150, n_anchors=8, seed=k, batch=32)
        estimate = benchmark_mean(draws)
        failed += misses(estimate, scores.mean())
        plain = benchmark_mean_by(draws, coefficient="zero").confidence_interval()
        widths.append(estimate.confidence_interval().half_width / plain.half_width)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, 0)
    assert np.mean(widths) < 0.95


@pytest.mark.parametrize(("b", "p", "expected"), [variant(1, 0.5, 0), (1, 0.97, 0), variant(16, 0.5, 0)])
def test_literal_interval_at_a_fixed_number_of_batches(b: int, p: float, expected: int) -> None:
    R = replications(72, 10_000)
    scores, f = bernoulli(p, N, 3), np.full(N, p)
    failed = sum(misses(pulse_mean(draw(scores, f, 96, batch=b, seed=k)), scores.mean()) for k in range(R))
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


@pytest.mark.parametrize(
    "predictions", ["perfect", variant("constant"), variant("useless"), "adversarial", "refitted"]
)
def test_averages_are_unbiased(predictions: str) -> None:
    R = replications(240, 40_000)
    scores = bernoulli(P, N, 3)
    values = np.empty((R, 3))
    for k in range(R):
        draws = draw(scores, PREDICTIONS[predictions], 64, n_anchors=4, seed=k)
        values[k] = pulse_mean(draws).value, pulse_weighted(draws)[0], benchmark_mean(draws).value
    # anchors are part of the random order here, so the mean over orders is the benchmark mean too
    z = (values.mean(axis=0) - scores.mean()) / (values.std(axis=0, ddof=1) / np.sqrt(R))
    assert (np.abs(z) < 4.0).all(), z


def test_precision_weights_restore_the_finite_population_factor() -> None:
    R = replications(240, 40_000)
    scores = bernoulli(0.5, N, 3)
    flat = np.full(N, 0.5)
    values = np.empty((R, 2))
    t, b = 160, 16
    for k in range(R):
        draws = draw(scores, flat, t, batch=b, seed=k)
        values[k] = pulse_mean(draws).value, pulse_weighted(draws)[0]
    s2 = scores.var(ddof=1)
    left = N - np.arange(0, t, b)
    equal = (left * (left - b) / b).sum() * s2 / N**2 / (t / b) ** 2
    weighted = s2 / t * (1 - t / N)
    variances = values.var(axis=0, ddof=1)
    # a sample variance has a relative error of sqrt(2 / R)
    np.testing.assert_allclose(variances, [equal, weighted], rtol=5 * np.sqrt(2 / R))
    assert equal / weighted == pytest.approx(1.44)


@pytest.mark.parametrize("t", [64, 256, 1024, 4096])
def test_betting_is_three_times_shorter_than_freedman(t: int) -> None:
    rng = np.random.default_rng(11)
    p = rng.beta(0.4, 0.4, 12_000)
    scores = bernoulli(p, 12_000, 12)
    ratios = []
    for k in range(3):
        draws = draw(scores, p, t, batch=64, seed=k)
        literal = pulse_mean(draws).confidence_interval().half_width
        ratios.append(literal / benchmark_mean(draws).confidence_interval().half_width)
    assert np.mean(ratios) >= 3.0
