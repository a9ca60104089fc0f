"""backtest_audits(): a judge and a few labels, replayed on scores whose labels are all known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.backtest._result_table import AuditResult, AuditRow
from evalbudget.audits.policies import DECIDED, AuditOutcome, AuditPolicy, Verdict
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._direction import is_lower_better
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._contestant import checked_seeds, require_entrants, require_options
from evalbudget.replay._workers import Job, Progress, run_all
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._means import mean_of_known

ATTEMPTS = 3
"""To get a score or a label that is missing from the recording; all of them are paid for."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Judge scores and labels of every system and item.

    Attributes:
        models: names.
        items: names.
        judge: shape (models, items), in units of ``judge_range``; nan where it failed.
        label: shape (models, items), in units of ``score_range``; nan where there is none.
        categories: optional, one per item.
        score_range: of the labels.
        judge_range: of the judge.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    judge: FloatArray
    label: FloatArray
    categories: tuple[str, ...] | None
    score_range: tuple[float, float]
    judge_range: tuple[float, float]

    @classmethod
    def of(
        cls,
        recorded: RecordedScores,
        rater: str | None = None,
        score_range: tuple[float, float] | None = None,
        judge_range: tuple[float, float] | None = None,
    ) -> Judged:
        """From a recording with a reference; the mean over repeats, raters and reference raters.

        Raises:
            InvalidInputError: no reference, scores outside their range, or a system without any.
        """
        if recorded.reference is None:
            raise InvalidInputError(
                "the recording has no 'reference', the labels that an audit would buy; audits can be "
                "replayed only where every label is known: add an array reference (models, items, labels)"
            )
        chosen = recorded.select(rater=rater)
        judge = mean_of_known(chosen.true_scores)
        label = mean_of_known(recorded.reference)
        for what, scores in (("label in the reference", label), ("score of the judge", judge)):
            without = np.flatnonzero(np.isnan(scores).all(axis=1))
            if without.size:
                raise InvalidInputError(
                    f"system {recorded.models[without[0]]!r} has no {what}; leave it out or record some"
                )
        low, high = bounds = score_range or (0.0, 1.0)
        judges = judge_range or bounds
        for what, scores, (lo, hi), option in (
            ("label", label, bounds, "score range"),
            ("judge score", judge, judges, "judge range"),
        ):
            outside = (scores < lo) | (scores > hi)
            if outside.any():
                raise InvalidInputError(
                    f"{what} {scores[outside][0]:g} is outside {lo:g} to {hi:g}; declare the {option} "
                    f"(these run from {np.nanmin(scores):g} to {np.nanmax(scores):g})"
                )
        if is_lower_better(chosen):  # audits look for the highest mean
            label, judge = low + high - label, judges[0] + judges[1] - judge
        return cls(recorded.models, recorded.items, judge, label, recorded.categories, (low, high), judges)

    @property
    def segments(self) -> tuple[int, ...] | None:
        """The number of each item's category; None without categories."""
        if self.categories is None:
            return None
        number = {name: index for index, name in enumerate(sorted(set(self.categories)))}
        return tuple(number[name] for name in self.categories)

    @property
    def units(self) -> tuple[FloatArray, FloatArray]:
        """Judge scores and labels rescaled to [0, 1]; nan stays."""
        (low, high), (lowest, highest) = self.judge_range, self.score_range
        return (self.judge - low) / (high - low), (self.label - lowest) / (highest - lowest)

    @property
    def means(self) -> FloatArray:
        """Mean label of each system, shape (models,)."""
        return np.asarray(np.nanmean(self.label, axis=1), dtype=np.float64)


