"""Estimates from predictions corrected by inverse propensities: what [PULSE] races by.

The formulas are those of :class:`evalbudget.races.samplers.Pulse`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evalbudget.races._draws import ModelDraws
from evalbudget.races.prediction._coefficient import Coefficient, coefficients
from evalbudget.statistics._bounds import FloatArray


class Corrected(NamedTuple):
    """What each batch says, all of shape (n_batches,).

    Attributes:
        theta: unbiased estimates of the benchmark mean.
        coefficient: of the predictions, lambda, fixed before the batch.
        left: items that were left before it.
        size: of the batch.
    """

    theta: FloatArray
    coefficient: FloatArray
    left: FloatArray
    size: FloatArray


def corrected(draws: ModelDraws, rule: Coefficient = Coefficient.CORRECTED) -> Corrected:
    """Batch by batch; a draw that failed leaves its batch, and an empty batch is left out.

    Args:
        draws: of one model.
        rule: how lambda follows from earlier batches.
    """
    read = ~np.isnan(draws.value)
    s, f, batch = draws.value[read], draws.prediction[read], draws.batch[read]
    K = draws.n_batches
    size = np.bincount(batch, minlength=K).astype(np.float64)
    drawn = np.bincount(draws.batch, minlength=K).astype(np.float64)
    lost = drawn - size
    unseen = draws.pool - (np.cumsum(drawn) - drawn)
    # of what was left, those known by now to fail do not count; predictions are taken in proportion
    left = unseen - (lost.sum() - (np.cumsum(lost) - lost))
    share = left / np.maximum(unseen, 1)
    F, Phi = draws.unseen_prediction_sum * share, draws.unseen_prediction_sum_sq * share
    sums = np.bincount(batch, weights=s, minlength=K).astype(np.float64)
    predicted = np.bincount(batch, weights=f, minlength=K).astype(np.float64)
    some = size > 0
    left, size, F, Phi = left[some], size[some], F[some], Phi[some]
    sums, predicted = sums[some], predicted[some]
    n = draws.n_items - draws.n_failed
    before = draws.known.sum() + np.cumsum(sums) - sums
    lam = coefficients(rule, sums, predicted, left, size, F, Phi)
    theta = (before + lam * F + left / size * (sums - lam * predicted)) / n
    return Corrected(np.asarray(theta, dtype=np.float64), lam, left, size)
