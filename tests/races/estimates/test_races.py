"""The whole chain: a sampler decides, its draws go to the estimators, every interval covers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget.design import Design
from evalbudget.races.estimates import model_means, model_ranks
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers._base import RacingSampler
from evalbudget.races.samplers._pulse import Pulse
from evalbudget.races.samplers._ucb_e import UCBE
from evalbudget.statistics._bounds import FloatArray
from references.pulse import pulse_mean

M, N = 8, 300


def world() -> tuple[FactorModel, FloatArray]:
    rng = np.random.default_rng(0)
    easy = rng.normal(0, 1.5, N)
    level = np.r_[0.9, 0.9, rng.normal(0.3, 0.6, M - 2)]
    history = rng.random((30, N)) < 1 / (1 + np.exp(-(rng.normal(0.3, 1, (30, 1)) + easy)))
    scores = (rng.random((M, N)) < 1 / (1 + np.exp(-(level[:, None] + easy)))).astype(float)
    scores[0] = 1.0
    scores = np.where(rng.random(scores.shape) < 0.03, np.nan, scores)
    return FactorModel.train(history.astype(float), rank=0, ridge=1.0), scores


def race(sampler: RacingSampler, scores: FloatArray, budget: int) -> None:
    spent = 0
    while spent < budget and (cells := sampler.next_cells()) is not None:
        sampler.learn(cells, scores[cells.model, cells.item])
        spent += len(cells)


@pytest.mark.claim
@pytest.mark.parametrize(("name", "expected"), [("pulse", 0), variant("ucb-e", 0)])
def test_all_models_are_covered_after_a_race(name: str, expected: int) -> None:
    R = replications(12, 1500)
    predictor, scores = world()
    truth = np.nanmean(scores, axis=1)
    design = Design(tuple(str(j) for j in range(N)), tuple(f"m{i}" for i in range(M)))
    failed = 0
    for seed in range(R):
        sampler: RacingSampler = (
            Pulse(design, predictor=predictor, tau=5, batch=16, seed=seed)
            if name == "pulse"
            else UCBE(design, batch=16, seed=seed)
        )
        race(sampler, scores, 900)
        ranks = model_ranks(model_means([sampler.draws(i) for i in range(M)]), 0.9)
        failed += not ((ranks.low - 1e-9 <= truth) & (truth <= ranks.high + 1e-9)).all()
    binomial_claim(failed, R, at_most=0.1)
    pinned(failed, expected)


def test_what_the_sampler_steers_by_is_what_is_reported() -> None:
    predictor, scores = world()
    scores = np.nan_to_num(scores, nan=1.0)
    design = Design(tuple(str(j) for j in range(N)), tuple(f"m{i}" for i in range(M)))
    sampler = Pulse(design, predictor=predictor, tau=5, batch=16, seed=1)
    race(sampler, scores, 600)
    sampler.next_cells()  # the last round is learned when the next one is planned
    steered = sampler.estimates(*sampler._now())
    for i in range(M):
        draws = sampler.draws(i)
        if not draws.exhausted:
            assert pulse_mean(draws).value == pytest.approx(steered[i], abs=1e-9)
