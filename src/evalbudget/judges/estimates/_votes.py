"""How many independent votes a panel is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.judges.estimates._scores import JudgeScores
from evalbudget.statistics._bounds import FloatArray

_ROUNDING = 1e-20  # of the mean square: variance that differences of equal judges get from rounding


@dataclass(frozen=True, slots=True)
class EffectiveVotes:
    """What the panel's agreement is worth.

    Attributes:
        value: between 1 and the number of judges.
        judges: how many there are.
        correlation: of the judges' errors, mean over pairs; nan without truth, where errors are not seen.
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

    Without it, the panel's mean stands for the truth: with Sigma the covariance of the deviations from it,
    K_eff = 1 + (tr Sigma)^2 / tr Sigma^2, which is K for independent judges and 1 + (number of kinds - 1) for
    kinds of identical ones. Errors common to all judges do not show: an estimate of an upper bound. tr C^2 of
    the sample covariance C, on nu degrees, is too large by about (tr C)^2/nu, which would make 12 votes of 20
    independent judges on 30 items; so

    .. math:: \widehat{\mathrm{tr}\,\Sigma^2} = \frac{\nu^2}{(\nu-1)(\nu+2)}
              \left[\mathrm{tr}\, C^2 - \frac{(\mathrm{tr}\, C)^2}{\nu}\right], \quad
              \widehat{(\mathrm{tr}\,\Sigma)^2} = (\mathrm{tr}\, C)^2
              - \frac2\nu \widehat{\mathrm{tr}\,\Sigma^2},

    unbiased for normal scores.

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
    nu = n - 1
    covariance = deviation.T @ deviation / nu
    trace, square = float(np.trace(covariance)), float((covariance**2).sum())
    value = 1.0
    if trace > _ROUNDING * float((x * x).mean()):
        true_square = nu**2 / ((nu - 1) * (nu + 2)) * (square - trace**2 / nu)
        squared_trace = trace**2 - 2.0 / nu * true_square
        # the rank of the deviations is K - 1 at most, so the ratio is too; more than that is noise
        value += squared_trace / max(true_square, squared_trace / (K - 1))
    return EffectiveVotes(value, K, float("nan"), True, n)


def _correlation(error: FloatArray) -> float:
    sd = error.std(axis=0)
    if not (sd > 0).sum() > 1:
        return float("nan")
    unit = error[:, sd > 0] / sd[sd > 0]
    k = unit.shape[1]
    return float(((unit.sum(axis=1) ** 2).mean() - k) / (k * (k - 1)))
