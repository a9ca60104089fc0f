r"""How PULSE weighs predictions: lambda of each batch, from the corrections of the batches before it."""

from __future__ import annotations

import numpy as np

from evalbudget.errors import Choice
from evalbudget.statistics._bounds import FloatArray


class Coefficient(Choice):
    r"""Rules for :math:`\lambda = \mathrm{clip}(1 - F \bar Z / (|U| \Phi), 0, 1)`: what Z is, and the start.

    With O and U the items seen and unseen before the batch, :math:`\pi = b/|U|`,
    :math:`F = \sum_U \hat S`, :math:`\Phi = \sum_U \hat S^2`, and :math:`\bar Z` the mean of Z over the
    model's batches so far.
    """

    CORRECTED = "corrected"
    r""":math:`Z = \sum (\hat S - S)/\pi`, so that lambda estimates the least-squares slope of S on its
    prediction, through the origin, :math:`1 - \sum_U \hat S (\hat S - S) / \Phi`; 1 in the first batch. (The
    slope with an intercept, which has the least variance, may be nearer to 1.)"""
    PUBLISHED = "published"
    r"""As in the paper's text: :math:`Z = \sum (S - \lambda \hat S)/\pi`, of the opposite sign and with the
    lambda in use; 0 in the first batch. Lambda falls where predictions are too low, and stays 1 where they
    are too high."""

    @property
    def first(self) -> float:
        """Lambda of a model's first batch."""
        return 0.0 if self is Coefficient.PUBLISHED else 1.0

    def correction(self, scores: float, predictions: float, coefficient: float, weight: float) -> float:
        r"""Z of a batch.

        Args:
            scores: sum of S.
            predictions: sum of the predictions.
            coefficient: lambda in use.
            weight: :math:`1/\pi`.
        """
        if self is Coefficient.PUBLISHED:
            return weight * (scores - coefficient * predictions)
        return weight * (predictions - scores)


def clipped(F: float, Phi: float, left: float, mean_correction: float) -> float:
    r""":math:`\mathrm{clip}(1 - F \bar Z / (|U| \Phi), 0, 1)`; 1 where all predictions are 0."""
    return min(1.0, max(0.0, 1.0 - F * mean_correction / (left * Phi))) if Phi > 0.0 else 1.0


def coefficients(
    rule: Coefficient,
    scores: FloatArray,
    predictions: FloatArray,
    left: FloatArray,
    size: FloatArray,
    F: FloatArray,
    Phi: FloatArray,
) -> FloatArray:
    """Lambda of a model's batches, each fixed before the batch.

    Args:
        rule: what Z is.
        scores: sum of S in each batch, shape (n_batches,), like all that follow.
        predictions: sums of predictions.
        left: items that were left before each.
        size: b.
        F: sum of the predictions of what was left.
        Phi: sum of their squares.
    """
    lam = np.empty(size.size)
    total = 0.0
    for k in range(size.size):
        lam[k] = rule.first if k == 0 else clipped(float(F[k]), float(Phi[k]), float(left[k]), total / k)
        weight = float(left[k] / size[k])
        total += rule.correction(float(scores[k]), float(predictions[k]), float(lam[k]), weight)
    return lam
