"""How sure each judge's bias against its panel is; the biases themselves are fitted in ``_mixed``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import Coverage
from evalbudget.judges.estimates._mixed import MixedFit
from evalbudget.judges.estimates._scores import JudgeScores
from evalbudget.repeats.estimates._items import pool_variance
from evalbudget.repeats.estimates._readings import ItemMoments
from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray, check_level
from evalbudget.statistics._shrinkage import VariancePrior, t_quantile

_ENOUGH = 30.0  # degrees of freedom on which a judge's own residuals speak for themselves
_MANY_SCORES = 100  # of every judge: degrees of freedom then make no difference that shows


@dataclass(frozen=True, slots=True)
class BiasErrors:
    """Squared standard errors of gammahat.

    Attributes:
        unbiased: from each judge's own residuals, shape (K,); the model's where they say nothing.
        variance: for intervals, shape (K,).
        degrees: behind ``variance``, same shape.
    """

    unbiased: FloatArray
    variance: FloatArray
    degrees: FloatArray


@dataclass(frozen=True, slots=True)
class JudgeBiases:
    """Deviation of every judge from the mean of the panel.

    The panel's mean is not the truth: a bias that all judges share does not show.

    Attributes:
        judges: names of those that scored.
        value: gammahat_l, shape (K,); they sum to zero.
        standard_error: shape (K,).
        n: scores per judge, shape (K,).
        method: how, in words.
        degrees: of freedom behind each standard error, shape (K,).
    """

    judges: tuple[str, ...]
    value: FloatArray
    standard_error: FloatArray
    n: IntArray
    method: str
    degrees: FloatArray

    def confidence_intervals(
        self, level: float = 0.95, *, coverage: Coverage = Coverage.SIMULTANEOUS
    ) -> Bounds:
        """Intervals for all biases: at once (Bonferroni, the default), or each for itself.

        nan where the standard error is 0 or nan, or rests on less than one degree of freedom: scores that
        all agree do not prove that others are impossible.

        Raises:
            InvalidInputError: the level is not strictly between 0 and 1.
        """
        alpha = 1.0 - check_level(level)
        if coverage is Coverage.SIMULTANEOUS:
            alpha /= max(len(self.judges), 1)
        known = (self.standard_error > 0.0) & (self.degrees >= 1.0)
        degrees = np.where(known, self.degrees, 1.0)
        half = np.where(known, t_quantile(1.0 - alpha, degrees) * self.standard_error, np.nan)
        return Bounds(self.value - half, self.value + half)


def judge_biases(scores: JudgeScores) -> JudgeBiases:
    r"""Bias of every judge, as deviation from the panel's mean.

    Generalised least squares with judges fixed and items random (:mod:`.mixed`): judges are compared within
    the items they share as far as items differ, and by their means over items as far as they do not. One
    score per item gives the judges' means, a crossed design the mean deviations within items.

    Errors come from each judge's own residuals, clustered by item, so noisy judges and an item x judge
    interaction are covered. On fewer than 30 degrees of freedom they are shrunk towards the pool's as far as
    the judges look alike (empirical Bayes).

    Judges that gave no score are left out.

    Raises:
        InvalidInferenceError: fewer than two judges gave scores.
    """
    panel = scores.scoring_panel()
    if panel.n_judges < 2:
        raise InvalidInferenceError(
            f"{panel.n_judges} judge gave scores; a bias is a deviation from a panel of two or more"
        )
    fit = MixedFit.of(panel)
    errors = bias_errors(fit)
    return JudgeBiases(
        panel.judges,
        fit.gamma,
        np.sqrt(errors.variance),
        panel.counts,
        f"generalised least squares, {how_compared(panel)}",
        errors.degrees,
    )


def how_compared(panel: JudgeScores) -> str:
    """What judges are compared within, in words."""
    if panel.is_once:
        return "judge means over random items"
    return f"judges compared within and between {'generations' if panel.is_crossed else 'items'}"


def bias_errors(fit: MixedFit) -> BiasErrors:
    """Squared standard errors of gammahat, for every judge."""
    K = fit.panel.n_judges
    if fit.panel.counts.min() >= _MANY_SCORES:  # what fitting took from the residuals no longer shows
        own = fit.sandwich() * (fit.panel.counts / (fit.panel.counts - 1))
        return BiasErrors(own, own, (fit.panel.counts - 1).astype(np.float64))
    found = [fit.error(fit.weights(fit.contrasts[:, judge])) for judge in range(K)]
    own = np.array([error.own for error in found])
    model = np.array([error.model for error in found])
    degrees = np.array([error.degrees for error in found])
    known = (degrees >= 1.0) & (model > 0.0)
    ratio = np.divide(own, model, out=np.ones(K), where=known)
    strength = VariancePrior.fit(ratio[known], degrees[known]).strength
    weight = np.where(known, degrees, 0.0)
    shrunk = model * (strength + weight * ratio) / (strength + weight)
    alone = known & (degrees >= _ENOUGH)
    pooled = np.minimum(strength + weight, max(fit.degrees, 0))
    unbiased = np.where(degrees > 0.0, own, model)
    return BiasErrors(unbiased, np.where(alone, own, shrunk), np.where(alone, degrees, pooled))


def judge_moments(panel: JudgeScores) -> tuple[FloatArray, FloatArray]:
    """Mean and sum of squared deviations of each judge's scores, shape (K,); every judge has some."""
    n, K = panel.counts, panel.n_judges
    mean = np.bincount(panel.judge, panel.value, K) / n
    deviation = panel.value - mean[panel.judge]
    squares = np.bincount(panel.judge, deviation * deviation, K)
    return np.asarray(mean, dtype=np.float64), np.asarray(squares, dtype=np.float64)


def pooled_variance(panel: JudgeScores) -> tuple[FloatArray, float]:
    """Within-judge variance per judge, and degrees of freedom of the sum of v_l/n_l.

    One pooled variance where counts are balanced to within one call. Elsewhere counts may follow prices and
    variances, so each judge has its own, shrunk towards the others' as far as they look alike (empirical
    Bayes: a judge with two calls cannot say much), with Satterthwaite's degrees.
    """
    n = panel.counts
    mean, squares = judge_moments(panel)
    nu = int(n.sum()) - n.size
    pooled = float(squares.sum()) / nu if nu > 0 else float("nan")
    if np.ptp(n) <= 1 or nu == 0:
        return np.full(n.size, pooled), float(nu)
    strength = pool_variance(ItemMoments(n, mean, squares)).strength
    own = (strength * pooled + squares) / (strength + n - 1)
    top, bottom = float((own / n).sum()) ** 2, float(((own / n) ** 2 / (strength + n - 1)).sum())
    return own, min(top / bottom, float(nu)) if bottom > 0 else float(nu)
