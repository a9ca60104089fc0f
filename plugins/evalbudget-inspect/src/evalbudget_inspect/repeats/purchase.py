"""One run's purchase as the host sees it: who asked what, what it cost, what is still owed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evalbudget import Budget, Cell, Design, Reading, Request
from evalbudget.cells import CAME, Planned
from evalbudget.hosts import Account, HostPurchase
from evalbudget.repeats.estimates import Strata
from evalbudget.repeats.samplers import JudgeOf, RepeatSampler
from evalbudget.run import ABANDONED, LOST, RUN_AGAIN, UNANSWERED, Bill
from evalbudget_inspect.host.book_file import KNOWN
from evalbudget_inspect.host.readings import ALL_ITEMS, PHASE, STRATUM, STRATUM_ITEMS
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.least_budget import FEWER, least_of
from evalbudget_inspect.repeats.resume import Key, PriorCell, phases_of, promises

if TYPE_CHECKING:
    from evalbudget.book import Book
    from evalbudget.store import Database

_UNLIMITED = 10**12  # where no budget was given: what the host runs by itself is all there is
_UNKNOWN = 1e-6  # of the budget: what a reading costs, as long as none is known
_NOTHING = 1e-9  # of a budget in money: what the book holds for a cell, whose cost is on the bill
_SLACK = 1e-9
_ALL = 10**9
_AT_ONCE = 20  # cells to start with, where the host says no number and has none of its own to start


class RepeatPurchase(HostPurchase):
    """Drives one sampler from a host that completes samples one by one.

    The run is a book: in a file beside its log, or where processes meet that share the budget. Of a run that
    goes on it is begun anew from the log, with what earlier attempts had paid.

    Args:
        config: what the user asked for.
        items: sample ids of this run, in order.
        epochs: how many epochs of every sample the host starts with by itself.
        attempts: how often the host runs one cell at most (1 + its retries on error): all of them cost.
        width: how many samples the host runs at once; None to watch it.
        judge_of: index of the judge of an item and epoch (both from 0); None where they do not take turns.
        bill: that calls are on, where the budget is in money or tokens; None where it counts scores.
        seeded: whether the host starts these epochs by itself; if not, every cell is the sampler's to choose.
        strata: label of each item, in proportion to which a sample of them is drawn; None for none.
        about: what must be the same in all processes that share the budget.
        worker: what this one is called in :attr:`processes`.
        questions: digest of what each item asks, by which known variances are paired; None: by ids.
        where: the book is kept, begun anew by this attempt; None: in memory, or where processes meet.

    Raises:
        BudgetError: the budget does not cover the first readings.
        StoreError: the store is of another run, or cannot be used.
    """

    def __init__(
        self,
        config: Config,
        items: Sequence[str],
        *,
        epochs: int,
        attempts: int = 1,
        width: int | None = None,
        judge_of: JudgeOf | None = None,
        bill: Bill | None = None,
        seeded: bool = True,
        strata: Sequence[str] | None = None,
        about: Mapping[str, str] | None = None,
        worker: str = "",
        questions: Mapping[str, str] | None = None,
        where: Database | None = None,
    ) -> None:
        self.config = config
        self.strata = Strata.of(strata, len(items)) if config.draws else None
        """Of the items, where a sample of them is drawn."""
        self.bill = bill
        self.budget: Budget = config.resolve_budget(len(items), without=_UNLIMITED)
        self._judge_of = judge_of if config.rotates else None
        self._scored_as: dict[tuple[int, int], int] = {}  # epoch of the host by item and epoch of the book
        design = Design(items=tuple(items), categories=None if strata is None else tuple(strata))
        if self._judge_of is not None and config.panel is not None:
            design = Design(items=tuple(items), raters=config.panel.judges)
        expected = None if config.budget is None or bill is not None else int(self.budget.amount)
        self.sampler: RepeatSampler = config.make_sampler(
            design,
            warmup=epochs,
            budget=expected,
            judge_of=None if self._judge_of is None else self._rater,
            questions=questions,
        )
        """That decides what is asked."""
        if bill is None:
            least, why = least_of(config, self.sampler, len(items), epochs, attempts)
            config.check_minimum(self.budget, least, why, FEWER, judged=config.rotates)
        else:
            self.sampler.weigh_costs(self.budget.amount)
        self.processes: tuple[str, ...] = ()
        """That shared the budget, once it is used up; empty where the store was away."""
        self.epochs = epochs if seeded else 0
        self.resumed = False
        """Whether earlier attempts bought cells; in which order is not known."""
        self.lost = 0.0
        """How often earlier attempts asked samples whose answers cannot be used."""
        self.lacks = False
        """Whether the book does not have all that they paid."""
        self.cached = 0
        """Readings whose answers came out of the host's cache."""
        self._attempts = attempts
        self._index = {item: i for i, item in enumerate(items)}
        self._requests: dict[Key, Request] = {}  # with the host
        self._started: set[Key] = set()  # of these, what it works on
        self._begun: Counter[Key] = Counter()  # how often, by earlier attempts at the run too
        self._refused: set[Key] = set()
        self._failed_before: set[Key] = set()
        self._short: dict[Key, int] = {}  # attempts left of the last cells, which the budget pays no more of
        self._first = 0  # cells to keep with the host at least
        self._width = width
        if width is None and not seeded:
            alone = config.draws and bill is None and not self.is_shared
            self._first = _ALL if alone else _AT_ONCE
        self._peak = 1
        self.useful = 0.0
        """What readings cost, in units of the budget."""
        self.cut_off = 0
        """Samples that were under way at a second Ctrl-C, which may be billed."""
        self.broken_off: int | None = None
        """Those that were under way when an error ended the run, which are spent; None if none did."""
        self._most = float(attempts) if bill is None else _NOTHING * self.budget.amount
        self._unread: Counter[str] = Counter()  # calls that brought nothing and are paid elsewhere, by reason
        self._account: Account | None = None  # as of the last look
        self._is_closed = False
        self._came: list[Reading] = []  # that the book was not told yet
        self._is_kept = where is not None
        self._book = self._opened(about, worker, where)
        if config.budget is None:
            self.stop("no budget given")

    def _opened(self, about: Mapping[str, str] | None, worker: str, kept: Database | None) -> Book:
        # it brings SQLAlchemy, and hosts start without
        from evalbudget.book import Book
        from evalbudget.store import Address

        def most(cell: Cell) -> float:
            return self._most

        if self.config.store is None:
            return Book(self.sampler, self.budget, kept, most=most)
        where = Address.parse(self.config.store)
        settings = {"cost": self._most, **(about or {})}
        return Book(self.sampler, self.budget, where, most=most, about=settings, shown_as=worker or None)

    @property
    def book(self) -> Book:
        """Of all processes, told of all that came back."""
        if self._came:
            self._trade(0)
        return self._book

    def _trade(self, n: int) -> Sequence[Request]:
        came, self._came = self._came, []
        return self._book.trade(came, n)

    # what happens

    def begin(
        self,
        prior: Sequence[PriorCell] = (),
        *,
        lost: int = 0,
        unread: int = 0,
        told: float = 0.0,
        lacks: bool = False,
    ) -> list[Key]:
        """Take over what the host starts by itself and what an earlier attempt paid for.

        What else the book says that they paid was for samples that had begun when they ended, or for calls
        that brought nothing.

        Args:
            prior: cells that the host hands back.
            lost: how often earlier attempts asked samples whose answers cannot be used here.
            unread: how often they asked others of which logs have no answer, if the book lacks something.
            told: what they paid at least, as their logs say.
            lacks: it is known that neither the book nor a log has all that they paid.

        Returns:
            Keys the host does not start by itself and must be given, in order.

        Raises:
            InvalidInputError: what an earlier log calls a phase is none.
        """
        earlier = {cell.key: cell for cell in prior if cell.key[0] in self._index}
        seeds = [(item, epoch) for epoch in range(1, self.epochs + 1) for item in self._index]
        others = sorted(earlier.keys() - set(seeds), key=lambda key: (key[1], self._index[key[0]]))
        phases = phases_of((*seeds, *others), earlier, self.sampler)
        self.resumed = bool(prior or lost or (self._is_kept and self.book.spent))
        self.lost = lost
        self._failed_before = {known.key for known in earlier.values() if known.errored}
        self._begun.update({known.key: known.attempts for known in earlier.values()})
        beside = self.book.beside() if self._is_kept else {}

        def take_over() -> None:
            promised = dict.fromkeys((*seeds, *others), 0.0)  # in money the bill decides, call by call
            if self.bill is None:
                self._explain(beside, earlier.values(), lost, unread, told, lacks=lacks)
                cells = [(key, earlier.get(key)) for key in (*seeds, *others)]
                promised, self._refused = promises(cells, attempts=self._attempts, free=self.book.free)
            for phase in sorted(phases):
                self._adopt(phases[phase], phase, promised)

        if self.is_shared:
            take_over()
        else:  # all of it, or nothing, whenever the process is killed
            self.book.once(lambda _: take_over())
        return others  # what may not run again too: the log keeps only what the host was given

    def _explain(
        self,
        beside: Mapping[str, float],
        cells: Iterable[PriorCell],
        lost: int,
        unread: int,
        told: float,
        *,
        lacks: bool,
    ) -> None:
        """What earlier attempts paid is not paid twice, and why is said of it.

        Args:
            beside: what they paid by what the book says, by the reason.
            cells: that the host hands back.
            lost: as of :meth:`begin`.
            unread: as of it.
            told: as of it.
            lacks: as of it.
        """
        if not self._is_kept:  # the log alone says it
            self._pay(min(lost, max(0.0, self.book.free)), LOST)
            return
        spent, used = max(self.book.spent, min(told, self.budget.amount)), self._begun.total()
        self.lacks = (lacks or spent < used + lost - _SLACK) and spent < self.budget.amount - _SLACK
        paid = max(spent, min(used + lost + unread, self.budget.amount)) if self.lacks else spent
        more = {why: cost for why, cost in beside.items() if why not in (KNOWN, LOST, UNANSWERED)}
        left = max(0.0, paid - used - sum(more.values()))
        answered = beside.get(KNOWN, 0.0) + beside.get(LOST, 0.0)
        kept = sum(cell.attempts for cell in cells if not cell.errored)
        self.lost = min(left, max(lost, answered - kept))
        for why, cost in ((KNOWN, 0.0), (LOST, self.lost), (UNANSWERED, left - self.lost)):
            self._pay(cost - beside.get(why, 0.0), why)

    def _adopt(self, keys: Sequence[Key], phase: int, promised: Mapping[Key, float]) -> None:
        item = np.array([self._index[key[0]] for key in keys])
        chosen = Planned(np.zeros_like(item), item, phase, None)
        most, attempts = [promised[key] for key in keys], [epoch - 1 for _, epoch in keys]
        begun = [float(self._begun[key]) for key in keys]
        for key, request in zip(keys, self.book.adopt(chosen, most, attempts, begun), strict=True):
            self._hand(key, request)

    def _hand(self, key: Key, request: Request) -> None:
        self._requests[key] = request
        if self._judge_of is not None:
            self._scored_as[request.cell.item, request.cell.epoch] = key[1] - 1

    def may_run(self, key: Key) -> bool:
        """Whether the budget covers a cell that the host starts by itself, or runs again since it errored."""
        return key not in self._refused and self._short.get(key, 1) > 0

    def failed_before(self, key: Key) -> bool:
        """Whether the host runs this cell again since it errored."""
        return key in self._failed_before or key in self._short

    def started(self, key: Key) -> dict[str, int]:
        """The host works on this cell now, or tries it again; how it was bought, as :meth:`share`."""
        if key in self._requests:
            self._started.add(key)
            self._peak = max(self._peak, len(self._started))
            if self._is_kept:
                self._begun[key] += 1
                self.book.begins(self._requests[key], float(self._begun[key]))
        return self.share(key)

    def attempt_failed(self, key: Key) -> None:
        """The host tries this cell again, if it may run."""
        if key in self._short:
            self._short[key] -= 1

    def retried(self, reason: str) -> None:
        """An attempt failed for this reason and was made again; it is paid with the last one."""
        self._unread[reason] += 1
        self._account = None

    def completed(
        self,
        key: Key,
        value: float | None,
        *,
        attempts: int = 1,
        error: str | None = None,
        sample: str = "",
    ) -> None:
        """The host is done with this cell, after so many paid attempts in this and earlier runs.

        Args:
            key: of the cell.
            value: its score; None if it has none.
            attempts: that were paid.
            error: why it has no score.
            sample: the host's own name of it, by which the bill knows it.

        Raises:
            StoreError: the store cannot be used.
        """
        request = self._land(key)
        cost = float(attempts) if self.bill is None else self.bill.of_sample(sample)
        if request is not None:
            reading = Reading(request, value, cost, error)
            self._tell(reading)
            self.useful += cost if value is not None else 0.0
            if self.bill is not None:
                self._stop_if_free(reading, "scores")
        elif key[0] in self._index:
            # an operator had a finished cell run again: it is paid for, but what followed from its first
            # reading cannot be taken back
            self._pay(1.0, RUN_AGAIN)

    def abandoned(self, key: Key) -> None:
        """The host gave this cell up before it ran: it cost nothing and taught nothing."""
        request = self._land(key)
        if request is not None:
            self._tell(Reading(request, None, 0.0, ABANDONED))

    def _land(self, key: Key) -> Request | None:
        self._started.discard(key)
        return self._requests.pop(key, None)

    def _tell(self, reading: Reading) -> None:
        self._account = None
        self._came.append(reading)
        if self.is_shared:  # others wait for it
            self._trade(0)

    def _pay(self, samples: float, why: str) -> None:
        """For calls beside those of the readings."""
        self._account = None
        if not samples:
            return
        if self.bill is None:
            self.book.pay(samples, why)
        else:  # which has what they cost
            self._unread[why] += 1

    def pays(self, samples: float) -> bool:
        """Pay for what brought nothing, in samples; False, and nothing paid, if it exceeds what is left."""
        self._account = None
        return self.book.pays(samples, UNANSWERED)

    def stop(self, reason: str) -> None:
        """Ask nothing more; what is under way may still come back."""
        self.book.stop(reason)

    def ends(self) -> None:
        """All is bought, or the task ends: let other processes go on; what was under way here is lost."""
        if self._is_closed or not self.is_shared:
            return
        self._is_closed, self._account = True, None
        self.book.close()
        self.account.look()
        if self.finished:
            self.processes = self.account.processes

    def wanted(self) -> list[Key]:
        """Cells to run next: as many as the host has hands for and the budget pays for."""
        keys: list[Key] = []
        n = max(0, self.width - len(self._requests))
        if self.bill is not None:
            n = min(n, self._affordable)
        if self._attempts > 1 and self._counts_alone and not self._requests:
            left = int(self.book.free + _SLACK)
            if 0 < left < self._attempts:
                self._most = left  # one by one, each tried again as long as that is paid
        for request in self._trade(n):
            key = (self.sampler.design.items[request.cell.item], self.book.attempt(request) + 1)
            self._hand(key, request)
            if self._most < self._attempts and self._counts_alone:
                self._short[key] = int(self._most)
            keys.append(key)
        if self.is_shared:  # others may have told something
            self._account = None
        return keys

    # what is known

    def has_under_way(self, key: Key) -> bool:
        """Whether the host has this cell, and was not done with it yet."""
        return key in self._requests

    @property
    def outstanding(self) -> int:
        """Cells with the host."""
        return len(self._requests)

    def share(self, key: Key) -> dict[str, int]:
        """What estimates must know of how the cell was bought: the phase; nothing where there are none.

        Where a sample of the items is drawn, of which stratum the item is, and how many there are.
        """
        request = self._requests.get(key)
        if request is not None and self.strata is not None:
            stratum = int(self.strata.of_item[request.cell.item])
            size = int(self.strata.sizes[stratum])
            return {STRATUM: stratum, STRATUM_ITEMS: size, ALL_ITEMS: self.strata.n_items}
        phase = None if request is None else request.phase
        return {} if phase is None else {PHASE: phase}

    @property
    def account(self) -> Account:
        """What was bought by all processes, as of now; once this one has left, as of then."""
        if self._account is None:
            self._account = Account(self.book, self._unread, in_scores=self.bill is None)
        return self._account

    @property
    def n_items_read(self) -> int:
        """Items with a score."""
        cells = self.book.cells()
        return int(np.unique(cells.item[cells.state == CAME]).size)

    @property
    def finished(self) -> bool:
        """Nothing is under way, and nothing more will be asked."""
        if self._requests:
            return False
        return self.book.finished or (self.bill is not None and not self._affordable)

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return self.book.stop_reason if self.finished else "not finished"

    @property
    def waits(self) -> bool:
        """Whether other processes have something under way, which may come to this one."""
        return self.is_shared and not self._is_closed and not self.finished

    @property
    def _counts_alone(self) -> bool:
        """The budget is in scores, and no other process spends of it."""
        return self.bill is None and not self.is_shared

    @property
    def _affordable(self) -> int:
        """How many more cells may begin, each as dear as the dearest so far, beside those under way."""
        assert self.bill is not None
        each = max(self.bill.most_of_sample, _UNKNOWN * self.budget.amount)
        left = self.budget.amount - self.bill.spent + _SLACK * each
        return max(0, int(left // each) - len(self._requests))

    @property
    def spent(self) -> float:
        """Of the budget, by earlier attempts too."""
        cut_off = self.cut_off if self.bill is None and not self._is_closed else 0  # which the book has then
        return super().spent + cut_off

    @property
    def width(self) -> int:
        """How many cells to keep with the host: what it was told, or a bit more than it ran so far."""
        if self._width is not None:
            return self._width
        return max(self._first, self._peak + max(1, self._peak // 8))

    @property
    def items(self) -> Collection[str]:
        """Ids of the items of this run."""
        return self._index.keys()

    @property
    def n_items(self) -> int:
        """Items of this run."""
        return len(self._index)

    def _rater(self, item: int, epoch: int) -> int:
        """Who scored, or is to score, what the book asks of an item."""
        assert self._judge_of is not None
        return self._judge_of(item, self._scored_as.get((item, epoch), epoch))
