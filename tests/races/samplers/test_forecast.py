"""What history says of a model that answered some items: as wrong as it says it is, and not for ever."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import variant

from evalbudget.races.prediction import FactorModel, choose_anchors
from evalbudget.races.samplers._forecast import _INFLATION, Forecast


@pytest.fixture(scope="module")
def world() -> tuple[FactorModel, np.ndarray, np.ndarray]:
    """A model trained on 200 models x 700 items, and 100 new models."""
    rng = np.random.default_rng(11)
    U, V = rng.standard_normal((300, 3)), rng.standard_normal((700, 3))
    V[:, 0] = 1.0
    chance = 1 / (1 + np.exp(-(U @ V.T + rng.standard_normal(700))))
    scores = (rng.random(chance.shape) < chance).astype(float)
    model = FactorModel.train(scores[:200], rank=3, ridge=1.0)
    return model, scores[200:], choose_anchors(model, 16)


@pytest.mark.parametrize("count", [0, variant(32), 60, variant(128), variant(400)])
def test_errors_have_the_variance_that_is_said(
    world: tuple[FactorModel, np.ndarray, np.ndarray], count: int
) -> None:
    model, scores, anchors = world
    forecast = Forecast(model, anchors, scores[:, anchors])
    others = np.random.default_rng(5).permutation(np.setdiff1d(np.arange(700), anchors))
    item = np.concatenate([anchors, others[:count]])
    if count:
        for m in range(len(scores)):
            forecast.refit(model, m, item, scores[m, item])
    error = forecast.mean - scores.mean(axis=1)
    said = np.sqrt(forecast.variance) / _INFLATION
    # 100 models tell a standard deviation to within a quarter; calibration rests on 200 more
    assert float(np.sqrt((error**2).mean()) / said.mean()) == pytest.approx(1.0, abs=0.3)


def test_more_answers_are_surer_up_to_what_history_was_asked(
    world: tuple[FactorModel, np.ndarray, np.ndarray],
) -> None:
    model, scores, anchors = world
    forecast = Forecast(model, anchors, scores[:, anchors])
    others = np.random.default_rng(5).permutation(np.setdiff1d(np.arange(700), anchors))
    variances = [forecast.variance[0]]
    for count in (16, 32, 100, 512, 600):
        item = np.concatenate([anchors, others[:count]])
        forecast.refit(model, 0, item, scores[0, item])
        variances.append(forecast.variance[0])
    assert np.all(np.diff(variances[:-1]) < 0)
    assert variances[-1] == variances[-2]
    assert forecast.variance[1] == variances[0]  # as sure of every model before


def test_a_model_that_never_answers_keeps_the_prior(
    world: tuple[FactorModel, np.ndarray, np.ndarray],
) -> None:
    model, _, anchors = world
    silent = np.full((1, anchors.size), np.nan)
    forecast = Forecast(model, anchors, silent)
    prior = forecast.variance[0]
    forecast.refit(model, 0, np.zeros(0, dtype=np.int64), np.zeros(0))
    assert forecast.variance[0] == prior
    assert np.isfinite(forecast.mean).all()
