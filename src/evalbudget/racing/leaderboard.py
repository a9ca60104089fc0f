"""Who is best, and what the evaluations prove: one race as a table, as JSON and as a sentence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from evalbudget.estimators import Estimate
from evalbudget.estimators.models import model_means, model_ranks, possible_winners
from evalbudget.racing.race import Race
from evalbudget.samplers import Outcome, OutcomeKind

LEVEL = 0.95
_SILENT = 8  # failures without any score: the sampler may not have got round to giving the arm up


class Status(StrEnum):
    """How an arm came out."""

    BEST = "best"
    """The only one that may be the best, or the one the sampler decided for."""
    TIE = "tie"
    """As good as the best, or within the margin of it."""
    OPEN = "open"
    """It may be the best: not told apart from the leader with this budget."""
    BEHIND = "behind"
    """Another one is better, by their intervals or by the items both read."""
    ELIMINATED = "eliminated"
    """The sampler asked it nothing more."""
    LOST = "lost"
    """It kept failing, or its task ended early."""


@dataclass(frozen=True)
class Standing:
    """One arm of a race.

    Attributes:
        name: of the model or setting.
        status: how it came out.
        rank: by estimate, from 1; None without an estimate.
        rank_best: the best rank its interval allows.
        rank_worst: the worst one.
        estimate: of its mean score over the benchmark; None without scores.
        stderr: of the estimate; None below two scores.
        lower: of its interval, which holds for all arms at once and at every moment.
        upper: of the same.
        readings: its scores.
        failed: its failed readings.
        evaluations: what it cost, retries included.
        eliminated_at: evaluations of all arms together when it left; None if it did not.
        errors: how often each kind of failure occurred.
        left: why its task ended early.
        behind: how much the leader is better on the items both read; None where models read other items.
        behind_lower: of its interval, which holds for all pairs of arms at once and at every moment.
        behind_upper: of the same.
    """

    name: str
    status: Status
    rank: int | None
    rank_best: int
    rank_worst: int
    estimate: float | None
    stderr: float | None
    lower: float
    upper: float
    readings: int
    failed: int
    evaluations: int
    eliminated_at: int | None
    errors: dict[str, int]
    left: str | None
    behind: float | None = None
    behind_lower: float | None = None
    behind_upper: float | None = None


@dataclass(frozen=True)
class Leaderboard:
    """One race.

    Attributes:
        standings: of the arms, best first.
        sentence: what came out, in words.
        outcome: what the sampler decided: best, equivalent, tie or undecided.
        sampler: who decided.
        seed: of the sampler.
        options: of the sampler.
        budget: in evaluations.
        spent: evaluations paid for.
        grid: evaluations of every arm on every item.
        items: of the benchmark.
        stop_reason: why nothing more was asked.
        level: of the intervals.
        interval: what they are.
        target: what they speak of.
        notes: what to know besides.
    """

    standings: tuple[Standing, ...]
    sentence: str
    outcome: str
    sampler: str
    seed: int
    options: dict[str, Any]
    budget: int
    spent: int
    grid: int
    items: int
    stop_reason: str
    level: float
    interval: str
    target: str
    notes: tuple[str, ...]

    @cached_property
    def as_json(self) -> dict[str, Any]:
        """As JSON values; not to be changed."""
        return asdict(self) | {
            "standings": [asdict(s) | {"status": s.status.value} for s in self.standings],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Leaderboard:
        """What :attr:`as_json` gave."""
        standings = tuple(Standing(**{**s, "status": Status(s["status"])}) for s in data["standings"])
        return cls(**{**data, "standings": standings, "notes": tuple(data["notes"])})

    def table(self, *, width: int | None = None) -> str:
        """As text for a terminal."""
        from evalbudget.racing.table import render

        return render(self, width=width)

    def of(self, name: str) -> Standing:
        """The standing of an arm."""
        return next(s for s in self.standings if s.name == name)


def leaderboard_of(race: Race, *, notes: Sequence[str] = ()) -> Leaderboard:
    """The leaderboard of a race as it stands."""
    sampler = race.sampler
    draws = [sampler.draws(model) for model in range(race.design.n_models)]
    estimates = model_means(draws, bounds=race.config.bounds)
    ranks = model_ranks(estimates, LEVEL)
    eliminated = sampler.eliminated
    outcome = sampler.outcome
    lost = {m for m in range(race.design.n_models) if _is_lost(race, m)}
    left = set(range(race.design.n_models)) - lost
    found = possible_winners(draws, among=left, bounds=race.config.bounds, level=LEVEL)
    contenders, leader = found.models, found.reference
    status = _statuses(race, contenders, lost, outcome)
    order = sorted(
        range(race.design.n_models),
        key=lambda m: (status[m] is Status.LOST, -_or(float(ranks.value[m]), -np.inf), m != leader),
    )
    by_value = [m for m in order if np.isfinite(ranks.value[m])]
    place = {m: 1 + sum(bool(ranks.value[o] > ranks.value[m]) for o in by_value) for m in by_value}
    standings = tuple(
        Standing(
            name=race.design.models[m],
            status=status[m],
            rank=place.get(m),
            rank_best=int(ranks.best[m]),
            rank_worst=int(ranks.worst[m]),
            estimate=_finite(ranks.value[m]),
            stderr=_finite(estimates[m].standard_error),
            lower=float(ranks.low[m]),
            upper=float(ranks.high[m]),
            readings=race.lanes[m].readings,
            failed=race.lanes[m].failed,
            evaluations=int(race.lanes[m].spent),
            eliminated_at=eliminated.get(m),
            errors=dict(race.lanes[m].errors),
            left=race.lanes[m].left if m in eliminated and not race.lanes[m].absent else None,
            **_behind(found.differences if m != leader else (), m),
        )
        for m in order
    )
    return Leaderboard(
        standings=standings,
        sentence=_sentence(standings, outcome, race, contenders),
        outcome=outcome.kind.value,
        sampler=sampler.name,
        seed=sampler.seed,
        options={k: list(v) if isinstance(v, tuple) else v for k, v in sampler.options.items()},
        budget=int(race.budget.amount),
        spent=int(race.ledger.spent),
        grid=race.grid,
        items=race.design.n_items,
        stop_reason=race.stop_reason,
        level=LEVEL,
        interval=f"{estimates[0].method}; {estimates[0].validity.value}, {estimates[0].coverage.value} over "
        f"{race.design.n_models} models",
        target=_target(estimates, race),
        notes=tuple(notes),
    )


def _behind(differences: Sequence[Estimate], model: int) -> dict[str, float | None]:
    if not differences:
        return {}
    interval = differences[model].confidence_interval(LEVEL)
    return {
        "behind": _finite(differences[model].value),
        "behind_lower": _finite(interval.low),
        "behind_upper": _finite(interval.high),
    }


def _is_lost(race: Race, model: int) -> bool:
    lane = race.lanes[model]
    silent = lane.readings == 0 and lane.failed >= _SILENT
    return not lane.absent and (lane.left is not None or model in race.sampler.lost or silent)


def _target(estimates: Sequence[Estimate], race: Race) -> str:
    targets = {estimate.target for estimate in estimates}
    if len(targets) == 1:
        return targets.pop()
    return f"mean of each model over the items, of {race.design.n_items}, that did not fail for it"


def _statuses(
    race: Race, contenders: Collection[int], lost: Collection[int], outcome: Outcome
) -> list[Status]:
    eliminated = race.sampler.eliminated
    decided = outcome.models if outcome.kind is not OutcomeKind.UNDECIDED else ()
    statuses = []
    for m in range(race.design.n_models):
        if m in lost:
            statuses.append(Status.LOST)
        elif set(contenders) == {m}:
            statuses.append(Status.BEST)
        elif m in decided and (m in contenders or not contenders):
            statuses.append(Status.BEST if len(decided) == 1 else Status.TIE)
        elif m in eliminated:
            statuses.append(Status.ELIMINATED)
        else:
            statuses.append(Status.OPEN if m in contenders else Status.BEHIND)
    return statuses


def _sentence(
    standings: Sequence[Standing], outcome: Outcome, race: Race, contenders: Collection[int]
) -> str:
    names = {race.design.models[m] for m in contenders}
    rivals = [s.name for s in standings if s.name in names]  # best estimate first
    best = [s.name for s in standings if s.status is Status.BEST]
    named = [s.name for s in standings if s.status is Status.TIE]
    answered = " of those that answered" if any(s.status is Status.LOST for s in standings) else ""
    if not any(s.estimate is not None for s in standings):
        return "No model has a score."
    if all(s.status is Status.LOST for s in standings):
        return "Every model was lost, so none is best."
    if best and set(rivals) <= set(best):
        return f"{best[0]} is best{answered}, with {LEVEL:.0%} confidence."
    if best:
        others = [name for name in rivals if name != best[0]]
        return (
            f"{best[0]} is best{answered} by the rule of {race.config.sampler}; the {LEVEL:.0%} intervals do "
            f"not tell it from {_listed(others)}."
        )
    if outcome.kind is OutcomeKind.EQUIVALENT:
        return f"{_listed(named)} are within the margin of the best{answered}."
    if outcome.kind is OutcomeKind.TIE:
        return f"{_listed(named)} have the same score, the best{answered}."
    if len(rivals) < 2:
        return f"{standings[0].name} leads{answered}; nothing is decided."
    return f"{_listed(rivals)} cannot be told apart with this budget; {rivals[0]} leads."


def _listed(names: Sequence[str], most: int = 5) -> str:
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _or(value: float, other: float) -> float:
    return float(value) if np.isfinite(value) else other