def backtest_audits(
    recorded: RecordedScores,
    samplers: Sequence[str | type[AuditPolicy]] = ("audit-eprocess", "pp-lucb", "human-only"),
    allocators: Sequence[str] = ("uniform",),
    seeds: Iterable[int] | int = 20,
    *,
    rater: str | None = None,
    score_range: tuple[float, float] | None = None,
    judge_range: tuple[float, float] | None = None,
    prices: tuple[float, float] = (1.0, 20.0),
    delta: float = 0.05,
    margin: float = 0.0,
    top: float = 0.01,
    sampler_options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Compare the recorded systems by the recorded judge and few of the recorded labels.

    Labels are asked for in whole batches. ``reference`` gives the labels: the mean of the human raters.

    Args:
        recorded: two or more systems, with a reference.
        samplers: names or classes of audit policies. Those with a setting ``margin`` or ``allocator`` are
            given these.
        allocators: one row each for samplers that take one.
        seeds: one replay each; a number n is the seeds 0 to n - 1.
        rater: the judge; None for the mean of all raters.
        score_range: smallest and largest possible label; None for 0 and 1.
        judge_range: smallest and largest possible judge score; None for the same.
        prices: of a judge's score and of a label.
        delta: probability of error.
        margin: share of the range; within it of the best a system is good enough.
        top: how far below the best still counts as top, as a share of the range.
        sampler_options: further settings by policy.
        workers: processes; 1 for this one. None for one per processor, or this one if the work is small.
        progress: called with (replays finished, replays in all).

    Raises:
        UnknownNameError: no such sampler, rater or allocator; suggests the nearest.
        InvalidInputError: one system, no reference, scores outside the range, or an argument out of range.
        EvalbudgetError: a worker died.
    """
    data = Judged.of(recorded, rater, score_range, judge_range)
    if len(data.models) < 2:
        raise InvalidInputError("one system has nothing to be compared with; record two or more")
    if not 0.0 <= top <= 1.0:
        raise InvalidInputError(f"top is {top:g}; it is a share of the score range, in 0 to 1")
    policies = [plugins().audit_policy(s) if isinstance(s, str) else s for s in samplers]
    require_entrants([policy.name for policy in policies], sampler_options)
    seed_list = checked_seeds(seeds)
    span = data.score_range[1] - data.score_range[0]
    ours = {"n_models": len(data.models), "n_items": len(data.items), "segments": data.segments}
    known = {"judge_price": prices[0], "label_price": prices[1], "delta": delta, "margin": margin}
    entrants: list[tuple[type[AuditPolicy], str, dict[str, Any]]] = []
    for policy in policies:
        options, accepts = sampler_options.get(policy.name, {}), policy.options()
        require_options(policy.name, options, accepts, {*ours, "seed"})
        common = {name: value for name, value in known.items() if name in accepts}
        for allocator in allocators if "allocator" in accepts else ["-"]:
            more = {"allocator": allocator} if "allocator" in accepts else {}
            entrants.append((policy, allocator, {**common, **more, **options, **ours}))
    for _, _, settings in entrants:
        if settings.get("allocator") == "oracle":
            settings.setdefault("truth", residuals(data).tolist())
    jobs = [Job(0, c, seed, ()) for c in range(len(entrants)) for seed in seed_list]
    stage = _Stage(data, tuple((policy, settings) for policy, _, settings in entrants))
    found = run_all(stage, jobs, workers=workers, progress=progress, readings=len(jobs) * data.judge.size)
    n = len(seed_list)
    rows = [
        _row(policy.name, allocator, found[c * n : (c + 1) * n], data, top * span, margin * span, delta)
        for c, (policy, allocator, _) in enumerate(entrants)
    ]
    means, judges = data.means, np.nanmean(data.judge, axis=1)
    first = int(np.argmax(judges))
    return AuditResult(
        rows=tuple(rows),
        models=data.models,
        items=len(data.items),
        best=data.models[int(np.argmax(means))],
        judge_best=data.models[first],
        top=top * span,
        behind=float(means.max() - means[first]),
        prices=prices,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """What all jobs share."""

    data: Judged
    entrants: tuple[tuple[type[AuditPolicy], dict[str, Any]], ...]

    def run(self, job: Job) -> tuple[Verdict, int]:
        policy, settings = self.entrants[job.contestant]
        return _replay(self.data, policy.of({**settings, "seed": job.seed}))


def _replay(data: Judged, policy: AuditPolicy) -> tuple[Verdict, int]:
    """The verdict, with everything that was asked for as its price, and how many answers were drawn."""
    judge, label = data.units
    paid_scores = paid_labels = labels = 0
    scored: set[tuple[int, int]] = set()
    drawn: dict[int, AuditDraw] = {}
    while not policy.over:
        contexts = [context for context in policy.contexts if context.judged]
        for context in contexts:
            for model in context.models:
                if (model, context.item) not in scored:
                    scored.add((model, context.item))
                    paid_scores += _attempts(judge[model, context.item])
        for context in contexts:
            policy.judge(context, judge[list(context.models), context.item])
        drawn |= {draw.index: draw for draw in policy.draws[len(drawn) :]}
        wanted = [drawn[index] for index in policy.wanted]
        for draw in wanted:
            value = label[draw.model, draw.item]
            paid_labels += _attempts(value)
            labels += not math.isnan(value)
            policy.label(draw.index, value)
        if not contexts and not wanted:
            raise InvalidInputError(
                f"audit policy {policy.name!r} goes on and wants nothing judged or labelled: a bug in it"
            )
    cost = policy.config.judge_price * paid_scores + policy.config.label_price * paid_labels
    verdict = replace(policy.verdict(), judged=paid_scores, labels=labels, cost=cost)
    return verdict, sum(draw.coin is not Coin.NONE for draw in policy.draws)


def _attempts(score: float) -> int:
    """How often a score is asked for; one that is missing is asked for again."""
    return ATTEMPTS if math.isnan(score) else 1


def residuals(data: Judged) -> FloatArray:
    """E (Y - F)^2 of each system, shape (models,): what an oracle knows; of all, where nothing is known."""
    f, y = data.units
    off = (y - f) ** 2
    found = mean_of_known(off, 1)
    return np.where(np.isnan(found), np.nanmean(off), found)


def _row(
    name: str,
    allocator: str,
    found: Sequence[tuple[Verdict, int]],
    data: Judged,
    top: float,
    margin: float,
    delta: float,
) -> AuditRow:
    means = data.means
    behind = means.max() - means
    named, wrong, judged = [], [], []
    for verdict, _ in found:
        choice = verdict.winner if verdict.winner is not None else verdict.leader
        named.append(np.inf if choice is None else behind[choice])
        judged.append(np.nan if verdict.judge_verdict is None else behind[verdict.judge_verdict] <= 1e-9)
        wrong.append(_is_wrong(verdict, behind, margin))
    decided = [v.outcome in DECIDED for v, _ in found]
    return AuditRow(
        sampler=name,
        allocator=allocator,
        correct=float(np.mean([b <= 1e-9 for b in named])),
        top=float(np.mean([b <= top + 1e-9 for b in named])),
        decided=float(np.mean(decided)),
        wrong=float(np.mean(wrong)),
        pulls=float(np.mean([draws for _, draws in found])),
        audits=float(np.mean([v.labels for v, _ in found])),
        cost=float(np.mean([v.cost for v, _ in found])),
        verdict_counts=dict(Counter(v.outcome.value for v, _ in found)),
        judge_correct=float(np.mean(judged)),
        seeds=len(found),
        delta=delta,
    )


def _is_wrong(verdict: Verdict, behind: FloatArray, margin: float) -> bool:
    if verdict.outcome is AuditOutcome.BEST and verdict.winner is not None:
        return bool(behind[verdict.winner] > 1e-9)
    if verdict.outcome is AuditOutcome.EQUIVALENT:
        return bool(verdict.winner is not None and behind[verdict.winner] >= margin)
    return False
