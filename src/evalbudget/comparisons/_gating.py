"""Verdicts of gates: on scores that are there, and on those that are bought for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.budget import shown_amount
from evalbudget.comparisons._baseline import PANEL, UNNAMED, Baseline
from evalbudget.comparisons._config import GateConfig
from evalbudget.comparisons._copies import copy_notes
from evalbudget.comparisons._evidence import Differences, GateEvidence, check_margin
from evalbudget.comparisons._gate import OF_BASELINE, Gate
from evalbudget.comparisons._gate_sampler import GateSampler
from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing, as_missing
from evalbudget.races import RacePurchase
from evalbudget.recorded._percent import check_one_unit
from evalbudget.run import Bill


def gate(
    baseline: Baseline,
    candidate: RecordedScores,
    *,
    margin: float,
    delta: float = 0.05,
    score: str | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    these_items: bool = False,
    cluster: str | None = None,
    missing: str = Missing.WORST,
    across_tasks: bool = False,
) -> Gate:
    """The verdict on a candidate whose scores are there.

    An answer that is missing is worth the worst for what is claimed: "not worse" is said only if it holds
    with the lowest scores in the candidate's gaps and the highest in the baseline's, "worse" only if it holds
    the other way round.

    The evidence is the mean of what :class:`~evalbudget.comparisons.GateSampler` would have gathered in
    several orders of the items, so that it depends on none. It may be looked at once: do not extend a log
    because it was undecided.

    Args:
        baseline: its scores.
        candidate: scores of one model.
        margin: what the candidate may be worse by, in the units of the score, above 0.
        delta: probability of a wrong verdict.
        score: of the candidate, by which it is compared; None for the only one, or the panel's.
        score_range: smallest and largest possible score.
        these_items: see Gate.
        cluster: by what items are clustered, if ``baseline`` has clusters; None: as its log declares.
        missing: what a missing answer counts as.
        across_tasks: take scores of tasks of different names or versions for those of one task, and ids for
            the same items whatever was asked under them.

    Raises:
        InvalidInputError: fewer than two items in common, a baseline without a score whose missing ones are
            to count, several models, a margin or a score out of range, another task, another direction.
        UnknownNameError: no such score or value of ``missing``.
        InvalidInferenceError: percent beside fractions.
    """
    missing = as_missing(missing)
    wanted = score or (None if baseline.score in (UNNAMED, PANEL) else baseline.score)
    other = Baseline.of(candidate, name="the candidate", score=wanted)
    other = replace(other, name=candidate.models[0])
    if not across_tasks:
        baseline.check_task(other.task)
    lower = baseline.same_direction(other)
    other, notes = other.by_question_of(baseline, trust_ids=across_tasks)
    if missing is Missing.ZERO and not baseline.scores:
        raise InvalidInputError(
            f"{baseline.name} has no score: all {len(baseline.missing):,} are missing, and no candidate is "
            "worse than zeros (--missing zero); evaluate the baseline"
        )
    scored = missing is Missing.DROP
    baseline.shared(list(other.scores) if scored else other.items, notes, scored=scored)
    alike = baseline.name == other.name
    kept, new = f"{baseline.name} (baseline)", f"{other.name} (candidate)"
    check_one_unit({each: np.array([*own.scores.values()]) for each, own in ((kept, baseline), (new, other))})
    baseline, other = baseline.within(score_range), other.within(score_range)
    if cluster is None and baseline.cluster is not None:
        baseline, cluster = replace(baseline, clusters=baseline.sampled), baseline.cluster
    asked = baseline.compared_with(other)
    absent = len(asked) - len(set(asked).intersection(other.items))
    items, (low, high) = asked, score_range
    if missing is Missing.DROP:
        items = [item for item in asked if item in baseline.scores and item in other.scores]
    code = baseline.codes(items) if cluster is not None and not these_items else np.arange(len(items))
    order = np.argsort(code, kind="stable")
    ordered = [items[k] for k in order.tolist()]
    differences = Differences.between(
        *(
            of_one.ends(ordered, score_range, lower_is_better=lower, missing=missing)
            for of_one in (other, baseline)
        )
    )
    evidence = GateEvidence.of(
        differences,
        code[order],
        margin=check_margin(margin, score_range),
        alpha=delta,
        largest=int(np.bincount(code).max()),
        pool=len(items) if these_items else None,
        span=high - low,
        unordered=True,
    )
    directed = {baseline.lower_is_better, other.lower_is_better} != {None}
    unsaid = "" if directed else other.direction_note or baseline.direction_note
    return Gate(
        kept if alike else baseline.name,
        new if alike else other.name,
        baseline.score,
        margin,
        evidence,
        len(items),
        these_items=these_items,
        cluster=None if these_items else cluster,
        missing=(
            baseline.answers_missing + len(baseline.outside.intersection(asked)),
            other.answers_missing + absent,
        ),
        not_asked=len(set(baseline.items).difference(asked)),
        handled=missing,
        lower_is_better=lower,
        is_kept=True,
        notes=(
            *(note for note in (unsaid, baseline.settings_note(other)) if note),
            *(f"Baseline: {note}" for note in baseline.notes),
            *(f"Candidate: {note}" for note in other.notes),
            *notes,
            *copy_notes(
                "Baseline and candidate",
                [(baseline.scores.get(item), other.scores.get(item)) for item in items],
            ),
        ),
    )


def gate_of(
    race: RacePurchase,
    config: GateConfig,
    score: str,
    bill: Bill | None = None,
    said_of_baseline: Sequence[str] = (),
) -> Gate:
    """The verdict on a candidate whose scores were bought, or are being bought.

    Args:
        race: of the baseline and the candidate, in this order, by :class:`GateSampler`.
        config: what the user asked for.
        score: that was compared.
        bill: that calls are on, where the budget is money or tokens.
        said_of_baseline: what its log says beside its scores.
    """
    assert isinstance(race.sampler, GateSampler)
    decided = race.sampler.evidence(1)
    given_up = ""
    for model, lane in enumerate(race.lanes[:2]):
        lost = lane.left or ("it kept failing" if model in race.sampler.lost else "")
        if lane.absent or not lost:
            continue
        errors = ", ".join(sorted(lane.tally.failures, key=lambda kind: -lane.tally.failures[kind])[:2])
        why = f"{lost}: {errors}" if errors and lane.left is None else lost
        given_up = f"{OF_BASELINE}{why}" if model == 0 else why
    if bill is not None:
        spent = f"{shown_amount(bill.spent, bill.cap.unit)} of {bill.cap} spent"
    else:
        spent = f"{race.evaluations:,} evaluations bought"
        spent += f", of {race.budget} at most" if config.budget is not None else ""
    asked = race.lanes[0].evaluations
    of_baseline = f"{asked:,.0f} evaluations were of the baseline" if asked else "the baseline cost nothing"
    return Gate(
        *(race.design.models[0], race.design.models[1], score, config.options["margin"], decided),
        n_items=race.design.n_items // race.repeats,
        repeats=race.repeats,
        these_items=race.sampler.these_items,
        cluster=config.cluster,
        spent=f"{spent[0].upper()}{spent[1:]}; {of_baseline}.",
        stopped="" if decided.verdict else f"Stopped: {race.stop_reason}.",
        given_up=given_up,
        handled=race.sampler.missing,
        lower_is_better=config.lower_is_better,
        is_kept=not asked,
        notes=tuple(f"Baseline: {note}" for note in said_of_baseline),
    )
