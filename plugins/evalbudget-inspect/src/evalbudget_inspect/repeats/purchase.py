"""One run's purchase as the host sees it: who asked what, what it cost, what is still owed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evalbudget import Budget, Cell, Design, Reading
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats.estimates import Strata
from evalbudget.repeats.samplers import JudgeOf, RepeatSampler, Sample
from evalbudget.run import LOST, RUN_AGAIN, UNANSWERED, Bill, Flight, Purchase
from evalbudget_inspect.host.readings import ALL_ITEMS, PHASE, STRATUM, STRATUM_ITEMS
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.resume import Key, PriorCell, promises

if TYPE_CHECKING:  # it brings SQLAlchemy
    from evalbudget.run import SharedPurchase

_UNLIMITED = 10**12  # where no budget was given: what the host runs by itself is all there is
_UNKNOWN = 1e-6  # of the budget: what a reading costs, as long as none is known
_ALL = 10**9
_AT_ONCE = 20  # cells to start with, where the host says no number and has none of its own to start
_FREE = 20  # times as many readings in a row as there are items, and none cost anything


def least_of(
    config: Config, sampler: RepeatSampler, n_items: int, epochs: int, attempts: int
) -> tuple[int, str]:
    """The smallest budget that such a run can start with, and why."""
    if config.draws:
        return attempts, f"a reading takes up to {attempts} attempts (--retry-on-error)"
    by_host = n_items * epochs * attempts
    repeats = sampler.fixed_repeats
    by_sampler = n_items * repeats + attempts - 1  # room to ask the last of them
    why = f"{config.sampler} reads each of the {n_items} items {repeats} times before it chooses"
    if epochs * attempts > config.fixed_repeats:
        why = f"{n_items} items x {epochs} epochs"
        why += f" x {attempts} attempts (--retry-on-error)" if attempts > 1 else " (--epochs)"
    return max(by_host, by_sampler), why


def check_budget(config: Config, budget: Budget, least: int, why: str) -> None:
    """Refuse a budget that such a run can not start with.

    Raises:
        BudgetError: it is too small.
    """
    if budget.amount >= least:
        return
    sample = (
        ""
        if config.draws
        else (
            f"; or have a random sample of them read once each: --sampler {Sample.name}"
            + (", or no --sampler at all" if config.named and config.panel is None else "")
        )
    )
    raise BudgetError(
        f"budget of {budget} is below the minimum of {least} here: {why}. Raise --budget to {least} or more, "
        f"or evaluate fewer items with --limit{'' if config.panel is not None else sample}"
    )


class RepeatPurchase:
    """Drives one sampler from a host that completes samples one by one.

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
        worker: name of this one.
        questions: digest of what each item asks, by which known variances are paired; None: by ids.

    Raises:
        BudgetError: the budget does not cover the first readings.
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
    ) -> None:
        self.config = config
        self.strata = Strata.of(strata, len(items)) if config.draws else None
        """Of the items, where a sample of them is drawn."""
        self.bill = bill
        self.budget: Budget = config.resolve_budget(len(items), without=_UNLIMITED)
        self._judge_of = judge_of if config.corrects_judges else None
        design = Design(items=tuple(items), categories=None if strata is None else tuple(strata))
        if self._judge_of is not None and config.panel is not None:
            design = Design(items=tuple(items), raters=config.panel.judges)
        expected = None if config.budget is None or bill is not None else int(self.budget.amount)
        sampler = config.make_sampler(
            design, warmup=epochs, budget=expected, judge_of=self._judge_of, questions=questions
        )
        if bill is None:
            least, why = least_of(config, sampler, len(items), epochs, attempts)
            check_budget(config, self.budget, least, why)
        self.shared: SharedPurchase | None = None
        """The purchase, where other processes take part in it."""
        self.processes: tuple[str, ...] = ()
        """That shared the budget, once it is used up."""
        self.purchase: Purchase
        if config.store is not None:
            # it brings SQLAlchemy, which no other run needs
            from evalbudget.run import SharedPurchase

            self.purchase = self.shared = SharedPurchase(
                *(sampler, self.budget, config.store), cost=attempts, about=about, worker=worker
            )
        elif bill is None:
            self.purchase = Purchase(sampler, self.budget, cost=attempts)
        else:
            self.purchase = Purchase(sampler, self.budget, cost=_UNKNOWN * self.budget.amount)
            sampler.weigh_costs(self.budget.amount)
        self.epochs = epochs if seeded else 0
        self.resumed = False
        """Whether earlier attempts bought cells; in which order is not known."""
        self.lost = 0
        """How often earlier attempts asked samples whose answers cannot be used."""
        self.cached = 0
        """Readings whose answers came out of the host's cache."""
        self._attempts = attempts
        self._index = {item: i for i, item in enumerate(items)}
        self._flights: dict[Key, Flight] = {}
        self._refused: set[Key] = set()
        self._failed_before: set[Key] = set()
        self._short: dict[Key, int] = {}  # attempts left of the last cells, which the budget pays no more of
        self._first = 0  # cells to keep with the host at least
        self._width = width
        if width is None and not seeded:
            alone = config.draws and bill is None and config.store is None
            self._first = _ALL if alone else _AT_ONCE
        self._running = 0
        self._peak = 1
        self._free = 0
        self._spent_on_readings = 0.0
        self.cut_off = 0
        """Samples that were under way at a second Ctrl-C, which may be billed."""
        self.broken_off: int | None = None
        """Those that were under way when an error ended the run, which are spent; None if none did."""
        if config.budget is None:
            self.purchase.stop("no budget given")

    @property
    def sampler(self) -> RepeatSampler:
        """That decides what is asked."""
        found = self.purchase.sampler
        assert isinstance(found, RepeatSampler)
        return found

    # what happens

    def begin(
        self, prior: Sequence[PriorCell] = (), *, begun: int = 0, more: float = 0.0, lost: int = 0
    ) -> list[Key]:
        """Take over what the host starts by itself and what an earlier attempt paid for.

        Args:
            prior: cells that the host hands back.
            begun: samples that had begun when earlier attempts ended: all that they may have cost is spent.
            more: what else they paid for that is in no log, in samples.
            lost: how often they asked samples whose answers cannot be used here.

        Returns:
            Keys the host does not start by itself and must be given, in order.
        """
        earlier = {cell.key: cell for cell in prior if cell.key[0] in self._index}
        seeds = [(item, epoch) for epoch in range(1, self.epochs + 1) for item in self._index]
        others = sorted(earlier.keys() - set(seeds), key=lambda key: (key[1], self._index[key[0]]))
        for known in earlier.values():
            if known.phase is not None:
                try:
                    self.sampler.assume_phase(self._cell(known.key), known.phase)
                except InvalidInputError as ex:
                    raise InvalidInputError(
                        f"sample {known.key[0]!r}, epoch {known.key[1]} of the log to go on with: {ex}; "
                        "restore the log, or begin another run"
                    ) from ex
        self.resumed = bool(prior or lost)
        self.lost = lost
        promised = dict.fromkeys((*seeds, *others), 0.0)  # in money the bill decides, call by call
        if self.bill is None:
            for paid, why in ((lost, LOST), (begun * self._attempts + more, UNANSWERED)):
                if paid:
                    self.purchase.pay(min(paid, self.purchase.ledger.free), why)
            cells = [(key, earlier.get(key)) for key in (*seeds, *others)]
            promised, self._refused = promises(cells, attempts=self._attempts, free=self.purchase.ledger.free)
        self._failed_before = {known.key for known in earlier.values() if known.errored}
        for key, cost in promised.items():
            self._flights[key] = self.purchase.adopt(self._cell(key), cost)
        return others  # what may not run again too: the log keeps only what the host was given

    def may_run(self, key: Key) -> bool:
        """Whether the budget covers a cell that the host starts by itself, or runs again since it errored."""
        return key not in self._refused and self._short.get(key, 1) > 0

    def failed_before(self, key: Key) -> bool:
        """Whether the host runs this cell again since it errored."""
        return key in self._failed_before or key in self._short

    def started(self, key: Key) -> None:
        """The host works on this cell now."""
        flight = self._flights.get(key)
        if flight is not None and not flight.started:
            flight.started = True
            self._running += 1
            self._peak = max(self._peak, self._running)

    def attempt_failed(self, key: Key) -> None:
        """The host tries this cell again, if it may run."""
        if key in self._short:
            self._short[key] -= 1

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
        """
        flight = self._land(key)
        cost = float(attempts) if self.bill is None else self.bill.of_sample(sample)
        if flight is not None and value is None:
            self.purchase.fail(flight.request, error, cost=cost)
        elif flight is not None:
            self.purchase.tell(Reading(flight.request, value, cost, error))
            self._free = 0 if cost else self._free + 1
            self._spent_on_readings += cost
        elif key[0] in self._index:
            # an operator had a finished cell run again: it is paid for, but what followed from its first
            # reading cannot be taken back
            self.purchase.pay(1.0 if self.bill is None else cost, RUN_AGAIN, calls=1.0)
        self._see_bill()

    def _see_bill(self) -> None:
        """What was spent is what is on the bill, for samples under way and for lost ones too."""
        if self.bill is None:
            return
        self.purchase.ledger.spent = self.bill.spent
        self.purchase.promise_at_least(self.bill.most_of_sample)
        if self.purchase.stopped is None and self._free >= max(100, _FREE * self.n_items):
            self.purchase.stop(f"the last {self._free:,} readings cost nothing; give the budget in scores")

    def has_under_way(self, key: Key) -> bool:
        """Whether the host has this cell, and was not done with it yet."""
        return key in self._flights

    def pays(self, samples: float) -> bool:
        """Pay for what brought nothing, in samples; False, and nothing paid, if it exceeds what is left."""
        return self.purchase.pays(samples)

    def share(self, key: Key) -> dict[str, int]:
        """What estimates must know of how the cell was bought: the phase; nothing where there are none.

        Where a sample of the items is drawn, of which stratum the item is, and how many there are.
        """
        flight = self._flights.get(key)
        if flight is not None and self.strata is not None:
            stratum = int(self.strata.of_item[flight.request.cell.item])
            size = int(self.strata.sizes[stratum])
            return {STRATUM: stratum, STRATUM_ITEMS: size, ALL_ITEMS: self.strata.n_items}
        phase = None if flight is None else flight.request.phase
        return {} if phase is None else {PHASE: phase}

    def abandoned(self, key: Key) -> None:
        """The host gave this cell up before it ran: it cost nothing and taught nothing."""
        flight = self._land(key)
        if flight is not None:
            self.purchase.abandon(flight.request)

    @property
    def waits(self) -> bool:
        """Whether other processes have something under way, which may come to this one."""
        return self.shared is not None and not self.purchase.finished

    def ends(self) -> None:
        """All is bought, or the task ends: let other processes go on; what was under way here is lost."""
        if self.shared is not None:
            shared, self.shared = self.shared, None
            try:
                if self.purchase.finished:
                    self.processes = shared.processes()
            finally:
                shared.close(patience=0.0)

    def wanted(self) -> list[Key]:
        """Cells to run next: as many as the host has hands for and the budget pays for."""
        self._see_bill()
        keys: list[Key] = []
        left = int(self.purchase.ledger.free + 1e-9)
        if self._counts_alone and not self._flights and 0 < left < self._attempts:
            self.purchase.cost = left  # one by one, each tried again as long as that is paid
        for request in self.purchase.buy(max(0, self.width - len(self._flights))):
            key = (self.sampler.design.items[request.cell.item], request.cell.epoch + 1)
            self._flights[key] = flight = self.purchase.flights[request.id]
            if flight.promised < self._attempts and self._counts_alone:
                self._short[key] = int(flight.promised)
            keys.append(key)
        return keys

    @property
    def _counts_alone(self) -> bool:
        """The budget is in scores, and no other process spends of it."""
        return self.bill is None and self.shared is None

    # what is known

    @property
    def spent(self) -> float:
        """Of the budget, by earlier attempts too."""
        return self.purchase.ledger.spent + self.cut_off if self.bill is None else self.bill.spent

    @property
    def wasted(self) -> float:
        """Of what was spent in money or tokens: for what brought no reading."""
        if self.bill is None:
            return 0.0
        wasted = self.bill.spent - self._spent_on_readings
        return wasted if wasted > 1e-9 * self.bill.cap.amount else 0.0  # sums of floats

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

    # bookkeeping

    def _land(self, key: Key) -> Flight | None:
        flight = self._flights.pop(key, None)
        if flight is not None and flight.started:
            self._running -= 1
        return flight

    def _cell(self, key: Key) -> Cell:
        item, epoch = self._index[key[0]], key[1] - 1
        rater = 0 if self._judge_of is None else self._judge_of(item, epoch)
        return Cell(item=item, epoch=epoch, rater=rater)
