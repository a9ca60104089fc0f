"""backtest_audits(): a judge and a few labels, replayed on scores whose labels are all known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from evalbudget.audits.backtest.result import AuditResult, AuditRow
from evalbudget.audits.draw import Coin
from evalbudget.audits.policies import DECIDED, AuditOutcome, Verdict
from evalbudget.audits.samplers import AuditSampler
from evalbudget.design import Design, Reading
from evalbudget.errors import InvalidInputError
from evalbudget.recorded.scores import RecordedScores
from evalbudget.replay.contestant import Contestant, contestants
from evalbudget.replay.seeds import checked_seeds
from evalbudget.replay.workers import Progress
from evalbudget.sampler import Kind, Sampler
from evalbudget.statistics.bounds import FloatArray

MOST = 1_000_000
"""Requests per ask: whole batches of labels go out at once, as to people."""


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
        judge = _mean(chosen.true_scores)
        label = _mean(np.asarray(recorded.reference, dtype=np.float64))
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
        return cls(recorded.models, recorded.items, judge, label, recorded.categories, (low, high), judges)

    @property
    def design(self) -> Design:
        """Raters are the judge and the human."""
        return Design(self.items, self.models, ("judge", "human"), self.categories)

    @property
    def means(self) -> FloatArray:
        """Mean label of each system, shape (models,)."""
        return np.asarray(np.nanmean(self.label, axis=1), dtype=np.float64)


def backtest_audits(
    recorded: RecordedScores,
    samplers: Sequence[str | type[Sampler]] = ("audit-eprocess", "pp-lucb", "human-only"),
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
    progress: Progress | None = None,
) -> AuditResult:
    """Compare the recorded systems by the recorded judge and few of the recorded labels.

    Labels are asked for in whole batches. ``reference`` gives the labels: the mean of the human raters.

    Args:
        recorded: two or more systems, with a reference.
        samplers: names or classes of samplers of audits. A constructor with a parameter ``prices``,
            ``delta``, ``margin``, ``allocator``, ``score_range`` or ``judge_range`` is given these.
        allocators: one row each for samplers that take one.
        seeds: one replay each; a number n is the seeds 0 to n - 1.
        rater: the judge; None for the mean of all raters.
        score_range: smallest and largest possible label; None for 0 and 1.
        judge_range: smallest and largest possible judge score; None for the same.
        prices: of a judge's score and of a label.
        delta: probability of error.
        margin: share of the range; within it of the best a system is good enough.
        top: how far below the best still counts as top, as a share of the range.
        sampler_options: further arguments by sampler.
        progress: called with (replays finished, replays in all).

    Raises:
        UnknownNameError: no such sampler, rater or allocator; suggests the nearest.
        InvalidInputError: one system, no reference, scores outside the range, or an argument out of range.
    """
    data = Judged.of(recorded, rater, score_range, judge_range)
    if len(data.models) < 2:
        raise InvalidInputError("one system has nothing to be compared with; record two or more")
    if not 0.0 <= top <= 1.0:
        raise InvalidInputError(f"top is {top:g}; it is a share of the score range, in 0 to 1")
    entrants = contestants(samplers, sampler_options, Kind.AUDITS)
    seed_list = checked_seeds(seeds)
    span = data.score_range[1] - data.score_range[0]
    known = {
        "prices": prices,
        "delta": delta,
        "margin": margin,
        "score_range": data.score_range,
        "judge_range": data.judge_range,
    }
    jobs = [
        (contestant, allocator)
        for contestant in entrants
        for allocator in (allocators if "allocator" in contestant.accepts else ["-"])
    ]
    rows = []
    for number, (contestant, allocator) in enumerate(jobs):
        found = []
        for at, seed in enumerate(seed_list):
            found.append(_replay(data, contestant, {**known, "allocator": allocator}, seed))
            if progress is not None:
                progress(number * len(seed_list) + at + 1, len(jobs) * len(seed_list))
        rows.append(_row(contestant.name, allocator, found, data, top * span, margin * span, delta))
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


def _replay(data: Judged, contestant: Contestant, known: Mapping[str, Any], seed: int) -> tuple[Verdict, int]:
    if "oracle" in (known["allocator"], contestant.options.get("allocator")):
        known = {**known, "truth": residuals(data)}
    sampler = contestant.construct(data.design, seed=seed, known=known)
    if not isinstance(sampler, AuditSampler):
        raise InvalidInputError(
            f"sampler {sampler.name!r} is of audits, but no AuditSampler: it has no verdict"
        )
    while requests := sampler.ask(MOST):
        sampler.tell(
            Reading(r, float((data.judge, data.label)[r.cell.rater][r.cell.model, r.cell.item]))
            for r in requests
        )
    return sampler.verdict, sum(draw.coin is not Coin.NONE for draw in sampler.draws)


def residuals(data: Judged) -> FloatArray:
    """E (Y - F)^2 of each system and fifth of the scale, shape (models, 5): what an oracle knows."""
    from evalbudget.audits.policies.lucb import CELLS

    f = (data.judge - data.judge_range[0]) / (data.judge_range[1] - data.judge_range[0])
    y = (data.label - data.score_range[0]) / (data.score_range[1] - data.score_range[0])
    off = (y - f) ** 2
    cell = np.minimum(np.nan_to_num(f * CELLS), CELLS - 1).astype(int)
    overall = float(np.nanmean(off))
    found = np.full((len(data.models), CELLS), overall)
    for k in range(len(data.models)):
        for c in range(CELLS):
            here = off[k][(cell[k] == c) & ~np.isnan(off[k])]
            if here.size:
                found[k, c] = here.mean()
    return found


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


def _mean(scores: FloatArray) -> FloatArray:
    """Over the last axis, nan where there is nothing."""
    there = np.isfinite(scores)
    total = np.where(there, scores, 0.0).sum(axis=-1)
    return np.asarray(
        np.divide(total, there.sum(axis=-1), out=np.full(total.shape, np.nan), where=there.any(axis=-1))
    )
