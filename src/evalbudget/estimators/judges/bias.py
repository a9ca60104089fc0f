"""Each judge's bias against its panel, and the least squares behind every judge-corrected estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.confidence.bounds import Bounds, FloatArray, IntArray, check_level
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimators.items import pool_variance
from evalbudget.estimators.judges.scores import JudgeScores
from evalbudget.estimators.readings import ItemMoments
from evalbudget.estimators.result import Coverage, Random
from evalbudget.judge_effects import judge_effects
from evalbudget.shrinkage import t_quantile

_FEW = 10


@dataclass(frozen=True, slots=True)
class JudgeFit:
    r"""gammahat, the judges' deviations from the mean of the panel (sum to zero).

    Attributes:
        gamma: shape (K,).
        covariance: of gamma over samples of items, shape (K, K).
        degrees: of freedom behind the covariance.
        method: how, in words.
        block: number of the item or generation within which judges were compared, per score; None if judges
            were compared by their means.
    """

    gamma: FloatArray
    covariance: FloatArray
    degrees: float
    method: str
    block: IntArray | None


@dataclass(frozen=True, slots=True)
class JudgeBiases:
    """Deviation of every judge from the mean of the panel.

    The panel's mean is not the truth: a bias that all judges share does not show.

    Attributes:
        judges: names of those that scored.
        value: gammahat_l, shape (K,); they sum to zero.
        standard_error: shape (K,).
        n: scores per judge, shape (K,).
        mean: score each judge gave on average, shape (K,), other items under each.
        random: what the intervals cover; the judges are these ones.
        method: how, in words.
        degrees: of freedom.
    """

    judges: tuple[str, ...]
    value: FloatArray
    standard_error: FloatArray
    n: IntArray
    mean: FloatArray
    random: frozenset[Random]
    method: str
    degrees: float

    def confidence_intervals(
        self, level: float = 0.95, *, coverage: Coverage = Coverage.SIMULTANEOUS
    ) -> Bounds:
        """Intervals for all biases: at once (Bonferroni, the default), or each for itself.

        Raises:
            InvalidInputError: the level is not strictly between 0 and 1.
        """
        alpha = 1.0 - check_level(level)
        if coverage is Coverage.SIMULTANEOUS:
            alpha /= max(len(self.judges), 1)
        half = float(t_quantile(1.0 - alpha, self.degrees)) * self.standard_error
        return Bounds(self.value - half, self.value + half)


def judge_biases(scores: JudgeScores) -> JudgeBiases:
    r"""Bias of every judge, as deviation from the panel's mean, with sum-to-zero contrasts.

    Judges are compared within generations where all of them were scored by several judges, else within items
    (two-way least squares: a rank-deficient system, solved for contrasts), else, with one score per item or
    judges that share no items, by their means over random parts of the items. Errors are clustered by item
    (sandwich), so an item x judge interaction is covered, unless a judge has fewer than 10 scores.

    Judges that gave no score are left out.

    Raises:
        InvalidInferenceError: fewer than two judges gave scores.
    """
    panel = scores.scoring_panel()
    if panel.n_judges < 2:
        raise InvalidInferenceError(
            f"{panel.n_judges} judge gave scores; a bias is a deviation from a panel of two or more"
        )
    fit = fit_judges(panel)
    return JudgeBiases(
        panel.judges,
        fit.gamma,
        np.sqrt(np.maximum(np.diag(fit.covariance), 0.0)),
        panel.counts,
        judge_moments(panel)[0],
        frozenset({Random.ITEMS, Random.REPEATS}),
        fit.method,
        fit.degrees,
    )


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


def fit_judges(panel: JudgeScores) -> JudgeFit:
    """Estimate gamma; every judge of the panel has scores."""
    if panel.is_crossed:
        block, within = panel.generation, "within generations"
    elif not panel.is_once:
        block, within = panel.item, "within items"
    else:
        return _by_means(panel)
    return _within_blocks(panel, block, within) or _by_means(panel)


def _by_means(panel: JudgeScores) -> JudgeFit:
    K, n = panel.n_judges, panel.counts
    mean, _ = judge_moments(panel)
    variance, degrees = pooled_variance(panel)
    center = np.eye(K) - 1.0 / K
    covariance = center @ np.diag(variance / n) @ center
    return JudgeFit(mean - mean.mean(), covariance, max(degrees, 1.0), "judge means over random items", None)


def _within_blocks(panel: JudgeScores, block: IntArray, within: str) -> JudgeFit | None:
    """Two-way least squares, blocks eliminated; None if the judges are not connected through blocks."""
    from scipy.sparse import coo_array  # takes longer to import than the rest of evalbudget

    K = panel.n_judges
    _, block = np.unique(block, return_inverse=True)
    size = np.bincount(block)
    effects = judge_effects(block, panel.judge, panel.value, K)
    if not effects.connected:
        return None
    gamma, inverse = effects.gamma, effects.inverse
    # clustered by item: what an item's residuals add to the normal equations is one independent draw
    corrected = panel.value - gamma[panel.judge]
    residual = corrected - (np.bincount(block, corrected) / size)[block]
    cell, at = np.unique(panel.item * K + panel.judge, return_inverse=True)
    draw = np.bincount(at, residual)
    items, row = np.unique(cell // K, return_inverse=True)
    draws = coo_array((draw, (row, cell % K)), shape=(items.size, K)).tocsr()
    gram = (draws.T @ draws).toarray()
    n = items.size
    informative = int(np.count_nonzero(np.bincount(panel.item, minlength=panel.n_items) > 1))
    factor = n / max(n - 1, 1)
    covariance = inverse @ gram @ inverse * factor
    degrees = panel.value.size - size.size - (K - 1)
    if panel.counts.min() < _FEW and degrees > 0:  # too few draws of some judge for the sandwich
        covariance = inverse * float((residual * residual).sum()) / degrees
    return JudgeFit(
        gamma, covariance, float(max(informative - 1, 1)), f"two-way least squares {within}", block
    )
