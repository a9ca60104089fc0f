"""Are differences between models real? Paired differences on the same items, all at once.

Each comparison is the mean over shared items of the difference of two models' item means, with an error that
takes clusters of items for what was sampled (:mod:`evalbudget.statistics._clustered_mean`), is a little
larger where few items differ (:mod:`evalbudget.statistics._paired_interval`), and of panels counts the error
of the judges' biases. Intervals of all comparisons and metrics hold at once with the stated level
(Bonferroni; pairs that share no item take no part), and the verdicts follow from them.

They are asymptotic: 1 - level is about the probability that any verdict is wrong, for many items of which
none stands out. Where a difference of 0 is made of rare catastrophes and small gains, more verdicts are wrong
than that. The guaranteed form rests on the gate's evidence (:mod:`evalbudget.comparisons._guaranteed`) and
holds however scores are spread within a known range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from evalbudget._fields import NOTHING
from evalbudget.backtest import RecordedScores
from evalbudget.comparisons._comparisons import Comparison, Comparisons, Outcome
from evalbudget.comparisons._copies import copy_notes
from evalbudget.comparisons._guaranteed import guaranteed_interval, require_range
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.estimate import ConfidenceInterval
from evalbudget.missing import Missing
from evalbudget.recorded._differences import require_one_version
from evalbudget.recorded._direction import notes_of
from evalbudget.recorded._percent import require_one_unit
from evalbudget.recorded._side_by_side import side_by_side
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray, IntArray, check_level
from evalbudget.statistics._clustered_mean import ClusteredMean, clustered_mean, summed_errors
from evalbudget.statistics._paired_interval import PairedMeans, items_needed

POWER = 0.8
"""Of the further items that an undecided comparison is said to need."""


def compare(
    recorded: RecordedScores | Mapping[str, RecordedScores],
    *,
    margin: float | None = None,
    against: str | None = None,
    models: Sequence[str] = (),
    scores: Sequence[str] = (),
    cluster: str | None = None,
    level: float = 0.95,
    across_tasks: bool = False,
    guaranteed: bool = False,
    missing: str = Missing.WORST,
    score_range: tuple[float, float] | None = None,
) -> Comparisons:
    """Which differences between models are real?

    Args:
        recorded: the scores; several recordings, by path, are put side by side.
        margin: differences smaller than this do not matter, in the units of the scores, above 0.
        against: compare all with this model only; None for all pairs.
        models: only these; empty for all.
        scores: only these metrics, or judges; empty for all. Different metrics are compared one by one,
            judges of the same thing as a panel.
        cluster: by what ``categories`` cluster items, for what is said; None: as the source declares, or by
            nothing.
        level: of all intervals together.
        across_tasks: take recordings of tasks of different names or versions for one task.
        guaranteed: wider intervals that hold however scores are spread; for scores of a known range.
        missing: what an item counts as that one of two models has no score on.
        score_range: smallest and largest possible score; None: as the source declares it, or 0 to 1 where
            all scores are one of them.

    Raises:
        InvalidInputError: a margin of 0 or less, fewer than two models, no item in common, no clusters, a
            score out of range, no known range where one is needed.
        UnknownNameError: no such model, score or value of ``missing``.
        InvalidInferenceError: a model without a score, or one whose scores were all bought because of others;
            percent beside fractions.
    """
    check_level(level)
    if margin is not None and not (math.isfinite(margin) and margin > 0.0):
        raise InvalidInputError(
            f"--margin {margin:g} is no difference that could be too small to matter; give one above 0, for "
            "example 0.01"
        )
    if isinstance(recorded, Mapping):
        recorded = side_by_side(recorded, across_tasks=across_tasks)
    chosen = _chosen("model", models, recorded.models)
    if against is not None and against not in recorded.models:
        raise UnknownNameError("model in --against", against, recorded.models)
    if against is not None and recorded.models.index(against) not in chosen:
        chosen = [recorded.models.index(against), *chosen]
    if len(chosen) < 2:
        raise InvalidInputError(
            f"a comparison needs two models, and there is only {recorded.models[chosen[0]]}; give a second "
            "log, or a recording of several models"
        )
    raters = _chosen("score", scores, recorded.raters)
    recorded = recorded.part(models=np.array(chosen), raters=np.array(raters))
    if score_range is None:
        require_one_unit(recorded)
    if cluster is not None:  # what it names was sampled, and is not given as the tasks of a group are
        recorded = replace(recorded, by_category=False)
    codes = [_clusters(part, cluster) for _, part in _measures(recorded)]
    alone: list[str] = []
    if cluster is None and recorded.declared is not None and recorded.declared.cluster is not None:
        cluster = recorded.declared.cluster
        alone = [name for name, part in _measures(recorded) if Study(part).clusters is None]
    studies = [
        (name, Study.of(part, level=level, missing=missing, bounds=score_range))
        for name, part in _measures(recorded)
    ]
    for name, study in studies:
        if study.is_panel and study.bounds is None:
            study.require_one_scale("--score NAME")
        if guaranteed:
            require_range(name, study)
    pairs = [
        (a, b) if against is None or recorded.models[a] != against else (b, a)
        for a, b in combinations(range(len(recorded.models)), 2)
        if against is None or against in (recorded.models[a], recorded.models[b])
    ]
    if recorded.declared is not None and recorded.race is None and not across_tasks:
        require_one_version(recorded.models, recorded.declared.settings, pairs)
    asked = [
        (metric, study, pair, own)
        for (metric, study), own in zip(studies, codes, strict=True)
        for pair in pairs
    ]
    comparable = sum(study.of_both(*pair).is_comparable for _, study, pair, _ in asked)
    if not comparable and (recorded.race is not None or not _all_missing_of_one(asked)):
        if recorded.race is not None:
            raise InvalidInputError(
                f"the scores of a {recorded.race.kind} were bought because of each other and are not "
                f"compared again; its own verdict: {recorded.race.sentence}"
            )
        for _, study in studies:
            for model in range(len(recorded.models)):
                study.mean(model)  # says what a model without scores that count lacks
        raise InvalidInputError(
            " ".join(
                [
                    "no two of the models were scored on the same item, so nothing can be compared.",
                    *notes_of(recorded),
                ]
            ).removesuffix(".")
        )
    alpha = (1.0 - level) / max(comparable, 1)
    rows = tuple(
        compared_pair(metric, study, pair, own, alpha, margin, guaranteed=guaranteed)
        for metric, study, pair, own in asked
    )
    notes = [
        f"{name}: {study.missing_note}" if len(studies) > 1 else study.missing_note
        for name, study in studies
        if study.missing_note
    ]
    for name, study, (a, b), _ in asked:
        both = np.stack([study.item_means(a), study.item_means(b)], axis=1)
        of = f"{f'{name}: ' if len(studies) > 1 else ''}{recorded.models[a]} and {recorded.models[b]}"
        notes += copy_notes(of, both[~np.isnan(both).all(axis=1)].tolist())
    return Comparisons(
        rows,
        level,
        margin,
        cluster,
        guaranteed=guaranteed,
        lower_is_better=tuple(name for name, study in studies if study.lower_is_better),
        notes=(*notes, *notes_of(recorded)),
        comparable=comparable,
        unclustered=tuple(alone),
    )


def _all_missing_of_one(asked: Iterable[tuple[str, Study, tuple[int, int], IntArray]]) -> bool:
    """Whether a model of some pair has no score at all and answers of the pair are missing."""
    return any(
        any(study.of_both(*pair).missing) and not study.recorded.counts[list(pair)].any(axis=(1, 2)).all()
        for _, study, pair, _ in asked
    )


def _measures(recorded: RecordedScores) -> list[tuple[str, RecordedScores]]:
    """Each metric by itself, or the judges together."""
    if recorded.one_measure:
        return [(recorded.raters[0] if len(recorded.raters) == 1 else "panel", recorded)]
    return [
        (name, recorded.part(raters=np.array([r]), may_be_empty=True))
        for r, name in enumerate(recorded.raters)
    ]


def _chosen(kind: str, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    for name in wanted:
        if name not in names:
            raise UnknownNameError(kind, name, names)
    return [i for i, name in enumerate(names) if not wanted or name in wanted]


def _clusters(recorded: RecordedScores, cluster: str | None) -> IntArray:
    """Number of each item's cluster, shape (items,)."""
    if cluster is None and recorded.declared is not None and recorded.declared.clusters is not None:
        return np.unique(np.asarray(recorded.declared.clusters), return_inverse=True)[1].astype(np.int64)
    if cluster is None:
        return np.arange(len(recorded.items))
    if recorded.categories is None:
        raise InvalidInputError(
            f"--cluster {cluster}: the scores do not say which {cluster!r} each item belongs to; leave it "
            "out, or give scores that do"
        )
    codes = np.unique(np.asarray(recorded.categories), return_inverse=True)[1].astype(np.int64)
    if not codes.any():
        raise InvalidInputError(
            f"--cluster {cluster}: all items belong to one, {recorded.categories[0]!r}, so nothing was "
            "sampled twice; leave it out, or give a field that tells items apart"
        )
    return codes


