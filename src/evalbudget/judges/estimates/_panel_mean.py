"""The mean of judge means: what the panel would say, whatever the number of calls of each judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.judges.estimates._bias import how_compared, judge_moments, pooled_variance
from evalbudget.judges.estimates._mixed import MixedFit
from evalbudget.judges.estimates._scores import JudgeScores
from evalbudget.repeats.estimates._benchmark_mean import Interval, mean_of_item_means
from evalbudget.repeats.estimates._readings import ItemReadings
from evalbudget.repeats.estimates._unvaried import unvaried_interval
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._clustered_mean import clustered_mean, summed_errors
from evalbudget.statistics._phase_means import item_shares
from evalbudget.statistics._shrinkage import t_quantile

_NOTHING = 1e-12


def panel_mean(
    scores: JudgeScores, *, allocation: Allocation = Allocation.FIXED, fixed_repeats: int = 0
) -> Estimate:
    r"""Mean over the judges of their mean scores, every judge weighing the same.

    The raw mean of the scores is biased where judges have different numbers of calls (failures, incomplete
    cycles, counts by price). With one score per item (m = 1)

    .. math:: \hat\theta = \frac1K \sum_l \bar x_l, \quad
              \widehat{\mathrm{Var}} = \frac1{K^2} \sum_l \frac{s^2}{n_l}

    with s^2 pooled within judges and t on n - K degrees of freedom; where counts differ by more than one,
    each judge's own s_l^2 and Satterthwaite's degrees. With several scores per item, r_i is the mean over the
    item's scores of x - gammahat, and

    .. math:: \hat\theta = \frac1n \sum_i r_i = \sum_s c_s x_s

    with gammahat by generalised least squares (judges fixed, items random; see :mod:`.mixed`), so judges need
    not be connected through items. Its variance comes from the items' residuals :math:`\sum_s c_s \hat e_s`,
    with the degrees of freedom that fitting K judges leaves (Satterthwaite): s_r^2/n on n - 1 in balanced
    designs, about n m - K where judges are many. Every item weighs the same, however many scores it has.

    Items and generations are random; the judges are these ones. How many scores an item has must not depend
    on the scores, unless ``allocation`` says how it does: after ADAPTIVE allocation only the first
    ``fixed_repeats`` epochs count; after PHASED all scores count, r_i being folded over phases
    (:mod:`evalbudget.statistics._phase_means`). Failures may differ between judges.

    Judges without scores are left out: the target says so, and ``details["judges_silent"]`` counts them.

    Args:
        scores: of one model.
        allocation: of the sampler that bought the scores.
        fixed_repeats: epochs below this were bought whatever the scores; required under ADAPTIVE.

    Returns:
        Estimate, fixed-n, asymptotic. nan without scores; the standard error is nan where less than one
        degree of freedom is left to estimate it from, and no interval is claimed where it is 0.

    Raises:
        InvalidInferenceError: allocation is ADAPTIVE and ``fixed_repeats`` is below 1.
    """
    if allocation is Allocation.PHASED and not scores.knows_phases:
        allocation = Allocation.ADAPTIVE  # a log that was scored again has the scores alone
    used, how_used = _usable(scores, allocation, fixed_repeats)
    panel = used.scoring_panel()
    K = panel.n_judges
    if not panel.value.size:
        return _estimate(scores, panel, float("nan"), float("nan"), 1.0, "no scores")
    if panel.is_once:
        mean, _ = judge_moments(panel)
        v, degrees = pooled_variance(panel)
        value, variance = float(mean.mean()), float((v / panel.counts).sum()) / K**2
        method = "mean of judge means, one score per item"
    else:
        fit = MixedFit.of(panel)
        weight = fit.panel_weights(_item_weights(panel, allocation))
        value, found = float(weight @ panel.value), fit.error(weight)
        variance, degrees = found.own, found.degrees
        method = f"mean of judge-corrected item means, {how_compared(panel)}"
    error = float(np.sqrt(variance)) if degrees >= 1.0 else float("nan")
    return _estimate(scores, panel, value, error, degrees, method + how_used)


def between_clusters(estimate: Estimate, means: FloatArray, clusters: IntArray) -> Estimate:
    """A panel's mean of items that come in clusters: what these add to the variance of item means is added.

    Clusters that would take some of it away change nothing, so that the error is never below the panel's own.

    Args:
        estimate: of the panel, items independent.
        means: of the items, with judges' deviations taken out; nan where there is none.
        clusters: number of each item's cluster, same shape.

    Returns:
        Estimate with the degrees of freedom of both parts (Satterthwaite); with one cluster no error.
    """
    clustered = clustered_mean(means, clusters)
    more = clustered.standard_error**2 - clustered_mean(means, np.arange(means.size)).standard_error ** 2
    if more <= 0.0 or not estimate.standard_error > 0.0:
        return estimate
    own = (estimate.standard_error**2, estimate.details["degrees"])
    error, degrees = (float(each) for each in summed_errors(own, (more, clustered.degrees)))
    return replace(
        estimate,
        standard_error=error,
        interval=_student(estimate.value, error, degrees),
        method=f"{estimate.method}, spread between {clustered.clusters} clusters of items",
        details={**estimate.details, "degrees": degrees},
    )


def error_of_biases(means: FloatArray, whole: Estimate) -> tuple[float, float]:
    """Variance that fitting the judges' biases adds to the mean, with its degrees of freedom.

    Items' scores less the biases do not show it: an error of a bias is in all of them. None to speak of where
    judges share the scores evenly; most of the error where one of them has few.

    Args:
        means: of the items, less the biases; nan where nothing is known.
        whole: the panel's mean, items independent.
    """
    known = means[~np.isnan(means)]
    more = whole.standard_error**2 - float(known.var(ddof=1)) / known.size if known.size > 1 else 0.0
    return (more, max(whole.details["degrees"], 1.0)) if more > _NOTHING else (0.0, 1.0)


def panel_mean_of(
    means: FloatArray,
    biases: tuple[float, float],
    *,
    bounds: tuple[float, float] | None = None,
    clusters: ArrayLike | None = None,
) -> Estimate:
    """The panel's mean by what is known of each item.

    Args:
        means: of the items; nan where nothing is known.
        biases: see :func:`error_of_biases`.
        bounds: the smallest and the largest possible score; intervals end there.
        clusters: number of each item's cluster; None where items are independent.
    """
    found = mean_of_item_means(means, clusters=clusters)  # less their judges' biases, they may be outside
    value, (added, degrees) = found.value, biases
    if added > 0.0 and found.standard_error > _NOTHING:
        error, freedom = summed_errors((found.standard_error**2, found.n - 1), (added, degrees))
        found = replace(found, interval=_student(value, float(error), float(freedom)))
    elif bounds is not None and found.standard_error <= _NOTHING:
        cases, ends = int(found.details["cases"]), bounds
        found = replace(found, interval=lambda level: unvaried_interval(value, cases, ends, level))
    return found if bounds is None else found.within(*bounds)


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
    epoch = panel.epoch
    if panel.value.size and np.bincount(panel.generation).max() > 1:
        epoch = np.arange(panel.item.size) - (np.cumsum(panel.per_item) - panel.per_item)[panel.item]
    return _readings(panel, panel.item, epoch, _corrected(panel), panel.phase)


def judge_corrected_generations(scores: JudgeScores) -> ItemReadings:
    """The same with one reading per generation: the mean over the judges who scored it.

    What several judges say of one generation is not several repeats, so errors of repeats rest on this form.
    """
    panel = scores.scoring_panel()
    first = np.flatnonzero(np.diff(panel.generation, prepend=-1))
    mean = np.bincount(panel.generation, _corrected(panel)) / np.bincount(panel.generation)
    phase = None if panel.phase is None else panel.phase[first]
    return _readings(panel, panel.item[first], panel.epoch[first], mean, phase)


def _corrected(panel: JudgeScores) -> FloatArray:
    """Every score less what its judge gives more than the others."""
    return panel.value - MixedFit.of(panel).gamma[panel.judge] if panel.value.size else panel.value


def _readings(
    panel: JudgeScores, item: IntArray, epoch: IntArray, value: FloatArray, phase: FloatArray | None
) -> ItemReadings:
    """As many readings of the panel's items, at what the panel cost."""
    return ItemReadings.of(
        item,
        epoch,
        value,
        n_items=panel.n_items,
        cost=panel.cost,
        phase=phase,
        phase_sizes=panel.phase_sizes,
    )


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
    degrees = max(means.size - 1.0, 1.0)
    return _estimate(scores, scores.scoring_panel(), value, error, degrees, "raw mean of the scores")


