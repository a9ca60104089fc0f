"""A run's purchase as the host sees it: who asked what, what it cost, what is written where."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalbudget import Design, Reading, Request, Sampler
from evalbudget.budget import shown_amount
from evalbudget.errors import StoreDownError, StoreError
from evalbudget.repeats.estimates import Strata
from evalbudget.run import Purchase
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.host.driving_metric import applies_to_some
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.judges.readings import why_missing
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.money import Money, bill_beside, has_readings
from evalbudget_lm_eval.repeats.refusals import clusters_of, strata_of
from evalbudget_lm_eval.repeats.shared import joined, record_of_own
from evalbudget_lm_eval.run.record import RUN, Record

if TYPE_CHECKING:  # it brings SQLAlchemy
    from evalbudget.run import SharedPurchase

log = shown_logger(__name__)

USED_UP = "budget used up"
_NOTHING = 1e-9
_FREE = 20  # times as many readings in a row as there are documents, and none cost anything


class RepeatPurchase:
    """One sampler over the documents of all tasks, its purchase and its record.

    Args:
        config: what the user asked for.
        primed: the tasks.
        scores: the key ``metric,filter`` that drives the sampler, by task.
        path: of the record; it is continued if it exists. None to keep none.
        run: what else must be the same for a record to be continued.
        asks_model: the model itself is asked, not only its judges.

    Raises:
        JournalError: the record is of another run, or cannot be read or written.
        BudgetError: a model has no price, nothing limits its replies, or the budget is below one call.
    """

    def __init__(
        self,
        config: Config,
        primed: PrimedTasks,
        *,
        scores: dict[str, str],
        path: Path | None,
        run: dict[str, Any],
        asks_model: bool = True,
    ) -> None:
        self.config = config
        self.scores = scores
        self.primed = primed
        self.documents = [(name, doc) for name in primed.names for doc in primed.documents(name)]
        costs = [float(primed.cost(*document)) for document in self.documents]
        budget = config.resolve_budget(int(sum(costs)))
        self.strata = _strata(config, primed)
        """Of the documents of each task, where a sample of them is drawn."""
        self.clusters = clusters_of(config, primed)
        """Of the documents of each task; None where documents are independent of each other."""
        items = tuple(f"{name}:{doc}" for name, doc in self.documents)
        sampler = config.make_sampler(
            Design(items=items, categories=_categories(config, primed)),
            budget=int(budget.amount * len(costs) / sum(costs)) if config.in_scores else None,
            questions=questions_of(primed) if config.variances is not None else None,
        )
        if not config.in_scores:
            sampler.weigh_costs(budget.amount)
        self.money = None if config.in_scores else Money.checked(config, primed, asks_model=asks_model)
        bill = bill_beside(path, in_scores=config.in_scores, bought=has_readings(path))
        self.shared: SharedPurchase | None = None
        """The purchase, where other processes take part in it."""
        if config.store is None:
            self.record = Record.open(path, RUN, run, sampler)
        else:
            self.record = record_of_own(path, run, named=config.journal is not None)
        try:
            if self.money is not None:
                self.money = self.money.on_file(bill)
            if config.store is not None:
                self.shared = joined(config, primed, sampler, budget, costs, self.record)
        except BaseException:
            self.record.close()
            raise
        self.kept = self.record.of()
        self._free = 0
        self.purchase: Purchase
        if self.shared is not None:
            self.purchase = self.shared
            self._requests = {self.asked(event.request): event.request for event in self.purchase.journal}
            return
        if self.money is None:
            self.purchase = Purchase(
                sampler,
                budget,
                cost=max(costs),
                cost_of=lambda cell: costs[cell.item],
                journal=self.record.journal,
            )
            self.purchase.pay(float(self.kept.unanswered))
        else:
            # what a cell can cost is on the bill, which keeps the cap
            self.purchase = Purchase(
                sampler, budget, cost=_NOTHING * budget.amount, journal=self.record.journal
            )
            if self.record.finished and self.record.finished_with == budget.amount:
                self.purchase.stop(USED_UP)
        scored = {one.asked for one in self.kept.bought}

        def known(request: Request) -> tuple[bool, int]:
            asked = self.asked(request)
            return asked in scored, sum(map(len, self.kept.said.get(asked, {}).values()))

        # whose calls an earlier run paid for goes first, where the budget no longer pays for all
        for request in sorted(self.sampler.pending, key=known, reverse=True):
            if self.purchase.stopped is None:
                self.purchase.promise(request)
        self._requests = {self.asked(event.request): event.request for event in self.purchase.journal}

    @property
    def sampler(self) -> Sampler:
        """That decides what is asked."""
        return self.purchase.sampler

    def ask(self, n: int) -> list[Asked]:
        """Up to n cells the budget pays for; none if it is used up or the sampler stops."""
        if self.money is not None:
            n = self.money.size(n, self.purchase)
            if not n:
                self.purchase.stop(USED_UP)
        requests = {self.asked(request): request for request in self.purchase.buy(n)}
        self._requests |= requests
        return list(requests)

    def tell(self, answers: Iterable[Answered]) -> None:
        """Documents were scored."""
        for answer in answers:
            self.record.count_by(counted_by(self.config))
            reading = self._reading(answer)
            self.purchase.tell(reading)
            self._free = 0 if reading.cost else self._free + 1
        if self._free >= max(100, _FREE * len(self.documents)) and self.purchase.stopped is None:
            self.purchase.stop(f"the last {self._free:,} readings cost nothing; give the budget in calls")

    def rejoin(self, answers: Iterable[Answered]) -> None:
        """Go on as a process that was killed: tell others what they do not know of what it had under way.

        Args:
            answers: that it had.
        """
        assert self.shared is not None
        cut_off = self.kept.under_way
        unsent = [one for one in cut_off[self.kept.at_once :] if one not in self.kept.said]
        self.shared.take_back(
            [self._reading(answer) for answer in answers], [self._requests[one] for one in unsent]
        )
        if cut_off:
            self.kept.stop("killed")

    def leave(self, error: BaseException | None) -> None:
        """Let other processes go on without this one; what was not sent costs nothing."""
        if self.shared is None:
            return
        # as after a kill, calls may be under way; after an error of the host's they are paid for already
        sent = 0 if isinstance(error, Exception) else self.kept.at_once
        try:
            if not isinstance(error, StoreError):
                had = {*self.kept.said, *(one.asked for one in self.kept.bought)}
                held = [request for request in self.shared.held if self.asked(request) not in had]
                for request in held[sent:]:
                    self.shared.withdraw(request)
        except StoreError as ex:
            log.warning("evalbudget: %s", ex)
            error = ex
        finally:
            self.shared.close(patience=0.0 if isinstance(error, StoreDownError) else None)

    def _reading(self, answer: Answered) -> Reading:
        key = self.scores[answer.task]
        value = answer.metrics.get(key)
        error = self._no_score(answer, key, value)
        cost = float(answer.requests) if self.money is None else self.money.cost(answer.asked)
        return Reading(self._requests[answer.asked], value if error is None else None, cost, error)

    def _no_score(self, answer: Answered, key: str, value: float | None) -> str | None:
        """Why this is no score; None if it is one."""
        metric = key.partition(",")[0]
        if value is not None and math.isnan(value) and applies_to_some(self.primed.task(answer.task), metric):
            return f"{metric} does not apply to it (nan, and averaged by nanmean)"
        if value is None or math.isnan(value):
            replies = (reply for record in answer.records for reply in record["filtered_resps"])
            return why_missing(replies) or f"no score {key}"
        if self.config.score_range is not None:
            low, high = self.config.score_range
            if not low <= value <= high:
                return f"score {value:g} is outside {low:g}..{high:g}"
        return None

    def fail(self, asked: Asked, error: str) -> None:
        """This could not be answered; the calls may have been paid for."""
        cost = None if self.money is None else self.money.cost(asked)
        self.purchase.fail(self._requests[asked], error, cost=cost)

    def unaffordable(self, cells: Iterable[Asked]) -> None:
        """They wait for a run with a larger budget; nothing more is asked in this one."""
        for asked in cells:
            self.purchase.withdraw(self._requests[asked])
        self.purchase.stop(USED_UP)

    def pays(self, calls: int) -> bool:
        """Pay for calls that brought no answer; False, and nothing paid, if they exceed what is left."""
        if self.money is not None:
            return True  # the bill has them
        return self.purchase.pays(float(calls))

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        """Pay for them out of what was promised to cells, the last first; those are returned that remain."""
        left = self.purchase.pay_out_of([self._requests[asked] for asked in cells], float(calls))
        return [self.asked(request) for request in left]

    # what is known

    @property
    def spent(self) -> float:
        """In units of the budget, by earlier runs too."""
        return self.purchase.ledger.spent if self.money is None else self.money.bill.spent

    def shown(self, amount: float) -> str:
        """An amount of the budget, as people read it."""
        return shown_amount(amount, self.purchase.ledger.budget.unit, counts="calls")

    @property
    def pending(self) -> list[Asked]:
        """Asked, by an earlier run too, and not answered."""
        return [self.asked(request) for request in self.sampler.pending]

    @property
    def outstanding(self) -> list[Asked]:
        """The same, as far as this run's budget pays; of several processes, this one's."""
        if self.shared is not None:
            return [self.asked(request) for request in self.shared.held]
        return [asked for asked in self.pending if self._requests[asked].id in self.purchase.flights]

    @property
    def failures(self) -> Counter[tuple[str, int]]:
        """How often each document failed."""
        readings = self.purchase.journal.readings
        return Counter(self.documents[r.request.cell.item] for r in readings if r.value is None)

    def asked(self, request: Request) -> Asked:
        """The request in the host's terms."""
        return Asked(*self.documents[request.cell.item], request.cell.epoch)

    @property
    def phases(self) -> dict[Asked, float]:
        """In which each reading was bought; nan if there were none."""
        return {
            self.asked(event.request): math.nan if event.request.phase is None else event.request.phase
            for event in self.purchase.journal
        }

    @property
    def phase_sizes(self) -> tuple[float, ...]:
        """Readings per document in each phase, over all tasks; empty if there were none."""
        scored = (each.request.phase for each in self.purchase.journal.readings if each.value is not None)
        count = Counter(phase for phase in scored if phase is not None)
        return tuple(count[phase] / len(self.documents) for phase in range(max(count, default=-1) + 1))


def questions_of(primed: PrimedTasks) -> dict[str, str]:
    """Digest of what each item asks."""
    return {
        f"{name}:{doc}": primed.question(name, doc) for name in primed.names for doc in primed.documents(name)
    }


def _strata(config: Config, primed: PrimedTasks) -> dict[str, Strata] | None:
    if not config.draws:
        return None
    labels = strata_of(config, primed) or {}
    return {name: Strata.of(labels.get(name), len(primed.documents(name))) for name in primed.names}


def _categories(config: Config, primed: PrimedTasks) -> tuple[str, ...] | None:
    """In proportion to what documents are drawn: their tasks, and in these a field; None for neither."""
    if not config.draws or (config.strata is None and len(primed.names) == 1):
        return None
    labels = strata_of(config, primed) or {name: ("",) * len(primed.documents(name)) for name in primed.names}
    return tuple(f"{name}: {label}" for name in primed.names for label in labels[name])


def counted_by(config: Config) -> dict[str, Any]:
    """By what settings answers count as scores."""
    return {"score_range": None if config.score_range is None else list(config.score_range)}
