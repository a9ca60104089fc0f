"""What was bought in counts: scores, failures, and calls that brought nothing that is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from evalbudget.design import Reading

UNANSWERED = "cut off, or no reply that the host could read"
"""Why calls that were spent brought nothing that is read, under every host."""

ABANDONED = "abandoned by the host"
"""Why a request that was never sent has no score."""

RUN_AGAIN = "run again by an operator: its first score counts"
"""Why a call that brought a score is not read."""

LOST = "answers of earlier attempts that this one cannot use"
"""Why calls that were spent brought nothing that is read: the task is another one now."""


@dataclass(slots=True)
class Tally:
    """What was bought.

    Attributes:
        readings: scores.
        failed: readings that were paid for and have no score.
        errors: how often each reason for that occurred.
        unread: how many calls were paid that brought nothing that is read, by the reason for that.
        spent: what all of it cost.
    """

    readings: int = 0
    failed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    unread: dict[str, float] = field(default_factory=dict)
    spent: float = 0.0

    def count(self, reading: Reading, *, attempts: float | None = None) -> None:
        """Take a reading in.

        Args:
            reading: that came back.
            attempts: calls that it took; None where a call costs 1. Without one nothing failed.
        """
        self.spent += reading.cost
        if reading.value is not None:
            self.readings += 1
        elif (reading.cost if attempts is None else attempts) > 0.0:
            self.failed += 1
            reason = reading.error or "no score"
            self.errors[reason] = self.errors.get(reason, 0) + 1

    def lose(self, cost: float, reason: str = UNANSWERED, *, calls: float | None = None) -> None:
        """Calls were paid for and brought nothing that is read; a negative cost was given back.

        Args:
            cost: of them.
            reason: why nothing is read.
            calls: how many; None where a call costs 1.
        """
        self.spent += cost
        self.unread[reason] = self.unread.get(reason, 0.0) + (cost if calls is None else calls)

    @property
    def failures(self) -> dict[str, int]:
        """How often each reason occurred to pay and read nothing, the most frequent first.

        Their number is rounded up: a part of a score is a call too.
        """
        found = dict(self.errors)
        for reason, calls in self.unread.items():
            if times := math.ceil(calls - 1e-9):
                found[reason] = found.get(reason, 0) + times
        return dict(sorted(found.items(), key=lambda reason: -reason[1]))
