"""One race's purchase as the host sees it: who was asked what, what it cost, who has left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalbudget import Budget, Cell, Design, Reading, Request
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.races._arms import Arms
from evalbudget.races._config import RaceConfig
from evalbudget.races._lanes import CUT_OFF, SILENT, Asked, Entry, Flight, Key, KnownCell
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import RacingSampler
from evalbudget.run import LOST, RUN_AGAIN, UNANSWERED, Bill

if TYPE_CHECKING:
    from evalbudget.book import Book, Turn
    from evalbudget.races._lobby import Lobby
    from evalbudget.races._shared_bill import SharedBill
    from evalbudget.store import Database

_NOTHING = 1e-9  # of a budget in money: what is promised for a cell, whose cost is on the bill
_SLACK = 1e-9


class RacePurchase(Arms):
    """Drives one sampler of models from a host that runs one task per arm.

    The race is a book, which pays for the cells of a pass in their order, and hands them out as arms have
    hands. What earlier attempts answered is asked anew and answered at no cost.

    Where several processes share it, the book is in a store and each runs some arms: it begins when all have
    joined, and is given the cells of its own. A process that runs the same arms as one before it takes their
    place.

    Args:
        config: what the user asked for.
        arms: names, in the order of the sampler's models; with a store, of those that run here, each the same
            wherever it runs.
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
        about: with a store, what else must be the same for all processes, such as the task and the score.
        defers: with a store, as of a :class:`~evalbudget.book.Book`: who calls :meth:`turn` waits for it, and
            nobody else.
        lease: with a store, seconds without a sign of life after which arms leave the race.
        where: without a store, the book is kept, begun anew by this attempt; None: in memory.

    Raises:
        BudgetError: the budget does not cover the first readings.
        InvalidInputError: the sampler refuses the design, or more arms run here than race.
        StoreError: the store belongs to another race.
        StoreDownError: it cannot be reached.
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
        about: Mapping[str, str] = MappingProxyType({}),
        defers: bool = False,
        lease: float = 60.0,
        where: Database | None = None,
    ) -> None:
        self.config = config
        self._where, self._beside = where, 0.0
        self.lacks = False
        """Whether the book does not have all that earlier attempts paid."""
        self._defers, self._is_closed, self._is_finished = defers, False, False
        self._lobby: Lobby | None = None
        own, documents = tuple(arms), tuple(items)
        if config.all_arms is not None:
            if not 0 < len(own) <= config.all_arms:
                raise InvalidInputError(
                    f"{len(own)} arms run here, and the race has {config.all_arms} in all"
                )
            arms = [f"arm {number + 1}" for number in range(config.all_arms)]  # until they are known
        if repeats > 1:
            labels_of = items if categories is None else categories
            categories = [label for label in labels_of for _ in range(repeats)]
            items = [f"{item} #{number + 1}" for item in items for number in range(repeats)]
        self._bill = bill
        labels = None if categories is None else tuple(categories)
        self.design = Design(items=tuple(items), models=tuple(arms), categories=labels)
        self.budget: Budget = config.resolve_budget(len(items), len(arms))
        super().__init__(
            arms,
            dict(zip(own, widths or [None] * len(own), strict=True)),
            documents,
            repeats,
            attempts,
            cost_of,
            tells_at_once=config.store is not None and not defers,
            is_kept=where is not None,
        )
        self._sampler, most = self._make(predictor), float(attempts)
        if cost_of is not None:
            self._sampler.weigh_costs(self.budget.amount)
            most = _NOTHING * self.budget.amount
        self._most = most
        self._book: Book | None = None
        if config.store is not None:
            self._book = self._shared_book(config.store, own, {"attempts": str(attempts), **about}, lease)

    @property
    def book(self) -> Book:
        """With every cell that was asked, and what is spent."""
        if self._book is None:
            from evalbudget.book import Book  # it brings SQLAlchemy, and hosts start without

            most, at_once = self._most_of, self._at_once
            self._book = Book(self._sampler, self.budget, self._where, most=most, at_once=at_once)
        return self._book

    def turned(self, score: float) -> float:
        """See :meth:`RaceConfig.turned`."""
        return self.config.turned(score)

    def _shared_book(self, store: str, own: Sequence[str], about: Mapping[str, str], lease: float) -> Book:
        from evalbudget.book import Book
        from evalbudget.store import Address

        own_ways = ("store", "prices")  # prices are compared model by model
        asked = {name: str(value) for name, value in asdict(self.config).items() if name not in own_ways}
        return Book(
            self._sampler,
            self.budget,
            Address.parse(store),
            most=self._most_of,
            at_once=self._at_once,
            about={**asked, **about},
            known_as=", ".join(sorted(own)),
            defers=self._defers,
            stays_stopped=True,  # others may have left
            lease=lease,
        )

    def _most_of(self, cell: Cell) -> float:
        return self._most if self._known.of(cell) is None else 0.0

    def _at_once(self) -> float:
        """How many cells of rounds may be with hosts: each may need as much as the dearest so far."""
        if self._bill is None:
            return math.inf
        each = max(self._bill.most_of_sample, _NOTHING * self.budget.amount)
        again = sum(flight.request is None for lane in self.lanes for flight in lane.flights.values())
        return math.floor((self.budget.amount - self._bill.spent) / each + _SLACK) - again

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
            of_one = min(sampler.batch, self.design.n_items)
            smaller = ", give a smaller --batch" * (
                sampler.minimum_readings >= len(self.lanes) * of_one > len(self.lanes)
            )
            raise BudgetError(
                f"budget of {self.budget} is below the minimum of {minimum} here: {config.sampler} reads "
                f"{sampler.minimum_readings} cells of the {len(self.lanes)} models before it chooses. Raise "
                f"--budget to {minimum} or more{smaller}, or race fewer models"
            )
        return sampler

    @property
    def sampler(self) -> RacingSampler:
        """That decides, and tells how the race stands now."""
        self._tell()
        self.book.look()
        return self._sampler

    @property
    def evaluations(self) -> int:
        """That were paid for, by all arms."""
        return int(sum(lane.evaluations for lane in self.lanes) + self._beside)

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
        if self._bill is not None:
            return self._bill.spent
        return sum(lane.tally.spent for lane in self.lanes) + self._beside

    @property
    def free(self) -> float:
        """Of a budget in evaluations, what is neither spent nor put aside for cells with the host."""
        self._tell()
        return self.book.free

    # several processes

    def join(
        self,
        entries: Iterable[Entry],
        *,
        prices: Mapping[str, str] = MappingProxyType({}),
        bill: SharedBill | None = None,
    ) -> None:
        """Have the own arms take part; the store is let go if they cannot.

        Args:
            entries: of them.
            prices: of models that are known to be asked here; others who ask them must have the same.
            bill: of the calls of all processes, where the budget is money or tokens.

        Raises:
            StoreError: the race has gone on without one of them.
            StoreDownError: the store cannot be reached.
            InvalidInputError: another process runs one of them, or has other prices.
        """
        from evalbudget.races._lobby import Lobby

        try:
            if bill is not None:
                bill.share(self.book)
            self._lobby = lobby = Lobby(self.book, self, prices, in_money=bill is not None)
            for entry in entries:
                if lobby.join(entry):
                    with self.book.together():
                        self._settle(entry)
        except BaseException:
            self.close()
            raise

    @property
    def begun(self) -> bool:
        """Whether all arms are there."""
        return self.config.store is None or (self._lobby is not None and bool(self._lobby.names))

    @property
    def missing(self) -> int:
        """Arms that are not there yet."""
        return 0 if self._lobby is None else self._lobby.missing

    @property
    def left_out(self) -> set[tuple[int, Key]]:
        """Arms and keys of cells that were cut off and are not paid for again."""
        with self.steady():
            return self._cut_off | (set() if self._lobby is None else self._lobby.left_out)

    def begin(self, names: Sequence[str]) -> None:
        """These take part."""
        self.design = replace(self.design, models=tuple(names))
        super().begin(names)

    def recall(self, arm: int, known: Sequence[KnownCell], again: Mapping[Key, int] | None) -> None:
        """Know what an arm had answered before the race, and was paid for when that began.

        Args:
            arm: index.
            known: its cells.
            again: those that its host runs again, if that is here, and how often they were run before.
        """
        for cell in self._of_race(known):
            item = self._recall(arm, cell)
            if item is None or again is None or not cell.again:
                continue
            if cell.key in again:
                promised = float(again[cell.key] + self.attempts)
                flight = Flight(item, promised=promised, attempts=again[cell.key])
                self.lanes[arm].flights[cell.key] = flight
            else:  # it came back before this process took part, and was paid for
                self._known.replace(arm, item, KnownCell(cell.key, None, 0, error=CUT_OFF))

    def _settle(self, entry: Entry) -> None:
        """Of what was under way when the arm's process ended, read what its host kept; the rest is lost."""
        arm = self.design.models.index(entry.arm)
        lane, known = self.lanes[arm], {cell.key: cell for cell in entry.known if not cell.again}
        self._known.take_keys(arm, entry.known)
        self._cut_off |= {(arm, cell.key) for cell in entry.known if cell.again}
        for request in self.book.held:
            if request.cell.model == arm:
                key = self._known.key_of(self._numbered(request))
                lane.flights.setdefault(key, Flight(request.cell.item)).request = request
        beyond = entry.unread - sum(self.attempts for key in lane.flights if key not in known)
        if beyond > 0.0 and self._cost_of is None:
            self.pay(arm, min(beyond, self.free))
        for key, flight in list(lane.flights.items()):
            lost = KnownCell(key, None, flight.attempts + self.attempts, error=CUT_OFF)
            self._completed(arm, known.get(key, lost))

    def silent(self, arm: int, turn: Turn, worker: int, again: Mapping[Key, int]) -> None:
        """The process of an arm gives no sign of life: it leaves, and what it ran counts at the most."""
        lane, in_scores = self.lanes[arm], self._cost_of is None
        run = self.attempts if in_scores else 1
        for claim in turn.taken(worker).values():
            if claim.request.cell.model == arm:
                lost = Reading(claim.request, None, claim.most if in_scores else 0.0, SILENT)
                turn.take_in(claim, lost)
                if claim.most:  # otherwise it is one of those below
                    lane.tally.count(lost, attempts=run)
                    lane.evaluations += run
        for attempts in again.values():  # the book has put all of it aside
            most = float(attempts + run)
            lane.tally.lose(most if in_scores else 0.0, SILENT, calls=most)
            lane.evaluations += most
        lane.left = SILENT
        turn.withdraw(arm, SILENT)

    def close(self) -> None:
        """Let a store go; arms leave the race when the lease ends, unless they are joined again."""
        if self.config.store is not None and not self._is_closed:
            self._is_closed = True
            self.book.close(keeps=not self.finished)

    # what earlier attempts paid for

    def let_go(self) -> None:
        """The race is over, and what it is asked from now on it knows without its book."""
        if not self._is_closed:
            self._tell()
            self._is_closed = True

    def replay(
        self,
        known: Mapping[int, Sequence[KnownCell]],
        unread: Mapping[int, float] = MappingProxyType({}),
        *,
        lacks: bool = False,
    ) -> set[tuple[int, Key]]:
        """Take over what earlier attempts paid for, arm by arm.

        Answers to items that the race no longer has are paid for, and teach nothing. What else the book says
        that they paid was for cells that had begun when they ended, or for calls that brought nothing.

        What was cut off runs again only if the budget pays for it on top of what it may have cost then; if
        not for all retries of the host, then for as many as it does.

        Args:
            known: cells of each arm that the host knows.
            unread: evaluations that earlier attempts at each arm paid for and nobody read, if the book lacks
                something; none where the budget is money or tokens, since the bill has them.
            lacks: it is known that the book does not have all that they paid.

        Returns:
            Arms and keys of cells that were cut off and cannot be paid for again; the race may ask them anew.
        """
        cells = [(arm, cell) for arm, own in known.items() for cell in self._of_race(own)]
        if self._cost_of is not None:  # call by call the bill decides what runs again
            for arm, cell in cells:
                if cell.again and self.lanes[arm].absent:  # which nobody runs again
                    self.pay(arm, cell.attempts)
                else:
                    self._take_over(arm, cell, self.attempts)
            return set()
        self.lacks = lacks
        beside = self.book.beside()
        return self.book.once(lambda _: self._take_in(known, unread, cells, beside))

    def _take_in(
        self,
        known: Mapping[int, Sequence[KnownCell]],
        unread: Mapping[int, float],
        cells: Sequence[tuple[int, KnownCell]],
        beside: Mapping[str, float],
    ) -> set[tuple[int, Key]]:
        gone = {arm: sum(c.attempts for c in own if not self._known.has(c.key)) for arm, own in known.items()}
        told = sum(gone.values()) + sum(cell.attempts for _, cell in cells)
        if self._is_kept:  # what is paid for cells is not paid beside them too
            paid = self.book.spent
            self.lacks = self.lacks or paid < told - _SLACK
            unread = unread if self.lacks else {}
            self._beside = max(0.0, paid - told)
            for why, cost in beside.items():
                self.book.pay(-cost, why)
            self.book.pay(self._beside, UNANSWERED)
        free = self.book.free - told - sum(unread.values())
        left_out: set[tuple[int, Key]] = set()
        n_again = sum(cell.again and not self.lanes[arm].absent for arm, cell in cells)
        each = max(1, min(self.attempts, math.floor(free / max(1, n_again) + _SLACK)))
        put_aside = begun = 0.0
        for arm, cell in cells:
            if cell.again and (self.lanes[arm].absent or each > free + _SLACK):
                left_out.add((arm, cell.key))
                self.pay(arm, cell.attempts)
                continue
            free -= each * cell.again
            promised = self._take_over(arm, cell, each)
            put_aside += promised
            begun += min(promised, cell.attempts)
        self._put_aside(put_aside, begun)
        for costs, why in ((gone, LOST), (unread, UNANSWERED)):
            for arm, cost in costs.items():
                if cost:
                    self.pay(arm, min(cost, max(0.0, self.book.free)), why)
        return left_out

    def _take_over(self, arm: int, cell: KnownCell, attempts: int) -> float:
        """What is to be put aside for a cell, in evaluations, if it is tried so often again at most."""
        item = self._recall(arm, cell)
        if item is None:  # an operator had a cell run again: it is paid for, and nothing follows
            self.pay(arm, cell.attempts, RUN_AGAIN)
            return 0.0
        if not cell.again:
            self._count(arm, cell)
            return cell.attempts
        promised = float(cell.attempts + attempts)
        so_far = cell.attempts
        flight = Flight(item, promised=promised, begun=so_far, attempts=so_far, paid=attempts)
        self.lanes[arm].flights[cell.key] = flight
        return promised

    def _of_race(self, known: Sequence[KnownCell]) -> list[KnownCell]:
        return sorted((cell for cell in known if self._known.has(cell.key)), key=lambda c: c.key[1])

    def _recall(self, arm: int, cell: KnownCell) -> int | None:
        self.book.has_answers = True
        self._samples[arm, cell.key] = cell.sample
        return self._known.add(arm, cell)

    # what is asked

    def wanted(self) -> list[Asked]:
        """Cells to run next, in the sampler's order, as far as the arms have hands and the budget pays.

        What the budget buys does not depend on who is faster: cells are paid in the order of the pass.
        """
        if not self._defers:
            self.turn()
        with self.steady():
            given, self._given = self._given, []
        return given

    def turn(self) -> None:
        """Hand over what was told, take in what other processes did, and take cells for the own arms."""
        if not self.begun:
            self.look()
        while self.begun:
            self._try_less()
            requests = self.book.trade((), self._room)
            with self.steady():
                has_answered = [self._take(request) for request in requests]
                self._is_finished = self._is_over
            if not any(has_answered):
                break

    def _try_less(self) -> None:
        """The last cells, whose retries are not all paid for, are tried one by one, as long as it is paid."""
        in_scores = self.config.store is None and self._cost_of is None
        if not in_scores or self.attempts == 1 or any(lane.flights for lane in self.lanes):
            return
        free = math.floor(self.free + _SLACK)  # with what was told since the last turn
        if 1 <= free < self._most:
            self._most = float(free)

    def _take(self, request: Request) -> bool:
        """A cell is this process's; whether it is as good as answered."""
        lane = self.lanes[request.cell.model]
        if self._known_of(request) is not None:
            self._answer(request)
            return True
        if lane.left is None and not lane.absent:
            self._given.append(self._handed(request))
            return False
        self.book.give_back([request])
        self._leave(request.cell.model, "finished in an earlier run")  # what it answered does not go further
        return True

    def _room(self, arm: int) -> int:
        """How many cells an arm can be given; below 0 for one that runs elsewhere."""
        if self._lobby is not None and not self._lobby.is_own(arm):
            return -1
        return 1 if self.lanes[arm].absent else self.lanes[arm].room

    def _known_of(self, request: Request) -> KnownCell | None:
        return self._known.of(self._numbered(request))

    def _answer(self, request: Request) -> None:
        """By what an earlier attempt was answered, or the host is about to be."""
        arm, cell = request.cell.model, self._known_of(request)
        assert cell is not None
        if cell.again:
            self.lanes[arm].flights[cell.key].request = request
        else:  # in evaluations it is paid
            cost = 0.0 if self._cost_of is None else self._cost(arm, cell)
            self._tell_of(request, cell, cost)

    def _tell(self) -> None:
        if not self._defers and not self._is_closed:
            self.book.refresh()

    def _handed(self, request: Request) -> Asked:
        arm = request.cell.model
        key = self._known.new_key(self._numbered(request))
        paid = math.inf if self._cost_of is not None else self._most
        self.lanes[arm].flights[key] = Flight(request.cell.item, request, paid=paid)
        return Asked(arm, key)

    def _numbered(self, request: Request) -> Cell:
        """Its cell, whose epoch counts the calls of its model and item."""
        return request.cell._replace(epoch=self.book.attempt(request))

    # what is known

    @property
    def finished(self) -> bool:
        """Nothing is running and nothing more will be asked; of several processes, as of the last turn."""
        return self._is_finished if self._lobby is not None else self._is_over

    @property
    def _is_over(self) -> bool:
        if any(lane.flights for lane in self.lanes) or (self._lobby is not None and self._lobby.runs_again):
            return False
        return self.book.finished or (self._all_left and self.book.is_told)

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
