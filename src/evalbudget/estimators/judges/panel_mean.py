"""The mean of judge means: what the panel would say, whatever the number of calls of each judge."""

from __future__ import annotations

import numpy as np

from evalbudget.confidence.bounds import FloatArray
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimators.judges.bias import fit_judges, judge_moments, pooled_variance
from evalbudget.estimators.judges.scores import JudgeScores
from evalbudget.estimators.readings import ItemReadings
from evalbudget.estimators.result import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.sampler import Allocation
from evalbudget.shrinkage import t_quantile


def panel_mean(
    scores: JudgeScores,
    *,
    judges_random: bool = False,
    allocation: Allocation = Allocation.FIXED,
    fixed_repeats: int = 0,
) -> Estimate:
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

    How many scores an item has must not depend on the scores, unless ``allocation`` says how it does: after
    ADAPTIVE allocation only the first ``fixed_repeats`` epochs count; after CROSS_FIT r_i is the mean of the
    item's two half-means (even and odd epochs), and all scores count. Failures may differ between judges.

    Judges without scores are left out: the target says so, and ``details["judges_silent"]`` counts them.

    Args:
        scores: of one model.
        judges_random: answer for judges like these rather than for these judges.
        allocation: of the sampler that bought the scores.
        fixed_repeats: epochs below this were bought whatever the scores; required under ADAPTIVE.

    Returns:
        Estimate, fixed-n, asymptotic. nan without scores; the standard error is nan where a single score or
        item leaves nothing to estimate it from, and no interval is claimed where it is 0.

    Raises:
        InvalidInferenceError: ``judges_random`` with scores of a single judge; or allocation is ADAPTIVE and
            ``fixed_repeats`` is below 1.
    """
    used, how_used = _usable(scores, allocation, fixed_repeats)
    panel = used.scoring_panel()
    K, n_scored = panel.n_judges, int(np.count_nonzero(used.per_item))
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
        value, variance, gamma, gamma_noise, how = _several(panel, n_scored, allocation)
        degrees, method = float(n_scored - 1), f"mean of judge-corrected item means, {how}"
    method += how_used
    if judges_random:
        noise = float(np.trace(gamma_noise)) / K * (K - 1) / K
        spread = max(float((gamma**2).mean()) - noise, 0.0) * K / (K - 1)
        variance, degrees = variance + spread / K, min(degrees, K - 1.0)
    error = float(np.sqrt(variance)) if degrees >= 1.0 else float("nan")
    return _estimate(scores, panel, value, error, degrees, method, judges_random)


def judge_corrected(scores: JudgeScores) -> ItemReadings:
    r"""Scores with the judges' deviations taken out, for estimates of single items.

    Item i's mean of :math:`x_{ijl} - \hat\gamma_l` estimates its mean over the panel, whichever judges it
    met; :math:`\hat\gamma` (see :func:`judge_biases`) is fitted to all scores and taken for known: its error
    is that of all items' scores together, small against that of one item's. An interaction of item and judge
    stays in. Corrected scores may leave the range of the scale.

    Returns:
        Readings with the epochs of the scores; where several judges scored a generation, numbered anew.
    """
    panel = scores.scoring_panel()
    gamma = fit_judges(panel).gamma if panel.n_judges > 1 else np.zeros(panel.n_judges)
    value = panel.value - gamma[panel.judge] if panel.value.size else panel.value
    epoch = panel.epoch
    if panel.value.size and np.bincount(panel.generation).max() > 1:
        epoch = np.arange(panel.item.size) - (np.cumsum(panel.per_item) - panel.per_item)[panel.item]
    return ItemReadings.of(panel.item, epoch, value, n_items=scores.n_items, cost=scores.cost)


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


def _usable(scores: JudgeScores, allocation: Allocation, fixed_repeats: int) -> tuple[JudgeScores, str]:
    if allocation is Allocation.FIXED:
        return scores, ""
    if allocation is Allocation.CROSS_FIT:
        return scores, ", cross-fit halves"
    if fixed_repeats < 1:
        raise InvalidInferenceError(
            "scores were allocated adaptively, so the mean of all of them is biased, and fixed_repeats is "
            f"{fixed_repeats}; pass the sampler's fixed_repeats (its warm-up), or sample with cross-fit"
        )
    how = f", first {fixed_repeats} scores of each (the others were bought because of the scores)"
    return scores.where(scores.epoch < fixed_repeats), how


def _item_means(panel: JudgeScores, value: FloatArray, allocation: Allocation) -> FloatArray:
    """Mean of each item that has any; under cross-fit of its half-means. Shape (items with a score,)."""
    if allocation is not Allocation.CROSS_FIT:
        counts = panel.per_item
        return np.asarray((np.bincount(panel.item, value, panel.n_items) / np.maximum(counts, 1))[counts > 0])
    half = 2 * panel.item + panel.epoch % 2
    counts = np.bincount(half, minlength=2 * panel.n_items)
    means = np.bincount(half, value, 2 * panel.n_items) / np.maximum(counts, 1)
    halves = (counts.reshape(-1, 2) > 0).sum(axis=1)
    return np.asarray((means.reshape(-1, 2).sum(axis=1) / np.maximum(halves, 1))[halves > 0])


def _several(
    panel: JudgeScores, n: int, allocation: Allocation
) -> tuple[float, float, FloatArray, FloatArray, str]:
    fit = fit_judges(panel) if panel.n_judges > 1 else None
    gamma = np.zeros(1) if fit is None else fit.gamma
    r = _item_means(panel, panel.value - gamma[panel.judge], allocation)
    variance = float(r.var(ddof=1)) / n if n > 1 else float("nan")
    if fit is None:
        return float(r.mean()), variance, gamma, np.zeros((1, 1)), "one judge"
    calls = (_item_means(panel, (panel.judge == j).astype(float), allocation) for j in range(panel.n_judges))
    imbalance = np.array([share.mean() for share in calls]) - 1.0 / panel.n_judges
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
