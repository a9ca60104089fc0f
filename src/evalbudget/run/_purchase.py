"""Buying: one sampler with its budget and its journal; synchronous, and under every host alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evalbudget._asked import AskedSampler, Eligible
from evalbudget._version import __version__
from evalbudget.budget import Budget, Ledger, Unit
from evalbudget.design import Cell, Reading, Request
from evalbudget.journal import Event, Header, Journal

UNANSWERED = "cut off, or no reply that the host could read"
"""Why calls that were spent brought nothing that is read, under every host."""

ABANDONED = "abandoned by the host"
"""Why a request that was never sent has no score."""

USED_UP = "budget used up"
"""Why nothing more is asked, where nothing else ended it."""

RUN_AGAIN = "run again by an operator: its first score counts"
"""Why a call that brought a score is not read."""

LOST = "answers of earlier attempts that this one cannot use"
"""Why calls that were spent brought nothing that is read: the task is another one now."""


@dataclass(slots=True)
class Flight:
    """A request that is under way.

    Attributes:
        request: what was asked.
        promised: its highest cost, reserved until it comes back.
        started: the host works on it.
    """

    request: Request
    promised: float
    started: bool = False


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


class Purchase:
    """Hands out what a sampler asks as far as the budget pays, and takes in what comes back.

    Every request is recorded when it is asked, promised at its highest cost before it is sent, and settled at
    its real cost when it comes back: what is spent and promised never exceeds the budget.

    Args:
        sampler: fresh, or resumed from ``journal``.
        budget: what may be spent in all, by earlier runs too.
        cost: the highest cost of one request.
        cost_of: the highest cost of a given cell, where they differ; at most ``cost``.
        journal: where to record; its readings count as spent. None: a new one.

    Attributes:
        sampler: that decides what is asked.
        ledger: what is spent and promised.
        journal: what happened.
        tally: counts of what was bought, by earlier runs too.
        flights: requests under way, by their number.
        stopped: why nothing more is asked, whatever the sampler would ask; None while it may.
    """

    def __init__(
        self,
        sampler: AskedSampler,
        budget: Budget,
        *,
        cost: float = 1.0,
        cost_of: Callable[[Cell], float] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.sampler = sampler
        self.ledger = Ledger(budget)
        self.journal = Journal() if journal is None else journal
        self._append = self.journal.append
        if self.journal.header is None:
            self.journal.header = Header.of(sampler, __version__)
        self.ledger.spent = self.journal.spent
        self.cost = cost
        self._cost_of = cost_of
        self.tally = Tally()
        for reading in self.journal.readings:
            self._count(reading)
        self.flights: dict[int, Flight] = {}
        self.stopped: str | None = None

    # asking

    def ask(self, n: int = 1, *, eligible: Eligible | None = None) -> Sequence[Request]:
        """Up to n requests, whether or not they can be paid; :meth:`promise` each before it is sent."""
        requests = self.sampler.ask(n, eligible=eligible)
        for request in requests:
            self._append(Event(request, restricted=eligible is not None))
        return requests

    def promise(self, request: Request, cost: float | None = None) -> bool:
        """Reserve what a request costs at most; False, and nothing reserved, if that cannot be paid."""
        cost = self.cost_of(request.cell) if cost is None else cost
        if not self.ledger.promise(cost):
            return False
        self.flights[request.id] = Flight(request, cost)
        return True

    def buy(self, n: int = 1, *, eligible: Eligible | None = None) -> Sequence[Request]:
        """Up to n requests, as many as can be paid; none where the purchase was stopped."""
        if self.stopped is not None:
            return ()
        requests = self.ask(max(0, min(n, self.affordable)), eligible=eligible)
        free = self.ledger.free
        if not requests and eligible is None and self._cost_of is not None and not self.affordable and free:
            due = self.sampler.due
            if due is None:  # what is cheaper may still fit
                requests = self.ask(1, eligible=lambda cell: self.cost_of(cell) <= free + 1e-9)
            elif self.cost_of(due) <= free + 1e-9:
                requests = self.ask(1)
        for request in requests:
            self.promise(request)
        return requests

    def adopt(self, cell: Cell, promised: float) -> Flight:
        """Count a cell that somebody else chose, and has paid for in part or in whole, as under way.

        Raises:
            InvalidInputError: the sampler refuses it.
        """
        request = self.sampler.adopt(cell)
        self._append(Event(request, adopted=True))
        self.ledger.promised += promised
        self.flights[request.id] = flight = Flight(request, promised)
        return flight

    # what comes back

    def tell(self, reading: Reading) -> None:
        """A request came back, with or without a score."""
        flight = self.flights.pop(reading.request.id, None)
        self.ledger.settle(0.0 if flight is None else flight.promised, reading.cost)
        self._append(Event(reading.request, reading))
        self._count(reading)
        self.sampler.tell([reading])

    def fail(self, request: Request, error: str | None, *, cost: float | None = None) -> None:
        """A request came back without a score: what it cost is spent all the same.

        Args:
            request: that failed.
            error: why; None if only the score is missing.
            cost: what was paid for it; None where only the provider knows: then all that was promised counts,
                since it is better to buy too little than too much.
        """
        if cost is None:
            flight = self.flights.get(request.id)
            cost = self.cost_of(request.cell) if flight is None else flight.promised
        self.tell(Reading(request, None, cost, error))

    def abandon(self, request: Request) -> None:
        """The host gave a request up before it was sent: it cost nothing and taught nothing."""
        self.tell(Reading(request, None, 0.0, ABANDONED))

    def withdraw(self, request: Request) -> None:
        """It was not sent, since the budget does not pay for it: it waits for a run with a larger one."""
        flight = self.flights.pop(request.id, None)
        if flight is not None:
            self.ledger.settle(flight.promised, 0.0)

    def pay(self, cost: float, reason: str = UNANSWERED, *, calls: float | None = None) -> None:
        """Calls were paid for beside those of the readings, and teach nothing.

        Args:
            cost: of them.
            reason: why they teach nothing.
            calls: how many; None where a call costs 1.
        """
        self.ledger.settle(0.0, cost)
        self.tally.lose(cost, reason, calls=calls)

    def pays(self, cost: float, reason: str = UNANSWERED, *, calls: float | None = None) -> bool:
        """As :meth:`pay`, if the budget pays for it; False, and nothing paid, if it does not."""
        if cost > self.ledger.free + 1e-9:
            return False
        self.pay(cost, reason, calls=calls)
        return True

    def promise_at_least(self, cost: float) -> None:
        """Requests under way, and those to come, may cost so much each."""
        self.cost = max(self.cost, cost)
        for flight in self.flights.values():
            self.ledger.promised += max(0.0, cost - flight.promised)
            flight.promised = max(cost, flight.promised)

    def _count(self, reading: Reading) -> None:
        # in money a call that was refused fails for nothing
        free = self.ledger.budget.unit is not Unit.SCORES and reading.error != ABANDONED
        self.tally.count(reading, attempts=1.0 if free else None)

    def stop(self, reason: str) -> None:
        """Ask nothing more; what is under way may still come back."""
        self.stopped = reason

    # what is known

    def cost_of(self, cell: Cell) -> float:
        """What a request of this cell costs at most."""
        return self.cost if self._cost_of is None else self._cost_of(cell)

    @property
    def affordable(self) -> int:
        """How many more requests the budget pays."""
        return self.ledger.affordable(self.cost)

    @property
    def outstanding(self) -> int:
        """Requests under way."""
        return len(self.flights)

    @property
    def finished(self) -> bool:
        """Nothing is under way, and nothing more will be asked."""
        over = self.stopped is not None or self.sampler.stop_reason is not None
        return not self.flights and (over or not self.affordable)

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        reason = self.stopped or self.sampler.stop_reason
        return reason or (USED_UP if self.finished else "not finished")
