"""What a race has found, model by model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from evalbudget.budget import USED_UP, Unit
from evalbudget.exit_codes import ExitCode
from evalbudget.missing import Missing
from evalbudget.races._verdict import Finding, Status


@dataclass(frozen=True)
class Standing:
    """One model of a race.

    Attributes:
        name: of the model or setting.
        status: how it came out.
        rank: by estimate, from 1; None without an estimate.
        rank_best: the best rank that ``all_lower`` and ``all_upper`` of all models allow.
        rank_worst: the worst one.
        estimate: of its mean score over the benchmark, as far as it answered; None without scores.
        stderr: of the estimate, items and repeats random; None where the scores do not show it.
        lower: of its 95% interval, items and repeats random, which missing answers widen unless they count
            otherwise; None where there is none.
        upper: of the same.
        no_interval: why there is no ``lower`` and ``upper``; None if there is.
        all_lower: of its interval for the mean over the benchmark, which holds for all models at once and at
            every moment.
        all_upper: of the same.
        readings: its scores; of a known baseline those that a gate looked at.
        failed: its failed readings.
        unread: items it has not answered and that were not given up.
        evaluations: what it cost, retries included.
        dropped_at: evaluations of all models together when the sampler asked it nothing more; None if it
            did not drop it.
        errors: how often each kind of failure occurred.
        left: why its task ended early.
        paid: what its evaluations cost, judges included, in units of the budget; None where that counts
            evaluations.
        behind: how much the leader is better on the items both read; None where models read other items.
        behind_all_lower: of its interval, which holds for all pairs of models at once and at every moment.
        behind_all_upper: of the same.
        missing: items that were given up, since its calls failed on them.
    """

    name: str
    status: Status
    rank: int | None
    rank_best: int
    rank_worst: int
    estimate: float | None
    stderr: float | None
    lower: float | None
    upper: float | None
    no_interval: str | None
    all_lower: float
    all_upper: float
    readings: int
    failed: int
    unread: int
    evaluations: int
    dropped_at: int | None
    errors: dict[str, int]
    left: str | None
    behind: float | None = None
    behind_all_lower: float | None = None
    behind_all_upper: float | None = None
    paid: float | None = None
    missing: int = 0


@dataclass(frozen=True)
class Board:
    """One race.

    Attributes:
        standings: of the models, best first.
        sentence: what came out, in words.
        proof: what that rests on, in words; empty if nothing is decided.
        outcome: best, tie, undecided or nothing: what the scores read say, whatever the sampler planned.
        sampler: who decided whom to ask.
        seed: of the sampler.
        options: of the sampler.
        budget: in evaluations; the whole grid where a race goes on until it is proved and no cap was given.
        spent: evaluations paid for.
        grid: evaluations of every model on every item.
        items: of the benchmark.
        unread: evaluations not made of models that may still be the best; making them decides the race, but
            for what is missing.
        until_proved: the sampler was told to go on until the best is proved.
        stop_reason: why nothing more was asked.
        level: of the intervals, and of what is proved.
        interval: what ``all_lower`` and ``all_upper`` are.
        target: what they speak of.
        notes: what to know besides.
        unit: of what was paid: scores, usd or tokens.
        paid: what all calls cost, also those that brought no evaluation; None where the budget counts
            evaluations.
        wasted: of that, for evaluations that were cut off and have no score.
        missing: what missing answers count as: worst, zero or drop.
        lower_is_better: the race was for the lowest mean.
    """

    standings: tuple[Standing, ...]
    sentence: str
    proof: str
    outcome: str
    sampler: str
    seed: int
    options: dict[str, Any]
    budget: int
    spent: int
    grid: int
    items: int
    unread: int
    until_proved: bool
    stop_reason: str
    level: float
    interval: str
    target: str
    notes: tuple[str, ...]
    unit: str = Unit.SCORES.value
    paid: float | None = None
    wasted: float = 0.0
    missing: str = Missing.WORST.value
    lower_is_better: bool = False

    @cached_property
    def as_json(self) -> dict[str, Any]:
        """As JSON values; not to be changed."""
        return asdict(self) | {
            "standings": [asdict(s) | {"status": s.status.value} for s in self.standings],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What :attr:`as_json` gave."""
        standings = tuple(Standing(**{**s, "status": Status(s["status"])}) for s in data["standings"])
        return cls(**{**data, "standings": standings, "notes": tuple(data["notes"])})

    def of(self, name: str) -> Standing:
        """The standing of a model."""
        return next(s for s in self.standings if s.name == name)

    @property
    def leader(self) -> Standing:
        """The first one."""
        return self.standings[0]

    @property
    def exit_code(self) -> ExitCode:
        """0 with a leaderboard, 3 without what the race was to go on for, 4 if nobody could be evaluated."""
        if all(standing.status is Status.LOST or standing.estimate is None for standing in self.standings):
            return ExitCode.FAILED
        if self.until_proved:
            return ExitCode.UNDECIDED if self.outcome == Finding.UNDECIDED else ExitCode.DONE
        too_wide = self.options.get("half_width") is not None and self.stop_reason == USED_UP
        return ExitCode.UNDECIDED if too_wide else ExitCode.DONE

    def named(self, *statuses: Status) -> list[str]:
        """Names of the models that came out so, best first."""
        return [s.name for s in self.standings if s.status in statuses]
