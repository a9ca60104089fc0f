"""One race's purchase as the host sees it: who was asked what, what it cost, who has left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any

from evalbudget import Budget, Cell, Design, Reading, Request
from evalbudget.budget import USED_UP
from evalbudget.errors import BudgetError
from evalbudget.races._config import RaceConfig
from evalbudget.races._known_answers import KnownAnswers
from evalbudget.races._lanes import Asked, Flight, Key, KnownCell, Lane
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import RacingSampler
from evalbudget.run import ABANDONED, LOST, RUN_AGAIN, UNANSWERED, Bill

if TYPE_CHECKING:
    from evalbudget.book import Book

_NOTHING = 1e-9  # of a budget in money: what is promised for a cell, whose cost is on the bill
_SLACK = 1e-9
_KNOWN = "answers that are known, and what runs again"


class RacePurchase:
    """Drives one sampler of models from a host that runs one task per arm.

    The race is a book in memory, which pays for the cells of a pass in their order; the host is given them as
    its arms have hands. What earlier attempts answered is asked anew and answered at no cost.

    Args:
        config: what the user asked for.
        arms: names, in the order of the sampler's models.
        items: sample ids, in order.
        attempts: how often the host runs one cell at most (1 + its retries on error): all of them cost.
        widths: cells each arm runs at once; None to watch it.
        predictor: learned from history.
        cost_of: what a sample cost so far, by the host's own name of it, where the budget is money or tokens;
            the cap is then kept by a :class:`~evalbudget.run.Bill`. None where evaluations are counted.
        bill: that calls are on, where a cell is to begin only if what is left covers the dearest one so far
            beside those under way. None where the host looks after that.
        categories: label of each item, in order; None for none.
        repeats: answers to each item. Where they are several, each is an item of the design, and the answers
            to one item are one category unless there are categories.

    Raises:
        BudgetError: the budget does not cover the first readings.
        InvalidInputError: the sampler refuses the design.
    """

    def __init__(
        self,
        config: RaceConfig,
        arms: Sequence[str],
        items: Sequence[str],
        *,
        attempts: int = 1,
        widths: Sequence[int | None] | None = None,
        predictor: FactorModel | None = None,
        cost_of: Callable[[str], float] | None = None,
        bill: Bill | None = None,
        categories: Sequence[str] | None = None,
        repeats: int = 1,
    ) -> None:
        self.config = config
        self.repeats = repeats
        self._documents = tuple(items)
        self._place = {item: place for place, item in enumerate(items)}
        if repeats > 1:
            labels_of = items if categories is None else categories
            categories = [label for label in labels_of for _ in range(repeats)]
            items = [f"{item} #{number + 1}" for item in items for number in range(repeats)]
        self._cost_of = cost_of
        self._bill = bill
        labels = None if categories is None else tuple(categories)
        self.design = Design(items=tuple(items), models=tuple(arms), categories=labels)
        self.budget: Budget = config.resolve_budget(len(items), len(arms))
        self.attempts = attempts
        widths = widths or [None] * len(arms)
        self.lanes = [Lane(name, width) for name, width in zip(arms, widths, strict=True)]
        self._samples: dict[tuple[int, Key], str] = {}
        self._keys: set[tuple[int, Key]] = set()  # that are taken
        self._known = KnownAnswers(self._place, repeats)
        self._due = [deque[Request]() for _ in arms]  # of each, that no host was given yet
        self._is_short = False  # the book, when it was asked last
        self._n_asked = 0  # cells with the host that the book asked for
        self._came: list[Reading] = []  # that the book was not told yet
        self._sampler, most = self._make(predictor), float(attempts)
        if cost_of is not None:
            self._sampler.weigh_costs(self.budget.amount)
            most = _NOTHING * self.budget.amount
        self._most = most
        self._book: Book | None = None
        self._is_stale = self._is_unseen = True  # since it was asked last, and looked at

    @property
    def book(self) -> Book:
        """With every cell that was asked, and what is spent."""
        if self._book is None:
            from evalbudget.book import Book  # it brings SQLAlchemy, and hosts start without

            most, known = self._most, self._known
            self._book = Book(self._sampler, self.budget, most=lambda cell: 0.0 if cell in known else most)
        return self._book

    def _make(self, predictor: FactorModel | None) -> RacingSampler:
        config = self.config
        if self._cost_of is not None:
            return config.make_sampler(self.design, predictor=predictor)
        planned = min(int(self.budget.amount), self.grid)
        sampler = config.make_sampler(self.design, budget=planned, predictor=predictor)
        minimum = sampler.minimum_readings + self.attempts - 1
        if config.budget is None and self.budget.amount < minimum:  # retries of a small grid
            self.budget = Budget(minimum)
        if self.budget.amount < minimum:
            raise BudgetError(
                f"budget of {self.budget} is below the minimum of {minimum} here: {config.sampler} reads "
                f"{sampler.minimum_readings} cells of the {len(self.lanes)} models before it chooses. Raise "
                f"--budget to {minimum} or more, give a smaller --batch, or race fewer models"
            )
        return sampler

    @property
    def sampler(self) -> RacingSampler:
        """That decides, and tells how the race stands now."""
        if self._is_unseen:
            self.book.trade(self._taken(), 0)
            self.book.look()
            self._is_unseen = False
        return self._sampler

    @property
    def evaluations(self) -> int:
        """That were paid for, by all arms."""
        return int(sum(lane.evaluations for lane in self.lanes))

    @property
    def most_evaluations(self) -> int:
        """That the budget buys at most; the grid, where it is money or tokens."""
        return self.grid if self._cost_of is not None else int(self.budget.amount)

    @property
    def grid(self) -> int:
        """Cells of the full grid: every arm on every item."""
        return self.design.n_models * self.design.n_items

    @property
    def spent(self) -> float:
        """In units of the budget."""
        return sum(lane.tally.spent for lane in self.lanes) if self._bill is None else self._bill.spent

    @property
    def free(self) -> float:
        """Of a budget in evaluations, what is neither spent nor put aside for cells with the host."""
        self.book.trade(self._taken(), 0)
        return self.book.free + sum(map(self.book.most, self._all_due))

    @property
    def _all_due(self) -> list[Request]:
        """In the order of the pass."""
        return sorted(chain.from_iterable(self._due), key=_number)

    # what earlier attempts paid for

    def replay(
        self, known: Mapping[int, Sequence[KnownCell]], unread: Mapping[int, float] | None = None
    ) -> set[tuple[int, Key]]:
        """Take over what earlier attempts paid for, arm by arm.

        Answers to items that the race no longer has are paid for, and teach nothing.

        What was cut off runs again only if the budget pays for it on top of what it may have cost then.

        Args:
            known: cells of each arm that the host knows.
            unread: evaluations that earlier attempts at each arm paid for and nobody read; none where the
                budget is money or tokens, since the bill has them.

        Returns:
            Arms and keys of cells that were cut off and cannot be paid for again; the race may ask them anew.
        """
        cells = [
            (arm, cell)
            for arm, own in known.items()
            for cell in sorted(own, key=lambda c: c.key[1])
            if cell.key[0] in self._place
        ]
        if self._cost_of is not None:  # call by call the bill decides what runs again
            for arm, cell in cells:
                if cell.again and self.lanes[arm].absent:  # which nobody runs again
                    self.pay(arm, cell.attempts)
                else:
                    self._take_over(arm, cell)
            return set()
        unread = unread or {}
        gone = {
            arm: sum(c.attempts for c in own if c.key[0] not in self._place) for arm, own in known.items()
        }
        free = self.book.free - sum(unread.values()) - sum(gone.values())
        free -= sum(cell.attempts for _, cell in cells)
        left_out: set[tuple[int, Key]] = set()
        put_aside = 0.0
        for arm, cell in cells:
            if cell.again and (self.lanes[arm].absent or self.attempts > free + _SLACK):
                left_out.add((arm, cell.key))
                self.pay(arm, cell.attempts)
                continue
            free -= self.attempts * cell.again
            put_aside += self._take_over(arm, cell)
        self._put_aside(put_aside)
        for costs, why in ((gone, LOST), (unread, UNANSWERED)):
            for arm, cost in costs.items():
                if cost:
                    self.pay(arm, min(cost, max(0.0, self.book.free)), why)
        return left_out

    def _take_over(self, arm: int, cell: KnownCell) -> float:
        """What is to be put aside for a cell, in evaluations."""
        self._samples[arm, cell.key] = cell.sample
        self._keys.add((arm, cell.key))
        item = self._known.add(arm, cell)
        if item is None:  # an operator had a cell run again: it is paid for, and nothing follows
            self.pay(arm, cell.attempts, RUN_AGAIN)
            return 0.0
        self._changed()
        if not cell.again:
            self._count(arm, cell)
            return cell.attempts
        promised = float(cell.attempts + self.attempts)
        self.lanes[arm].flights[cell.key] = Flight(item, promised=promised, attempts=cell.attempts)
        return promised

    def _put_aside(self, evaluations: float) -> None:
        """For what is with the host and was not asked for, or for what is known and was not asked yet."""
        if evaluations and self._cost_of is None:
            self.book.pay(evaluations, _KNOWN)

    # what happens

    def started(self, arm: int, key: Key) -> None:
        """The host works on this cell now."""
        lane = self.lanes[arm]
        flight = lane.flights.get(key)
        if flight is not None and not flight.started:
            flight.started = True
            lane.running += 1
            lane.peak = max(lane.peak, lane.running)

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
        self._samples[arm, key] = sample
        flight = self._land(self.lanes[arm], key)
        if flight is None:
            # an operator had a finished cell run again: it is paid for, but what followed from its first
            # reading cannot be taken back
            self.pay(arm, 1.0, RUN_AGAIN)
            return
        cell = KnownCell(key, value, attempts, error=error, sample=sample)
        self._put_aside(-flight.promised)
        self._count(arm, cell)
        if flight.request is None:
            self._known.replace(arm, flight.item, key, cell)
            self._put_aside(attempts)
        else:
            self._came.append(Reading(flight.request, value, self._cost(arm, cell), error))
        self._changed()

    def _cost(self, arm: int, cell: KnownCell) -> float:
        return float(cell.attempts) if self._cost_of is None else self._cost_of(self._samples[arm, cell.key])

    def _count(self, arm: int, cell: KnownCell) -> None:
        lane = self.lanes[arm]
        reading = Reading(Request(0, Cell()), cell.value, self._cost(arm, cell), cell.error)
        lane.tally.count(reading, attempts=cell.attempts)
        lane.evaluations += cell.attempts

    def _changed(self) -> None:
        self.book.has_answers = bool(self._known)
        self._is_stale = self._is_unseen = True

    def pay(self, arm: int, evaluations: float, reason: str = UNANSWERED) -> None:
        """Evaluations were paid for beside those of the readings, and teach nothing."""
        cost = evaluations if self._cost_of is None else 0.0  # which is on the bill
        self.lanes[arm].tally.lose(cost, reason, calls=evaluations)
        self.lanes[arm].evaluations += evaluations
        if cost:
            self.book.trade(self._taken(), 0)
            due = self._all_due
            for request in due[len(self.book.pay(cost, reason, out_of=due)) :]:
                self._due[request.cell.model].remove(request)
            self._changed()

    def pays(self, arm: int, evaluations: float) -> bool:
        """Pay for what brought nothing; False, and nothing paid, if it exceeds what is left."""
        if self._cost_of is None and evaluations > self.free + _SLACK:
            return False
        self.pay(arm, evaluations)
        return True

    def abandoned(self, arm: int, key: Key) -> None:
        """The host was told not to run this cell, before it did."""
        flight = self._give_up(arm, key)
        if flight is not None and flight.request is not None:
            self._came.append(Reading(flight.request, None, 0.0, ABANDONED))

    def _give_up(self, arm: int, key: Key) -> Flight | None:
        """The host does not run a cell, or not again; what earlier attempts ran of it is paid."""
        flight = self._land(self.lanes[arm], key)
        if flight is not None:
            self._put_aside(-flight.promised)
            if flight.request is None:
                self._known.replace(arm, flight.item, key, None)
            if flight.attempts:
                self.pay(arm, flight.attempts)
            self._changed()
        return flight

    def unaffordable(self, arm: int, key: Key) -> None:
        """It was not asked to its end, since that does not fit into what is left; nor is anything more."""
        self._take_back(arm, key)
        self._stop()

    def _take_back(self, arm: int, key: Key) -> None:
        """A cell was not asked."""
        flight = self._give_up(arm, key)
        if flight is not None and flight.request is not None:
            self.book.give_back([flight.request])

    def _stop(self) -> None:
        self.book.trade(self._taken(), 0)
        self.book.stop(USED_UP)
        for arm in range(len(self.lanes)):
            self._give_back(arm)

    def _give_back(self, arm: int) -> None:
        """What the host was not given yet."""
        if self._due[arm]:
            self.book.give_back(self._due[arm])
            self._due[arm].clear()
        self._changed()

    def leave(self, arm: int, reason: str) -> None:
        """Ask an arm nothing more: its task has ended. What it was running counts as paid."""
        lane = self.lanes[arm]
        if lane.left is not None:
            return
        lane.left = reason
        self.book.withdraw(arm, reason)
        self._give_back(arm)
        for key, flight in list(lane.flights.items()):
            # a call that was under way may have been billed; better to buy too little than too much
            if flight.started:
                sample = self._samples.get((arm, key), "")
                self.completed(arm, key, None, attempts=flight.attempts + 1, error=reason, sample=sample)
            else:
                self._take_back(arm, key)

    # what is asked

    def wanted(self) -> list[Asked]:
        """Cells to run next, in the sampler's order, as far as the arms have hands and the budget pays.

        What the budget buys does not depend on who is faster: evaluations are paid in the order of the pass,
        and in money an arm without a free hand holds up those behind it, who would wait for it at the end of
        the round anyway.
        """
        if self._is_stale and not any(self._due) and (self._is_short or not self._n_asked):
            self._advance()
        if self._bill is not None:
            return self._as_money_allows()
        given = [
            due.popleft()
            for lane, due in zip(self.lanes, self._due, strict=True)
            for _ in range(min(lane.room, len(due)))
        ]
        return [self._handed(request) for request in sorted(given, key=_number)]

    def _as_money_allows(self) -> list[Asked]:
        asked: list[Asked] = []
        while self._affords:
            first = min((own[0] for own in self._due if own), key=_number, default=None)
            if first is None or not self.lanes[first.cell.model].room:
                break
            asked.append(self._handed(self._due[first.cell.model].popleft()))
        if any(self._due) and not any(lane.flights for lane in self.lanes):
            self._stop()
        return asked

    @property
    def _affords(self) -> bool:
        """Whether one more cell may begin."""
        assert self._bill is not None
        each = max(self._bill.most_of_sample, _NOTHING * self.budget.amount)
        begun = sum(len(lane.flights) for lane in self.lanes)
        return (begun + 1) * each <= self.budget.amount - self._bill.spent + _SLACK * each

    def _advance(self) -> None:
        """Have the book hand out what can be paid, and answer what is known."""
        while True:
            requests = self.book.trade(self._taken(), self.grid)
            for request in requests:
                if request.cell in self._known:
                    self._answer(request)
                else:
                    self._due[request.cell.model].append(request)
            absent = [arm for arm, lane in enumerate(self.lanes) if lane.absent and self._due[arm]]
            for arm in absent:  # what they answered does not go further
                self.leave(arm, "finished in an earlier run")
            if not self._came and not absent:
                break
        self._is_stale, self._is_unseen, self._is_short = False, True, self.book.is_short

    def _answer(self, request: Request) -> None:
        """By what an earlier attempt was answered, or the host is about to be."""
        arm, cell = request.cell.model, self._known.take(request.cell)
        if cell.again:
            self.lanes[arm].flights[cell.key].request = request
            self._n_asked += 1
        else:  # in evaluations it is paid
            cost = 0.0 if self._cost_of is None else self._cost(arm, cell)
            self._came.append(Reading(request, cell.value, cost, cell.error))
        self._changed()

    def _taken(self) -> list[Reading]:
        came, self._came = self._came, []
        return came

    def _handed(self, request: Request) -> Asked:
        arm, item = request.cell.model, request.cell.item
        document, number = self._documents[item // self.repeats], item % self.repeats + 1
        while (arm, (document, number)) in self._keys:  # it failed before
            number += self.repeats
        self._keys.add((arm, (document, number)))
        self._n_asked += 1
        self.lanes[arm].flights[document, number] = Flight(item, request)
        return Asked(arm, (document, number))

    # what is known

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return nullcontext()

    @property
    def finished(self) -> bool:
        """Nothing is running and nothing more will be asked."""
        if self._came or any(self._due) or any(lane.flights for lane in self.lanes):
            return False
        return self.book.finished or self._all_left

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        if not self.finished:
            return "not finished"
        return "every model has left" if self._all_left else self.book.stop_reason

    @property
    def stopped(self) -> bool:
        """Whether nothing more is asked, whatever the sampler wants."""
        return self.book.stopped

    @property
    def _all_left(self) -> bool:
        return all(lane.left is not None for lane in self.lanes)

    def _land(self, lane: Lane, key: Key) -> Flight | None:
        flight = lane.flights.pop(key, None)
        if flight is not None:
            lane.running -= flight.started
            self._n_asked -= flight.request is not None
        return flight


def _number(request: Request) -> int:
    return request.id
