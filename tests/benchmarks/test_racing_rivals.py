"""What the sections on rivals reckon beside the samplers they play."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalbudget.races.prediction import FactorModel
from racing_sections import new_model as section
from racing_sections.leaderboard import grid_of
from racing_sections.new_model import BATCH, METHODS, drawn, measured
from racing_sections.one_score import errors
from racing_sections.rivals import ASKED, BEST, REGRET, SAMPLERS, _targets, error, played, told
from references.sysrs import SySRs


def test_error_over_seeds_and_over_matrices() -> None:
    one = np.array([0.0, 1.0, 1.0, 0.0])
    assert error(one) == pytest.approx(math.sqrt(1 / 3 / 4))
    # the mean of two independent ones, the second without spread
    assert error(np.stack([one, np.ones(4)])) == pytest.approx(math.sqrt(1 / 3 / 4) / 2)
    assert told(one, 2) == "0.50 ± 0.29"
    assert told(one, 1, "+") == "+0.5 ± 0.3"


def test_a_rival_ahead_is_seen_and_noise_is_called_noise() -> None:
    less = np.zeros((1, 4, 3))
    less[0, :, BEST] = (0.5, 0.5, 0.5, 0.5)  # the rival finds the best more often, without any noise
    less[0, :, REGRET] = (
        -3.0,
        3.0,
        -1.0,
        -1.0,
    )  # and less regret, well within noise
    best, regret = _targets("sysrs", 0.05, less)
    assert (best.reached, best.within_noise) == (False, False)
    assert (regret.reached, regret.within_noise) == (False, True)
    best, regret = _targets("sysrs", 0.05, -less)
    assert best.reached
    assert regret.reached


def test_every_sampler_keeps_to_each_budget_and_regret_goes_with_the_best() -> None:
    scores = (np.random.default_rng(3).random((5, 60)) < np.linspace(0.2, 0.9, 5)[:, None]).astype(float)
    for sampler in SAMPLERS:
        found = played(grid_of(scores), sampler, (0.2, 0.5), 3)
        assert found.shape == (3, 2, 3)
        assert (found[:, :, ASKED] <= [60, 150]).all()
        assert ((found[:, :, REGRET] == 0) == (found[:, :, BEST] == 1)).all()
    # told its budget: more items for more of it, not a longer look at the same race
    rounds = played(grid_of(scores), SySRs, (0.2, 0.5), 1)[0, :, ASKED]
    assert rounds[0] <= 60 < rounds[1]


def test_predictions_rest_on_earlier_batches_alone() -> None:
    rng = np.random.default_rng(4)
    scores = (rng.random((12, 70)) < rng.random(70)).astype(float)
    history, one = FactorModel.train(scores[1:], rank=1, ridge=1.0), scores[0].copy()
    draws = drawn(history, one, 40, np.random.default_rng(9))
    first = history.predict(history.prior_mean, draws.item[:BATCH])
    np.testing.assert_allclose(draws.prediction[:BATCH], first)
    unread = np.setdiff1d(np.arange(70), draws.item[:BATCH])
    second = history.predict(history.fit(draws.item[:BATCH], draws.value[:BATCH]), unread)
    assert draws.unseen_prediction_sum[1] == pytest.approx(second.sum())
    assert draws.unseen_prediction_sum_sq[1] == pytest.approx((second**2).sum())
    one[draws.item[BATCH:]] = 1.0 - one[draws.item[BATCH:]]  # what comes later changes nothing before
    other = drawn(history, one, 40, np.random.default_rng(9))
    np.testing.assert_array_equal(other.prediction[: 2 * BATCH], draws.prediction[: 2 * BATCH])
    assert (other.prediction[2 * BATCH :] != draws.prediction[2 * BATCH :]).any()


def test_each_model_is_new_once_a_run_and_not_in_its_own_history(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    scores = (rng.random((10, 60)) < rng.random(60)).astype(float)
    scores[2, :5] = np.nan
    histories: list[np.ndarray] = []

    class Watched(FactorModel):
        @classmethod
        def train(cls, table: np.ndarray) -> FactorModel:  # type: ignore[override]
            histories.append(table)
            return FactorModel.train(table, rank=1, ridge=1.0)

    monkeypatch.setattr(section, "FactorModel", Watched)
    found = measured(scores, 0.4, 2)
    assert [len(table) for table in histories] == [8] * 5
    assert set(found) == set(METHODS)
    for each in found.values():
        assert each.shape == (20, 3)
        assert not np.isnan(each).any()
        assert (each[:, 2] <= 24).all()
        assert each[:, 0].mean() > 0.5


def test_errors_of_judges_by_hand() -> None:
    mean, variance = np.array([[1.0, 4.0]]), np.array([[1.0, 3.0]])
    found = errors(mean, variance, 4)  # two readings of each judge, or four of one
    # (1 + 3) / 2^2 / 2; weights 3/4 and 1/4 at 1.75, .75 below the panel; all at 1, 1.5 below it
    assert found["every judge, plain mean"] == pytest.approx((math.sqrt(0.5), math.sqrt(0.5)))
    weighted = (9 / 16 * 1.0 + 1 / 16 * 3.0) / 2
    assert found["every judge, inverse variances"] == pytest.approx(
        (math.sqrt(weighted), math.sqrt(weighted + 0.75**2))
    )
    assert found["the surest judge of each item"] == pytest.approx((0.5, math.sqrt(0.25 + 1.5**2)))


def test_judges_without_variance_have_all_the_weight_together() -> None:
    found = errors(np.array([[1.0, 2.0, 9.0]]), np.array([[0.0, 0.0, 5.0]]), 3)
    assert found["every judge, inverse variances"] == pytest.approx((0.0, 2.5))
    assert found["the surest judge of each item"] == pytest.approx((0.0, 2.5))
