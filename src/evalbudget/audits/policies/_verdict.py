"""What an audit has proved so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class AuditOutcome(StrEnum):
    """How an audit ended, or ``undecided`` while it goes on."""

    BEST = "best"
    """The winner is better than every other system on items like these, with probability 1 - delta.

    After a second pass it is the best on these items; the reason says which, and whether that is exact.
    """
    TIE = "tie"
    """Every item is labelled for the systems left, and their means over these items are exactly equal."""
    EQUIVALENT = "equivalent"
    """No system is better than the winner by the margin or more, with probability 1 - delta."""
    UNDECIDED = "undecided"
    """Labels are missing, the most that may be asked for are used up, or all items are drawn."""
    ESTIMATED = "estimated"
    """One system: the interval of its mean is as narrow as wanted."""


DECIDED = (AuditOutcome.BEST, AuditOutcome.TIE, AuditOutcome.EQUIVALENT, AuditOutcome.ESTIMATED)
"""Outcomes that answer the question."""


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """One system's mean human score, on [0, 1].

    Attributes:
        model: index of the system.
        value: judged mean corrected by the audits; nan before any context is complete.
        low: lower bound, anytime, simultaneous over the systems at 1 - delta.
        high: upper bound.
        judged: contexts it took part in.
        labels: of them labelled by a human.
        judge_mean: mean of the judge's scores alone, which proves nothing; nan without any.
        active: whether it may still be the best.
        of_pool: value, low and high are about this pool, because the second pass labels it; otherwise about
            items like these.
    """

    model: int
    value: float
    low: float
    high: float
    judged: int
    labels: int
    judge_mean: float
    active: bool
    of_pool: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known, and what is still wanted.

    Attributes:
        outcome: how it ended, or ``undecided``.
        finished: nothing more will be asked.
        winner: the best system, or one that is within the margin of it; None otherwise.
        leader: the system with the largest estimate of those left; None before any.
        estimates: per system; they rest on complete batches.
        intervals: what their intervals are, in a sentence.
        labels_wanted: indices of draws whose label is missing, in draw order.
        judge_verdict: the system the judge alone would name; None without scores.
        judged: scores of the judge paid for.
        labels: human labels received.
        cost: of both.
        reason: one sentence.
        no_go: batch from which on the judge was not worth its price; None while it is.
        pool_used_up: every item was drawn without a verdict; what was decided since is about these items.
        exact: decided by labels alone, without any probability, among the systems left after the first pass.
        second_pass_labels: that a second pass through the pool needs at most to decide; 0 if none is due.
        second_pass_cost: their price.
    """

    outcome: AuditOutcome
    finished: bool
    winner: int | None
    leader: int | None
    estimates: tuple[ModelEstimate, ...]
    intervals: str
    labels_wanted: tuple[int, ...]
    judge_verdict: int | None
    judged: int
    labels: int
    cost: float
    reason: str
    no_go: int | None = None
    pool_used_up: bool = False
    exact: bool = False
    second_pass_labels: int = 0
    second_pass_cost: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON values; numbers that are not defined are nan."""
        return asdict(self)
