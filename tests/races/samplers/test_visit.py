"""visit: items drawn by what is least certain, with the probabilities that it says."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget import Design
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.races.estimates import (
    as_sample,
    benchmark_mean,
    differences_from,
    model_means,
    possible_winners,
)
from evalbudget.races.estimates._draws_for_sequences import of_uneven
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import Visit
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._uneven_draws import weighted_mean
from evalbudget.testing import play

N = 120
EASY = np.linspace(-3.5, 3.5, N)


def answers(shifts: FloatArray, seed: int, easiness: FloatArray = EASY) -> FloatArray:
    chance = 1.0 / (1.0 + np.exp(-(easiness + shifts[:, None])))
    return (np.random.default_rng(seed).random(chance.shape) < chance).astype(float)


def trained(easiness: FloatArray = EASY, models: int = 24) -> FactorModel:
    return FactorModel.train(answers(np.linspace(-1.5, 1.5, models), 11, easiness), rank=0, ridge=1.0)


HISTORY = trained()
WORLDS = {
    "whole": HISTORY,
    "none": None,
    "permuted": trained(np.random.default_rng(1).permutation(EASY)),
    "inverted": trained(EASY[::-1]),
    "five models": trained(models=5),
}


def design(n_models: int = 1, n_items: int = N) -> Design:
    return Design(items=tuple(map(str, range(n_items))), models=tuple(f"m{k}" for k in range(n_models)))


def visit(scores: FloatArray, count: int | None = None, **options: object) -> Visit:
    """After ``count`` scores of each model."""
    sampler = Visit(design(*scores.shape), **options)  # type: ignore[arg-type]
    left = scores.size if count is None else count * len(scores)
    while left and (cells := sampler.next_cells(left)) is not None:
        sampler.learn(cells, scores[cells.model, cells.item])
        left -= len(cells)
    return sampler


def test_items_that_are_not_certain_are_drawn_first() -> None:
    scores = answers(np.zeros(40), 2)
    sampler = visit(scores, 24, predictor=HISTORY, tau=0.1)
    far = [float(np.abs(EASY[sampler.draws(m).item]).mean()) for m in range(40)]
    assert np.mean(far) < 0.92 * np.abs(EASY).mean()
    assert all(np.unique(sampler.draws(m).item).size == 24 for m in range(40))


def test_requests_say_how_likely_they_were() -> None:
    sampler = Visit(design(), predictor=HISTORY, seed=3)
    scores = answers(np.zeros(1), 4)[0]
    played = play(sampler, 20, score=lambda cell: float(scores[cell.item]))
    told = [reading.request.propensity for reading in played.readings]
    chances = sampler.draws(0).chances
    assert chances is not None
    assert told == chances.propensity.tolist()
    left = N - np.arange(20)
    assert (chances.propensity >= 0.5 / left - 1e-12).all()  # tau of it is uniform


def test_the_first_item_is_drawn_with_its_probability() -> None:
    many = 800
    # the first item is all but certain, the last one is open
    history = FactorModel.of_factors(np.array([[5.0], [3.0], [1.0], [0.0]]), U=np.ones((24, 1)))
    sampler = Visit(design(many, 4), predictor=history, batch=2, tau=0.05)
    cells = sampler.next_cells()
    assert cells is not None
    sampler.learn(cells, np.ones(len(cells)))
    found = [sampler.draws(m) for m in range(many)]
    chances = [d.chances for d in found if d.chances is not None]
    first, second = np.array([d.item for d in found]).T
    propensity = {int(i): c.propensity[0] for i, c in zip(first, chances, strict=True)}
    assert sum(propensity.values()) == pytest.approx(1.0)
    for i, q in propensity.items():
        assert abs((first == i).mean() - q) < 4.0 * np.sqrt(q * (1.0 - q) / many)
        for j in set(range(4)) - {i}:
            after = propensity[j] / (1.0 - q)
            share = (second[first == i] == j).mean()
            assert abs(share - after) < 4.0 * np.sqrt(after * (1.0 - after) / (first == i).sum())


def test_all_read_is_exact() -> None:
    scores = answers(np.array([0.0, 1.0]), 5)
    scores[1, [3, 50]] = np.nan
    sampler = visit(scores, predictor=HISTORY)
    assert sampler.next_cells() is None
    assert sampler.stop_reason == "every cell of the models in the race was read or closed"
    for m in range(2):
        estimate = benchmark_mean(sampler.draws(m))
        interval = estimate.confidence_interval(0.95)
        assert estimate.value == pytest.approx(np.nanmean(scores[m]))
        assert estimate.standard_error == 0.0
        assert interval.low == interval.high == pytest.approx(estimate.value)


def test_models_are_visited_alike_and_independently() -> None:
    scores = answers(np.array([0.0, 1.0, -1.0]), 6)
    sampler = visit(scores, 30, predictor=HISTORY)
    assert [sampler.n_read(m) for m in range(3)] == [30, 30, 30]
    changed = scores.copy()
    changed[1:] = 1.0 - changed[1:]
    again = visit(changed, 30, predictor=HISTORY)
    assert (sampler.draws(0).item == again.draws(0).item).all()


@pytest.mark.parametrize("world", ["permuted", "inverted"])
def test_a_history_that_misleads_is_dropped_and_said_to_be(world: str) -> None:
    sampler = visit(answers(np.array([0.0, 0.4]), 8), 80, predictor=WORLDS[world])
    assert "dropped for m0, m1, whose scores their own mean predicts better" in sampler.history_note
    chances = sampler.draws(0).chances
    assert chances is not None
    assert chances.propensity[-1] == pytest.approx(1.0 / (N - 79))
    assert visit(answers(np.array([0.0]), 8), 80, predictor=HISTORY).history_note == (
        f"history has {N} of the {N} items"
    )


def test_it_stops_when_the_mean_is_known_well_enough() -> None:
    scores = answers(np.array([0.0, 3.0]), 9)
    sampler = visit(scores, predictor=HISTORY, half_width=0.12)
    assert sampler.stop_reason == "every model's mean is known to within 0.12"
    means = model_means([sampler.draws(m) for m in range(2)])
    assert all(mean.confidence_interval(0.95).half_width <= 0.12 for mean in means)
    assert max(sampler.n_read(m) for m in range(2)) < N


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
def test_equal_scores_leave_a_width(level: float) -> None:
    draws = visit(np.full((1, N), level), 20, predictor=HISTORY).draws(0)
    sample = as_sample(draws)
    assert np.isnan(sample.standard_error)
    for interval in (benchmark_mean(draws).confidence_interval(0.95), sample.confidence_interval()):
        assert interval.low <= level <= interval.high
        assert interval.high - interval.low > 0.05


def test_as_a_sample_the_items_add_their_own_error() -> None:
    scores = answers(np.array([0.3]), 10)
    draws = visit(scores, 60, predictor=HISTORY).draws(0)
    benchmark, sample = benchmark_mean(draws), as_sample(draws)
    own = sample.standard_error**2 - benchmark.standard_error**2
    assert own == pytest.approx(scores.var() / N, rel=0.2)
    whole = as_sample(visit(scores, predictor=HISTORY).draws(0))
    assert whole.standard_error == pytest.approx(scores.std(ddof=1) / np.sqrt(N))


def test_the_scale_is_mapped_back() -> None:
    scores = answers(np.array([0.3]), 10)
    unit = benchmark_mean(visit(scores, 40, predictor=HISTORY).draws(0))
    wide = visit(1.0 + 10.0 * scores, 40, predictor=HISTORY, score_range=(1.0, 11.0))
    found = benchmark_mean(wide.draws(0), bounds=(1.0, 11.0))
    assert found.value == pytest.approx(1.0 + 10.0 * unit.value)
    assert found.standard_error == pytest.approx(10.0 * unit.standard_error)


def test_models_with_orders_of_their_own_are_not_paired() -> None:
    sampler = visit(answers(np.array([2.0, -2.0]), 12), 90, predictor=HISTORY)
    draws = [sampler.draws(m) for m in range(2)]
    with pytest.raises(InvalidInferenceError, match="cannot be paired"):
        differences_from(draws, 0)
    assert possible_winners(draws, n_items=N).models == {0}
    assert sampler.leader() == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tau": 0.0}, "tau=0.0; give a share above 0"),
        ({"tau": 1.5}, "tau=1.5"),
        ({"half_width": 0.0}, "half_width=0.0; give a number above 0"),
        ({"half_width": float("nan")}, "half_width=nan"),
        ({"batch": 0}, "batch=0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Visit(design(), **options)  # type: ignore[arg-type]


@pytest.mark.claim
@pytest.mark.parametrize(
    ("world", "fixed", "anytime"),
    [
        ("whole", 1, 0),
        ("none", 0, 0),
        variant("permuted", 0, 0),
        ("inverted", 0, 0),
        variant("five models", 2, 0),
    ],
)
def test_intervals_hold_the_mean(world: str, fixed: int, anytime: int) -> None:
    R = replications(24, 2000)
    scores = answers(np.random.default_rng(20).normal(0.5, 1.0, R), 21)
    scores[np.random.default_rng(22).random(scores.shape) < 0.03] = np.nan
    truth = np.nanmean(scores, axis=1)
    sampler = visit(scores, 40, predictor=WORLDS[world])
    missed = [0, 0]
    for m in range(R):
        draws = sampler.draws(m)
        assert draws.chances is not None
        mean = weighted_mean(of_uneven(draws, draws.chances))
        below, above = mean.margins(0.95)
        missed[0] += not mean.value - below <= truth[m] <= mean.value + above
        interval = benchmark_mean(draws).confidence_interval(0.95)
        missed[1] += not interval.low - 1e-9 <= truth[m] <= interval.high + 1e-9
    binomial_claim(missed[0], R, at_most=0.065)  # asymptotic: its coverage is measured, not promised
    binomial_claim(missed[1], R, at_most=0.05)
    pinned(missed[0], fixed)
    pinned(missed[1], anytime)
