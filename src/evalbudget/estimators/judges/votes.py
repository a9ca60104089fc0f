"""How many independent votes a panel is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.confidence.bounds import FloatArray
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimators.judges.scores import JudgeScores


@dataclass(frozen=True, slots=True)
class EffectiveVotes:
    """What the panel's agreement is worth.

    Attributes:
        value: between 1 and the number of judges.
        judges: how many there are.
        correlation: of the judges' errors, mean over pairs.
        upper_bound: no truth was given, so errors that all judges share do not show.
        n_items: items used: those that all judges scored.
    """

    value: float
    judges: int
    correlation: float
    upper_bound: bool
    n_items: int


def effective_votes(scores: JudgeScores, *, truth: ArrayLike | None = None) -> EffectiveVotes:
    r"""Effective number of independent judges.

    With the truth of every item (human labels), errors are e_il = x_il - truth_i less their mean per judge,
    and

    .. math:: K_{\mathrm{eff}} = \frac{\overline{\mathrm{Var}(e_l)}}{\mathrm{Var}(\bar e)}
              = \frac{K}{1 + (K-1)\bar\rho}

    Without it, the panel's mean stands for the truth: with C the covariance of the deviations from it,
    K_eff = 1 + (tr C)^2 / tr C^2, which is K for independent judges and 1 + (number of kinds - 1) for kinds
    of identical ones. Errors common to all judges do not show: an upper bound.

    Args:
        scores: of one model.
        truth: per item, shape (n_items,), NaN where unknown, on the judges' scale.

    Raises:
        InvalidInferenceError: fewer than two judges, or fewer than three items that all of them scored.
        InvalidInputError: truth of another shape.
    """
    panel = scores.scoring_panel()
    K = panel.n_judges
    if K < 2:
        raise InvalidInferenceError("a single judge is one vote; give the scores of a panel")
    key = panel.item * K + panel.judge
    n = np.bincount(key, minlength=panel.n_items * K).reshape(-1, K)
    total = np.bincount(key, panel.value, panel.n_items * K).reshape(-1, K)
    keep = (n > 0).all(axis=1)
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if known is not None:
        if known.shape != (panel.n_items,):
            raise InvalidInputError(f"truth has shape {known.shape}; give one per item, ({panel.n_items},)")
        keep &= ~np.isnan(known)
    if int(keep.sum()) < 3:
        raise InvalidInferenceError(
            f"all {K} judges scored {int(keep.sum())} items; correlation needs three or more (rotation 'all')"
        )
    x = total[keep] / n[keep]
    if known is None:
        return _among_themselves(x)
    error = x - known[keep, None]
    error = error - error.mean(axis=0)
    own, mean = float(error.var(axis=0).mean()), float(error.mean(axis=1).var())
    value = K if mean <= 0.0 and own <= 0.0 else min(own / mean, K) if mean > 0.0 else K
    return EffectiveVotes(float(value), K, _correlation(error), False, len(x))


def _among_themselves(x: FloatArray) -> EffectiveVotes:
    n, K = x.shape
    deviation = x - x.mean(axis=1, keepdims=True)
    deviation = deviation - deviation.mean(axis=0)
    covariance = deviation.T @ deviation / (n - 1)
    trace, square = float(np.trace(covariance)), float((covariance**2).sum())
    value = 1.0 + (trace**2 / square if square > 0.0 else 0.0)
    return EffectiveVotes(min(value, float(K)), K, _correlation(deviation), True, n)


def _correlation(error: FloatArray) -> float:
    sd = error.std(axis=0)
    if not (sd > 0).sum() > 1:
        return float("nan")
    unit = error[:, sd > 0] / sd[sd > 0]
    k = unit.shape[1]
    return float(((unit.sum(axis=1) ** 2).mean() - k) / (k * (k - 1)))
