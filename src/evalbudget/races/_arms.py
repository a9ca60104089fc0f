"""What the arms of a race run, what they cost and brought: whatever becomes of a cell is told to the book."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from evalbudget import Cell, Reading, Request
from evalbudget.budget import USED_UP
from evalbudget.races._known_answers import KnownAnswers
from evalbudget.races._lanes import Asked, Flight, Key, KnownCell, Lane
from evalbudget.run import ABANDONED, RUN_AGAIN, UNANSWERED

if TYPE_CHECKING:
    from evalbudget.book import Book

KNOWN = "answers that are known, and what runs again"
"""Why a book has paid for what is of no cell of it."""


class Arms(ABC):
    """The arms of a race, as hosts tell of them.

    Args:
        names: of the arms.
        widths: cells each runs at once, by name; None to watch it.
        documents: that they are asked.
        repeats: answers to each document.
        attempts: how often the host runs one cell at most: all of them cost.
        cost_of: what a sample cost so far, where the budget is money or tokens.
        tells_at_once: what is told is in a store when a method returns.
        is_kept: another attempt may go on with the book, which is told what the host begins.

    Attributes:
        lanes: the arms.
    """

    def __init__(
        self,
        names: Sequence[str],
        widths: Mapping[str, int | None],
        documents: Sequence[str],
        repeats: int,
        attempts: int,
        cost_of: Callable[[str], float] | None,
        *,
        tells_at_once: bool,
        is_kept: bool,
    ) -> None:
        self.repeats, self.attempts = repeats, attempts
        self._widths, self._documents, self._cost_of = widths, tuple(documents), cost_of
        self._tells_at_once, self._is_kept = tells_at_once, is_kept
        self.begin(names)

    @property
    @abstractmethod
    def book(self) -> Book:
        """With every cell that was asked, and what is spent."""

    @abstractmethod
    def turned(self, score: float) -> float:
        """A score of the host as the sampler has it."""

    def begin(self, names: Sequence[str]) -> None:
        """These take part."""
        self.lanes = [Lane(name, self._widths.get(name)) for name in names]
        self._samples: dict[tuple[int, Key], str] = {}
        self._known = KnownAnswers(self._documents, self.repeats)
        self._given: list[Asked] = []  # and the host was not told of them yet
        self._cut_off: set[tuple[int, Key]] = set()

    def look(self) -> None:
        """Take in what other processes did."""
        self.book.refresh()

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return self.book.steady()

    def started(self, arm: int, key: Key) -> None:
        """The host works on this cell now, or tries it again."""
        lane = self.lanes[arm]
        flight = lane.flights.get(key)
        if flight is not None and not flight.started:
            flight.started = True
            lane.running += 1
            lane.peak = max(lane.peak, lane.running)
        if self._is_kept and flight is not None:
            self._begins(flight, flight.attempts + flight.failed + 1.0)

    def _begins(self, flight: Flight, by_now: float) -> None:
        """The book knows how much of what is held or put aside for a cell may be billed by now."""
        if flight.promised and self._cost_of is None:
            self._put_aside(0.0, by_now - flight.begun)
            flight.begun = by_now
        elif flight.request is not None:
            self.book.begins(flight.request, by_now)

    def attempt_failed(self, arm: int, key: Key) -> None:
        """The host tries this cell again, if it may run."""
        flight = self.lanes[arm].flights.get(key)
        if flight is not None:
            flight.failed += 1

    def may_run(self, arm: int, key: Key) -> bool:
        """Whether one more attempt at a cell is paid for."""
        flight = self.lanes[arm].flights.get(key)
        return flight is None or flight.failed < flight.paid

    def completed(
        self,
        arm: int,
        key: Key,
        value: float | None,
        *,
        attempts: int = 1,
        error: str | None = None,
        sample: str = "",
    ) -> None:
        """The host is done with this cell, after so many paid attempts in this and earlier runs.

        Args:
            arm: index of the arm.
            key: sample id and epoch.
            value: its score; None if it failed.
            attempts: how often it was run.
            error: why it failed.
            sample: the host's own name of it, by which a bill knows it.
        """
        with self.steady():
            self._completed(arm, KnownCell(key, value, attempts, error=error, sample=sample))
        self._told()

    def _completed(self, arm: int, cell: KnownCell) -> None:
        key, attempts = cell.key, cell.attempts
        self._samples[arm, key] = cell.sample
        flight = self._land(arm, key)
        if flight is None:
            # an operator had a finished cell run again: it is paid for, but what followed from its first
            # reading cannot be taken back
            self.pay(arm, 1.0, RUN_AGAIN)
            return
        self._count(arm, cell)
        if flight.request is None:
            self._known.replace(arm, flight.item, cell)
            self._put_aside(attempts - flight.promised, attempts - flight.begun)
        else:  # told in the turn in which it is paid, which a kill does not part
            self._tell_of(flight.request, cell, self._cost(arm, cell))
            self._put_aside(-flight.promised, -flight.begun)

    def _tell_of(self, request: Request, cell: KnownCell, cost: float) -> None:
        """The book has what the host read, as the sampler has it."""
        value = None if cell.value is None else self.turned(cell.value)
        self.book.tell([Reading(request, value, cost, cell.error)])

    def _told(self) -> None:
        """What is told is in a store when this returns."""
        if self._tells_at_once:
            self.look()

    def _cost(self, arm: int, cell: KnownCell) -> float:
        return float(cell.attempts) if self._cost_of is None else self._cost_of(self._samples[arm, cell.key])

    def _count(self, arm: int, cell: KnownCell) -> None:
        lane = self.lanes[arm]
        reading = Reading(Request(0, Cell()), cell.value, self._cost(arm, cell), cell.error)
        lane.tally.count(reading, attempts=cell.attempts)
        lane.evaluations += cell.attempts

    def pay(self, arm: int, evaluations: float, reason: str = UNANSWERED) -> None:
        """Evaluations were paid for beside those of the readings, and teach nothing."""
        self._lose(arm, evaluations, reason)
        if evaluations and self._cost_of is None:  # otherwise they are on the bill
            self.book.pay(evaluations, reason)

    def _lose(self, arm: int, evaluations: float, reason: str = UNANSWERED) -> None:
        cost = evaluations if self._cost_of is None else 0.0
        self.lanes[arm].tally.lose(cost, reason, calls=evaluations)
        self.lanes[arm].evaluations += evaluations

    def pays(self, arm: int, evaluations: float) -> bool:
        """Pay for what brought nothing; False, and nothing paid, if it exceeds what is left."""
        if self._cost_of is None and not self.book.pays(evaluations, UNANSWERED):
            return False
        with self.steady():
            self._lose(arm, evaluations)
        return True

    def abandoned(self, arm: int, key: Key) -> None:
        """The host was told not to run this cell, before it did."""
        with self.steady():
            flight = self._give_up(arm, key)
            if flight is not None and flight.request is not None:
                self.book.tell([Reading(flight.request, None, 0.0, ABANDONED)])
        self._told()

    def _give_up(self, arm: int, key: Key) -> Flight | None:
        """The host does not run a cell, or not again; what was run of it is paid."""
        flight = self._land(arm, key)
        if flight is not None:
            if flight.request is None:
                self._known.replace(arm, flight.item, KnownCell(key, None, 0, error=ABANDONED))
            run = flight.attempts + flight.failed
            if flight.promised:  # at once, which a kill does not part
                self._lose(arm, run)
                self._put_aside(run - flight.promised, run - flight.begun)
            elif run:
                self.pay(arm, run)
        return flight

    def unaffordable(self, arm: int, key: Key) -> None:
        """It was not asked to its end, since that does not fit into what is left; nor is anything more."""
        with self.steady():
            self._take_back(arm, key)
        self.book.stop(USED_UP)

    def _take_back(self, arm: int, key: Key) -> None:
        """A cell was not asked."""
        flight = self._give_up(arm, key)
        if flight is not None and flight.request is not None:
            self.book.give_back([flight.request])

    def leave(self, arm: int, reason: str) -> None:
        """Ask an arm nothing more: its task has ended. What it was running counts as paid."""
        with self.steady():
            self._leave(arm, reason)
        self._told()

    def _leave(self, arm: int, reason: str) -> None:
        lane = self.lanes[arm]
        if lane.left is not None:
            return
        lane.left = reason
        self.book.withdraw(arm, reason)
        for key, flight in list(lane.flights.items()):
            # a call that was under way may have been billed; better to buy too little than too much
            if flight.started:
                sample = self._samples.get((arm, key), "")
                begun = int(min(flight.failed + 1, flight.paid, self.attempts))
                cell = KnownCell(key, None, flight.attempts + begun, error=reason, sample=sample)
                self._completed(arm, cell)
            else:
                self._take_back(arm, key)

    def _put_aside(self, evaluations: float, begun: float) -> None:
        """For what is with the host and was not asked for, or for what is known and was not asked yet.

        Another attempt counts only what has begun of it.
        """
        if (evaluations or begun) and self._cost_of is None:
            self.book.pay(evaluations, KNOWN, begun=begun)

    def _land(self, arm: int, key: Key) -> Flight | None:
        flight = self.lanes[arm].flights.pop(key, None)
        if flight is not None:
            self.lanes[arm].running -= flight.started
        return flight
