"""One race's purchase as the host sees it: who was asked what, what it cost, who has left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from evalbudget import Budget, Cell, Design, Reading, Request
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.races._config import RaceConfig
from evalbudget.races.prediction import FactorModel
from evalbudget.run import LOST, RUN_AGAIN, UNANSWERED, USED_UP, Bill, Flight, Purchase, Tally

Key = tuple[str, int]
"""Item id, and epoch as hosts count, from 1."""

_NOTHING = 1e-9  # of a budget in money: what is promised for a cell, whose cost is on the bill
_WIDTH = 10  # cells an arm is given at once, where nobody said how many it runs


@dataclass(frozen=True, slots=True)
class KnownCell:
    """One cell that an earlier attempt paid for.

    Attributes:
        key: sample id and epoch.
        value: its score; None if it failed.
        attempts: how often it was run; all of them cost.
        again: the host runs it again, since it was cancelled on the way.
        error: why it failed.
        sample: the host's own name of it, by which a bill knows it.
    """

    key: Key
    value: float | None
    attempts: int
    again: bool = False
    error: str | None = None
    sample: str = ""


@dataclass(slots=True, eq=False)
class Lane:
    """What one arm has cost and brought.

    Attributes:
        name: of the arm.
        width: cells to keep with the host at once; None to watch it.
        running: cells the host works on.
        evaluations: that were paid for, whether or not they brought a score.
        tally: its scores, failures and attempts so far.
        left: why nothing more can be asked of it from outside; None while it takes part.
        absent: it does not run this time; what it answered earlier is known.
    """

    name: str
    width: int | None = None
    running: int = 0
    evaluations: float = 0.0
    tally: Tally = field(default_factory=Tally)
    left: str | None = None
    absent: bool = False
    flights: dict[Key, Flight] = field(default_factory=dict)
    peak: int = 1

    @property
    def room(self) -> int:
        """How many more cells to give it now."""
        if self.left is not None or self.absent:
            return 0
        width = self.width or max(_WIDTH, self.peak + max(1, self.peak // 8))
        return max(0, width - len(self.flights))


@dataclass(frozen=True, slots=True)
class Asked:
    """A cell for the host to run.

    Attributes:
        arm: index of the arm.
        key: sample id and epoch.
    """

    arm: int
    key: Key


class RacePurchase:
    """Drives one sampler of models from a host that runs one task per arm.

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
        self._keys: list[Key] = [(item, epoch + 1) for item in items for epoch in range(repeats)]
        if repeats > 1:
            labels_of = items if categories is None else categories
            categories = [label for label in labels_of for _ in range(repeats)]
            items = [f"{item} #{epoch}" for item, epoch in self._keys]
        self._cost_of = cost_of
        self._bill = bill
        self._samples: dict[tuple[int, Key], str] = {}
        labels = None if categories is None else tuple(categories)
        self.design = Design(items=tuple(items), models=tuple(arms), categories=labels)
        self.budget: Budget = config.resolve_budget(len(items), len(arms))
        self.attempts = attempts
        self._index = {key: i for i, key in enumerate(self._keys)}
        self._blocked: Lane | None = None  # the arm whose free hand the next cell waits for
        widths = widths or [None] * len(arms)
        self.lanes = [Lane(name, width) for name, width in zip(arms, widths, strict=True)]
        if cost_of is not None:
            self.sampler = config.make_sampler(self.design, predictor=predictor)
            self.sampler.weigh_costs(self.budget.amount)
            self.purchase = Purchase(self.sampler, self.budget, cost=_NOTHING * self.budget.amount)
            return
        self.sampler = config.make_sampler(
            self.design, budget=min(int(self.budget.amount), self.grid), predictor=predictor
        )
        minimum = self.sampler.minimum_readings + attempts - 1
        if config.budget is None and self.budget.amount < minimum:  # retries of a small grid
            self.budget = Budget(minimum)
        if self.budget.amount < minimum:
            raise BudgetError(
                f"budget of {self.budget} is below the minimum of {minimum} here: {config.sampler} reads "
                f"{self.sampler.minimum_readings} cells of the {len(arms)} models before it chooses. Raise "
                f"--budget to {minimum} or more, give a smaller --batch, or race fewer models"
            )
        self.purchase = Purchase(self.sampler, self.budget, cost=attempts)

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

    # what happens

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
            if self._has(cell)
        ]
        if self._cost_of is not None:  # call by call the bill decides what runs again
            for arm, cell in cells:
                self._samples[arm, cell.key] = cell.sample
                self._replay(arm, cell)
            return set()
        unread = unread or {}
        gone = {arm: sum(c.attempts for c in own if not self._has(c)) for arm, own in known.items()}
        free = self.purchase.ledger.free - sum(unread.values()) - sum(gone.values())
        free -= sum(cell.attempts for _, cell in cells)
        left_out: set[tuple[int, Key]] = set()
        for arm, cell in cells:
            if cell.again and self.attempts > free + 1e-9:
                left_out.add((arm, cell.key))
                self.pay(arm, cell.attempts)
                continue
            free -= self.attempts * cell.again
            self._replay(arm, cell)
        for costs, why in ((gone, LOST), (unread, UNANSWERED)):
            for arm, cost in costs.items():
                if cost:
                    self.pay(arm, min(cost, self.purchase.ledger.free), why)
        return left_out

    def _has(self, cell: KnownCell) -> bool:
        """Whether an answer is to an item of this race."""
        return cell.key in self._index or (cell.key[0], 1) in self._index

    def _replay(self, arm: int, cell: KnownCell) -> None:
        lane = self.lanes[arm]
        promised = float(cell.attempts + self.attempts * cell.again)
        if self._cost_of is not None:
            promised = self.purchase.cost * cell.again
        place = self._index.get(cell.key)
        again = Cell(arm, self._index[cell.key[0], 1], cell.key[1] - 1)  # an answer beyond those asked for
        try:
            flight = self.purchase.adopt(again if place is None else Cell(arm, place), promised)
        except InvalidInputError:  # an operator had a cell run again: it is paid for, and nothing follows
            self.pay(arm, cell.attempts, RUN_AGAIN)
            return
        if cell.again:
            lane.flights[cell.key] = flight
        else:
            self._tell(
                lane,
                self._reading(arm, cell.key, flight, cell.value, cell.attempts, cell.error),
                cell.attempts,
            )

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
        lane = self.lanes[arm]
        flight = self._land(lane, key)
        if flight is None:
            # an operator had a finished cell run again: it is paid for, but what followed from its first
            # reading cannot be taken back
            self.pay(arm, 1.0, RUN_AGAIN)
            return
        self._tell(lane, self._reading(arm, key, flight, value, attempts, error), attempts)

    def pay(self, arm: int, evaluations: float, reason: str = UNANSWERED) -> None:
        """Evaluations were paid for beside those of the readings, and teach nothing."""
        cost = evaluations if self._cost_of is None else 0.0  # which is on the bill
        self.lanes[arm].tally.lose(cost, reason, calls=evaluations)
        self.lanes[arm].evaluations += evaluations
        self.purchase.pay(cost, reason, calls=evaluations)

    def pays(self, arm: int, evaluations: float) -> bool:
        """Pay for what brought nothing; False, and nothing paid, if it exceeds what is left."""
        if evaluations > self.purchase.ledger.free + 1e-9:
            return False
        self.pay(arm, evaluations)
        return True

    def abandoned(self, arm: int, key: Key) -> None:
        """The host was told not to run this cell, before it did."""
        lane = self.lanes[arm]
        flight = self._land(lane, key)
        if flight is not None:
            self.purchase.abandon(flight.request)

    def unaffordable(self, arm: int, key: Key) -> None:
        """It was not asked to its end, since that does not fit into what is left; nor is anything more."""
        flight = self._land(self.lanes[arm], key)
        if flight is not None:
            self.purchase.withdraw(flight.request)
        self.purchase.stop(USED_UP)

    def leave(self, arm: int, reason: str) -> None:
        """Ask an arm nothing more: its task has ended. What it was running counts as paid."""
        lane = self.lanes[arm]
        if lane.left is not None:
            return
        lane.left = reason
        self._blocked = None
        self.sampler.withdraw(arm)
        for key in list(lane.flights):
            started = lane.flights[key].started
            # a call that was under way may have been billed; better to buy too little than too much
            sample = self._samples.get((arm, key), "")
            self.completed(arm, key, None, attempts=int(started), error=reason, sample=sample)

    def wanted(self) -> list[Asked]:
        """Cells to run next, in the sampler's order, as far as the arms have hands and the budget pays.

        An arm without a free hand holds up those behind it, who would wait for it at the end of the round
        anyway: so what a budget buys does not depend on who is faster.
        """
        asked: list[Asked] = []
        if self._bill is not None:  # which has samples under way and lost ones, too
            self.purchase.ledger.spent = self._bill.spent
            self.purchase.promise_at_least(self._bill.most_of_sample)
        while self.purchase.affordable > 0:
            if self._blocked is not None and not self._blocked.room:
                return asked
            self._blocked = None
            requests = self.purchase.buy(eligible=self._eligible)
            if requests:
                asked.append(self._handed(requests[0]))
            elif not self._withdraw_absent():
                break
        if not self.purchase.outstanding:
            self.sampler.ask(1, eligible=lambda cell: False)  # what is read may have decided the race
        return asked

    def _handed(self, request: Request) -> Asked:
        item, epoch = self._keys[request.cell.item]
        key = (item, epoch + request.cell.epoch)
        self.lanes[request.cell.model].flights[key] = self.purchase.flights[request.id]
        return Asked(request.cell.model, key)

    def _eligible(self, cell: Cell) -> bool:
        if self._blocked is None and not self.lanes[cell.model].room:
            self._blocked = self.lanes[cell.model]
        return self._blocked is None

    def _withdraw_absent(self) -> bool:
        """Take the arm that holds up the others out of the race if it does not run; whether it did."""
        lane = self._blocked
        if lane is None or not lane.absent:
            return False
        self.leave(self.lanes.index(lane), "finished in an earlier run")
        return True

    # what is known

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return nullcontext()

    @property
    def finished(self) -> bool:
        """Nothing is running and nothing more will be asked."""
        return self.purchase.finished or (not self.purchase.outstanding and self._all_left)

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        if self.sampler.stop_reason is None and self._all_left:
            return "every model has left"
        return self.purchase.stop_reason

    @property
    def _all_left(self) -> bool:
        return all(lane.left is not None for lane in self.lanes)

    # bookkeeping

    def _land(self, lane: Lane, key: Key) -> Flight | None:
        flight = lane.flights.pop(key, None)
        if flight is not None and flight.started:
            lane.running -= 1
        return flight

    def _reading(
        self, arm: int, key: Key, flight: Flight, value: float | None, attempts: int, error: str | None
    ) -> Reading:
        cost = float(attempts) if self._cost_of is None else self._cost_of(self._samples[arm, key])
        return Reading(flight.request, value, cost, error)

    def _tell(self, lane: Lane, reading: Reading, attempts: int) -> None:
        lane.tally.count(reading, attempts=attempts)
        lane.evaluations += attempts
        if reading.value is None and attempts:
            self._blocked = None  # what failed is asked again first
        self.purchase.tell(reading)