def compared_pair(
    metric: str,
    study: Study,
    pair: tuple[int, int],
    codes: IntArray,
    alpha: float,
    margin: float | None,
    *,
    guaranteed: bool = False,
) -> Comparison:
    """Compare two models.

    Args:
        metric: what their scores are called.
        study: that holds them.
        pair: their numbers; the first less the second.
        codes: number of each item's cluster, shape (items,).
        alpha: probability of a wrong verdict.
        margin: differences smaller than this do not matter; None: none is given.
        guaranteed: see :func:`compare`.
    """
    both, lower = study.of_both(*pair), study.lower_is_better
    parts = [(block, block.study.of_both(*pair)) for block in study.blocks(codes)]

    def differences(first: str, second: str) -> PairedMeans:
        """Of the first model's mean less the second's, by two tables of item means."""
        means = []
        for block, two in parts:
            apart = (getattr(two, first)[0] - getattr(two, second)[1])[block.here]
            shares = None if block.strata is None else block.strata.weights(~np.isnan(apart))
            means.append(_with_judges(clustered_mean(apart, codes[block.items], weights=shares), two.errors))
        weights = [
            mean.n if block.weight is None else block.weight
            for (block, _), mean in zip(parts, means, strict=True)
        ]
        return PairedMeans.of(means, weights)

    def interval(first: str, second: str) -> ConfidenceInterval:
        if guaranteed:
            assert study.bounds is not None
            difference = getattr(both, first)[0] - getattr(both, second)[1]
            return guaranteed_interval(difference, codes, alpha, study.bounds)
        ends = differences(first, second).intervals(alpha=alpha, span=study.span)
        return ConfidenceInterval(float(ends.low), float(ends.high))

    found = differences("means", "means").whole
    if guaranteed:  # of the items as they are, whatever strata they are of
        found = _with_judges(clustered_mean(both.means[0] - both.means[1], codes), both.errors)
    middle = bounds = interval("means", "means")
    if any(both.missing) and found.n:
        at_worst, at_best = interval("lowest", "highest"), interval("highest", "lowest")
        known = not math.isnan(at_worst.low) and not math.isnan(at_best.high)
        seen = found.value  # of the items that both have; it stands beside the interval
        ends = (min(at_worst.low, seen), max(at_best.high, seen)) if known else (math.nan, math.nan)
        bounds = ConfidenceInterval(*ends)
    outcome, needed = _outcome(bounds, margin, lower=lower), None
    if outcome is Outcome.UNDECIDED and not any(both.missing) and not guaranteed:
        needed = items_needed(found, alpha=alpha, span=study.span, margin=margin, power=POWER)
    return Comparison(
        first=study.models[pair[0]],
        second=study.models[pair[1]],
        metric=metric,
        difference=found.value,
        standard_error=found.standard_error,
        low=bounds.low,
        high=bounds.high,
        items=found.n,
        clusters=found.clusters,
        outcome=outcome,
        items_needed=needed,
        missing=both.missing,
        if_dropped=_outcome(middle, margin, lower=lower),
    )


def _with_judges(found: ClusteredMean, errors: tuple[FloatArray, FloatArray]) -> ClusteredMean:
    """With the error of the judges' biases, which are fitted to each model by itself."""
    added, degrees = errors
    if not added.any() or not found.standard_error > NOTHING:
        return found
    parts = zip(added.tolist(), degrees.tolist(), strict=True)
    error, freedom = summed_errors((found.standard_error**2, found.degrees), *parts)
    return replace(found, standard_error=float(error), degrees=float(freedom))


def _outcome(found: ConfidenceInterval, margin: float | None, *, lower: bool) -> Outcome:
    low, high = found.low, found.high
    if margin is not None and -margin < low and high < margin:
        return Outcome.EQUIVALENT
    if low > 0.0:
        return Outcome.SECOND if lower else Outcome.FIRST
    if high < 0.0:
        return Outcome.FIRST if lower else Outcome.SECOND
    return Outcome.UNDECIDED
