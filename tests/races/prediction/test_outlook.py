"""What a new model is expected to score: by history, by its own mean, and by whichever proves right."""

from __future__ import annotations

import numpy as np
import pytest

from evalbudget.races.prediction import FactorModel
from evalbudget.races.prediction._outlook import Outlook
from evalbudget.statistics._bounds import FloatArray

EASY = np.linspace(-3.0, 3.0, 60)


def answers(shift: float, seed: int, easiness: FloatArray = EASY) -> FloatArray:
    chance = 1.0 / (1.0 + np.exp(-(easiness + shift)))
    return (np.random.default_rng(seed).random(easiness.size) < chance).astype(float)


@pytest.fixture(scope="module")
def history() -> FactorModel:
    return FactorModel.train(np.stack([answers(0.1 * k - 1.0, k) for k in range(20)]), rank=0, ridge=1.0)


def loss(expected: FloatArray | float, scores: FloatArray) -> float:
    return float(((scores - expected) ** 2).mean())


def test_without_history_it_is_the_models_own_mean() -> None:
    outlook = Outlook(None, 5)
    assert outlook.expected == pytest.approx(0.5)
    outlook = outlook.after(None, np.array([1, 3]), np.array([1.0, 0.5]))
    assert outlook.expected == pytest.approx(2.0 / 3.0)
    assert not outlook.dropped


def test_before_the_first_answer_history_counts_nine_parts_in_ten(history: FactorModel) -> None:
    average = history.predict(history.prior_mean)
    expected = Outlook(history, 60).expected
    # a model of which nothing is known yet is expected nearer to .5 than the average one
    assert (np.abs(expected - 0.5) <= 0.9 * np.abs(average - 0.5) + 1e-12).all()
    assert loss(expected, average) < 0.02
    assert np.corrcoef(expected, average)[0, 1] > 0.99


def test_answers_make_it_surer_and_better(history: FactorModel) -> None:
    scores = answers(1.5, 100)
    outlook = Outlook(history, 60)
    before = loss(outlook.expected[30:], scores[30:])
    outlook = outlook.after(history, np.arange(0, 30, 2), scores[0:30:2])
    outlook = outlook.after(history, np.arange(1, 30, 2), scores[1:30:2])
    assert not outlook.dropped
    assert loss(outlook.expected[30:], scores[30:]) < before


def test_a_history_that_misleads_is_dropped(history: FactorModel) -> None:
    scores = answers(0.0, 7, EASY[::-1])
    order = np.random.default_rng(4).permutation(60)
    outlook = Outlook(history, 60)
    for begin in range(0, 40, 4):
        outlook = outlook.after(history, order[begin : begin + 4], scores[order[begin : begin + 4]])
    assert outlook.dropped
    assert outlook.expected == pytest.approx((scores[order[:40]].sum() + 0.5) / 41.0)


def test_a_history_of_other_items_costs_little_and_is_not_followed(history: FactorModel) -> None:
    lost = []
    for seed in range(40):
        scores = answers(0.0, 200 + seed, np.random.default_rng(seed).permutation(EASY))
        order = np.random.default_rng([seed, 1]).permutation(60)
        outlook = Outlook(history, 60)
        for begin in range(0, 40, 4):
            outlook = outlook.after(history, order[begin : begin + 4], scores[order[begin : begin + 4]])
        rest = order[40:]
        lost.append(
            loss(outlook.expected[rest], scores[rest]) / loss(scores[order[:40]].mean(), scores[rest])
        )
    assert np.mean(lost) < 1.05


def test_a_good_history_is_hardly_ever_dropped(history: FactorModel) -> None:
    dropped = 0
    for seed in range(60):
        scores, order = answers(0.0, 1000 + seed), np.random.default_rng(seed).permutation(60)
        outlook = Outlook(history, 60)
        for begin in range(0, 40, 4):
            outlook = outlook.after(history, order[begin : begin + 4], scores[order[begin : begin + 4]])
        dropped += outlook.dropped
    assert dropped == 0


def test_all_scores_equal_and_no_answers(history: FactorModel) -> None:
    outlook = Outlook(history, 60)
    outlook = outlook.after(history, np.zeros(0, dtype=np.int64), np.zeros(0))
    assert outlook.expected == pytest.approx(Outlook(history, 60).expected)
    outlook = outlook.after(history, np.arange(50), np.ones(50))
    assert (outlook.expected[:50] > 0.8).all()
    assert ((outlook.expected >= 0.005) & (outlook.expected <= 0.995)).all()
