"""Lambda of PULSE against sums done by hand: 8 items, batches of 2, every prediction a half."""

from __future__ import annotations

import numpy as np
import pytest
from tests.races.estimates.drawn import draw

from evalbudget.races.prediction._coefficient import Coefficient, clipped, coefficients
from evalbudget.races.prediction._corrections import corrected

LEFT = np.array([8.0, 6.0, 4.0])
SIZE = np.full(3, 2.0)
F, PHI = LEFT * 0.5, LEFT * 0.25


def lambdas(rule: Coefficient, scores: list[float]) -> list[float]:
    found = coefficients(rule, np.array(scores), np.ones(3), LEFT, SIZE, F, PHI)
    return [float(lam) for lam in found]


def test_published_by_hand() -> None:
    # Z_0 = 4 x .5 = 2, since lambda_0 is 0; lambda_1 = 1 - 3 x 2 / (6 x 1.5) = 1/3
    # Z_1 = 3 x (1.5 - 1/3) = 3.5, mean 2.75; lambda_2 = 1 - 2 x 2.75 / (4 x 1) < 0
    assert lambdas(Coefficient.PUBLISHED, [0.5, 1.5, 2.0]) == pytest.approx([0.0, 1 / 3, 0.0])
    # Z_1 = 3 x (.5 - 1/3) = .5, mean 1.25; lambda_2 = 1 - 2 x 1.25 / 4
    assert lambdas(Coefficient.PUBLISHED, [0.5, 0.5, 2.0]) == pytest.approx([0.0, 1 / 3, 0.375])
    # predictions too high, no score at all: Z_0 = 0, Z_1 = -3, and lambda stays at 1
    assert lambdas(Coefficient.PUBLISHED, [0.0, 0.0, 0.0]) == [0.0, 1.0, 1.0]


def test_corrected_by_hand() -> None:
    # (f - S) / pi: 4 x .5 = 2, so lambda_1 = 1 - 3 x 2 / 9; then 3 x -.5 = -1.5, mean .25
    assert lambdas(Coefficient.CORRECTED, [0.5, 1.5, 2.0]) == pytest.approx([1.0, 1 / 3, 0.875])
    # predictions too low: lambda stays at 1
    assert lambdas(Coefficient.CORRECTED, [2.0, 2.0, 2.0]) == [1.0, 1.0, 1.0]


def test_no_prediction_at_all() -> None:
    assert clipped(0.0, 0.0, 4.0, 3.0) == 1.0


@pytest.mark.parametrize("rule", list(Coefficient))
def test_the_first_estimate_is_the_batch_mean_as_published_only(rule: Coefficient) -> None:
    scores = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    predictions = np.linspace(0.1, 0.9, 8)
    draws = draw(scores, predictions, 4, batch=4, seed=1)
    theta = float(corrected(draws, rule).theta[0])
    plain = draws.value.mean()
    if rule is Coefficient.PUBLISHED:
        assert theta == pytest.approx(plain)
    else:
        assert theta == pytest.approx(plain + predictions.mean() - draws.prediction.mean())