def _usable(scores: JudgeScores, allocation: Allocation, fixed_repeats: int) -> tuple[JudgeScores, str]:
    if allocation is Allocation.FIXED:
        return scores, ""
    if allocation is Allocation.PHASED:
        return scores, ", folded over phases"
    if fixed_repeats < 1:
        raise InvalidInferenceError(
            "scores were allocated adaptively, so the mean of all of them is biased, and fixed_repeats is "
            f"{fixed_repeats}; pass the sampler's fixed_repeats (its warm-up), or use a sampler that buys "
            "in phases, such as auto"
        )
    how = f", first {fixed_repeats} scores of each (the others were bought because of the scores)"
    return scores.where(scores.epoch < fixed_repeats), how


def _item_weights(panel: JudgeScores, allocation: Allocation) -> FloatArray:
    """Weight of every score in the mean over items of their means."""
    phase = panel.phase if allocation is Allocation.PHASED else None
    shares = item_shares(panel.item, phase, panel.n_items, panel.phase_sizes)
    return shares / np.count_nonzero(panel.per_item)


def _estimate(
    scores: JudgeScores, panel: JudgeScores, value: float, error: float, degrees: float, method: str
) -> Estimate:
    silent = len(scores.judges) - panel.n_judges if panel.value.size else len(scores.judges)
    who = f"{panel.n_judges} judges" if not silent else f"{panel.n_judges} of {len(scores.judges)} judges"
    return Estimate(
        value=value,
        standard_error=error,
        target=f"mean score by these {who} over all items like the {int((scores.per_item > 0).sum())} scored",
        method=method,
        random=frozenset({Random.ITEMS, Random.REPEATS}),
        validity=Validity.FIXED_N,
        coverage=Coverage.EACH,
        asymptotic=True,
        n=int(panel.value.size),
        cost=scores.cost,
        interval=_student(value, error, degrees),
        details={
            "judges": float(panel.n_judges),
            "judges_silent": float(silent),
            "failed": float(scores.failed.sum()),
            "items_missing": float((scores.per_item == 0).sum()),
            "degrees": degrees,
        },
    )


def _student(value: float, error: float, degrees: float) -> Interval:
    """Student's t interval; none where there is no error."""

    def interval(level: float) -> ConfidenceInterval:
        half = float(t_quantile(level, degrees)) * error if error > 0.0 else float("nan")
        return ConfidenceInterval(value - half, value + half)

    return interval
