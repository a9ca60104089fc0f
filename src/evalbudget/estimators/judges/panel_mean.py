"""The mean of judge means: what the panel would say, whatever the number of calls of each judge."""

from __future__ import annotations

import numpy as np

from evalbudget.confidence.bounds import FloatArray
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimators.judges.bias import fit_judges, judge_moments, pooled_variance
from evalbudget.estimators.judges.scores import JudgeScores
from evalbudget.estimators.result import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.shrinkage import t_quantile


def panel_mean(scores: JudgeScores, *, judges_random: bool = False) -> Estimate:
    r"""Mean over the judges of their mean scores, every judge weighing the same.

    The raw mean of the scores is biased where judges have different numbers of calls (failures, incomplete
    cycles, counts by price). With one score per item (m = 1)

    .. math:: \hat\theta = \frac1K \sum_l \bar x_l, \quad
              \widehat{\mathrm{Var}} = \frac1{K^2} \sum_l \frac{s^2}{n_l}

    with s^2 pooled within judges and t on n - K degrees of freedom; where counts differ by more than one,
    each judge's own s_l^2 and Satterthwaite's degrees. With several scores per item, r_i is the mean over the
    item's scores of x - gammahat,

    .. math:: \hat\theta = \frac1n \sum_i r_i, \quad \widehat{\mathrm{Var}} = \frac{s_r^2}{n}
              + w^\top \widehat{\mathrm{Cov}}(\hat\gamma)\, w

    where w is what imbalance is left in the judges' shares; it vanishes in balanced designs.

    Items and generations are random; the judges are these ones, unless ``judges_random``: then the panel is
    taken for a sample of all judges, s_gamma^2/K is added and t has K - 1 degrees of freedom at most.

    How many scores an item has must not depend on the scores; failures may differ between judges.

    Judges without scores are left out: the target says so, and ``details["judges_silent"]`` counts them.

    Args:
        scores: of one model.
        judges_random: answer for judges like these rather than for these judges.

    Returns:
        Estimate, fixed-n, asymptotic. nan without scores; the standard error is nan where a single score or
        item leaves nothing to estimate it from, and no interval is claimed where it is 0.

    Raises:
        InvalidInferenceError: ``judges_random`` with scores of a single judge.
    """
    panel = scores.scoring_panel()
    K, n_scored = panel.n_judges, int(np.count_nonzero(scores.per_item))
    if not panel.value.size:
        return _estimate(scores, panel, float("nan"), float("nan"), 1.0, "no scores", judges_random)
    if judges_random and K < 2:
        raise InvalidInferenceError(
            f"judge {panel.judges[0]!r} alone says nothing of other judges; use a panel, or "
            "judges_random=False"
        )
    if panel.is_once:
        mean, _ = judge_moments(panel)
        v, degrees = pooled_variance(panel)
        value, variance = float(mean.mean()), float((v / panel.counts).sum()) / K**2
        method, gamma = "mean of judge means, one score per item", mean - mean.mean()
        gamma_noise = np.diag(v / panel.counts)
    else:
        value, variance, gamma, gamma_noise, how = _several(panel, n_scored)
        degrees, method = float(n_scored - 1), f"mean of judge-corrected item means, {how}"
    if judges_random:
        noise = float(np.trace(gamma_noise)) / K * (K - 1) / K
        spread = max(float((gamma**2).mean()) - noise, 0.0) * K / (K - 1)
        variance, degrees = variance + spread / K, min(degrees, K - 1.0)
    error = float(np.sqrt(variance)) if degrees >= 1.0 else float("nan")
    return _estimate(scores, panel, value, error, degrees, method, judges_random)


def judge_mean_over_sampled_items(scores: JudgeScores) -> Estimate:
    r"""Raw mean of the scores with the interval people use, sd/sqrt(n) over items: the baseline.

    For a judge drawn anew for every score (rotation ``random``) it is valid. For a single judge it is valid
    for that judge only, and knows nothing of its bias.

    Returns:
        Estimate, fixed-n, asymptotic.
    """
    n = scores.per_item[scores.per_item > 0]
    means = np.bincount(scores.item, scores.value, scores.n_items)[scores.per_item > 0] / n
    value = float(means.mean()) if means.size else float("nan")
    error = float(means.std(ddof=1) / np.sqrt(means.size)) if means.size > 1 else float("nan")
    return _estimate(
        scores,
        scores.scoring_panel(),
        value,
        error,
        max(means.size - 1.0, 1.0),
        "raw mean of the scores",
        False,
    )


def _several(panel: JudgeScores, n: int) -> tuple[float, float, FloatArray, FloatArray, str]:
    fit = fit_judges(panel) if panel.n_judges > 1 else None
    gamma = np.zeros(1) if fit is None else fit.gamma
    counts = panel.per_item
    seen = counts > 0
    corrected = panel.value - gamma[panel.judge]
    r = np.bincount(panel.item, corrected, panel.n_items)[seen] / counts[seen]
    variance = float(r.var(ddof=1)) / n if n > 1 else float("nan")
    if fit is None:
        return float(r.mean()), variance, gamma, np.zeros((1, 1)), "one judge"
    share = np.bincount(panel.judge, 1.0 / counts[panel.item], panel.n_judges) / n
    imbalance = share - 1.0 / panel.n_judges
    variance += float(imbalance @ fit.covariance @ imbalance)
    return float(r.mean()), variance, gamma, fit.covariance, fit.method


def _estimate(
    scores: JudgeScores,
    panel: JudgeScores,
    value: float,
    error: float,
    degrees: float,
    method: str,
    judges_random: bool,
) -> Estimate:
    silent = len(scores.judges) - panel.n_judges if panel.value.size else len(scores.judges)
    who = f"{panel.n_judges} judges" if not silent else f"{panel.n_judges} of {len(scores.judges)} judges"
    who = f"judges like the {who}" if judges_random else f"these {who}"

    def interval(level: float) -> ConfidenceInterval:
        if not error > 0.0:
            return ConfidenceInterval(float("nan"), float("nan"))
        half = float(t_quantile(level, degrees)) * error
        return ConfidenceInterval(value - half, value + half)

    sources = {Random.ITEMS, Random.REPEATS} | ({Random.JUDGES} if judges_random else set())
    return Estimate(
        value=value,
        standard_error=error,
        target=f"mean score by {who} over all items like the {int((scores.per_item > 0).sum())} scored",
        method=method,
        random=frozenset(sources),
        validity=Validity.FIXED_N,
        coverage=Coverage.EACH,
        asymptotic=True,
        n=int(scores.value.size),
        cost=scores.cost,
        interval=interval,
        details={
            "judges": float(panel.n_judges),
            "judges_silent": float(silent),
            "failed": float(scores.failed.sum()),
            "items_missing": float((scores.per_item == 0).sum()),
            "degrees": degrees,
        },
    )
