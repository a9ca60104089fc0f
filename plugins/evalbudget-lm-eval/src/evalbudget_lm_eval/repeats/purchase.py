"""A run's book as the host sees it: who asked what, what it cost, what is written where."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalbudget import Design, Reading, Request
from evalbudget.book import Book
from evalbudget.budget import USED_UP, shown_amount
from evalbudget.errors import EvalbudgetError, StoreError
from evalbudget.hosts import HostPurchase
from evalbudget.repeats.estimates import Strata
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.run import UNANSWERED
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import SCORED, Answered, Asked
from evalbudget_lm_eval.host.driving_metric import applies_to_some
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.scoring import scoring_of
from evalbudget_lm_eval.host.seeds import name_of_run
from evalbudget_lm_eval.judges.filter import panel_of
from evalbudget_lm_eval.judges.readings import why_missing
from evalbudget_lm_eval.repeats.account import Account
from evalbudget_lm_eval.repeats.book_file import book_of
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.money import Money, check_kind
from evalbudget_lm_eval.repeats.refusals import clusters_of, strata_of
from evalbudget_lm_eval.repeats.shared import record_of_own
from evalbudget_lm_eval.run.record import RUN, Record

log = shown_logger(__name__)

_NOTHING = _SLACK = 1e-9


class RepeatPurchase(HostPurchase):
    """One sampler over the documents of all tasks, its book, and the record of answers.

    Args:
        config: what the user asked for.
        primed: the tasks.
        scores: the key ``metric,filter`` that drives the sampler, by task.
        path: of the record; it is continued if it exists. None to keep none.
        run: what else must be the same for a record to be continued.
        asks_model: the model itself is asked, not only its judges.

    Raises:
        JournalError: the record is of another run, or cannot be read or written.
        StoreError: so is the book that several processes share.
        BudgetError: a model has no price, nothing limits its replies, or the budget is below one call.
    """

    config: Config

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
        self.budget = budget = config.resolve_budget(int(sum(costs)))
        self.strata = _strata(config, primed)
        """Of the documents of each task, where a sample of them is drawn."""
        self.clusters = clusters_of(config, primed)
        """Of the documents of each task; None where documents are independent of each other."""
        self.sampler = self._sampler(costs)
        self.money = None if config.in_scores else Money.checked(config, primed, asks_model=asks_model)
        if self.is_shared:
            self.record = record_of_own(path, run, named=config.journal is not None)
        else:
            self.record = Record.open(path, RUN, run)
        self.kept = self.record.of()
        try:
            check_kind(self.record, in_scores=config.in_scores, bought=self.kept.took_part)
            if self.money is not None:
                self.money = self.money.kept_in(self.record)
            self.bill = None if self.money is None else self.money.bill
            # in money, what a cell can cost is on the bill, which keeps the cap
            most = costs if self.money is None else [_NOTHING * budget.amount] * len(costs)
            self._book = book_of(config, primed, self.sampler, budget, most, self.record)
        except BaseException:
            self.record.close()
            raise
        primed.seeds_of = f"{name_of_run(self.record.path)} {config.seed}"
        self.scoring = scoring_of(primed, config.scorer)
        """How answers are scored."""
        had = (*self.book.held, *self.book.lost)
        self._requests = {self._asked(request): request for request in had}
        if self.money is not None and self.record.finished and self.record.finished_with == budget.amount:
            self.book.stop(USED_UP)

    def _sampler(self, costs: Sequence[float]) -> RepeatSampler:
        config, primed = self.config, self.primed
        items = tuple(f"{name}:{doc}" for name, doc in self.documents)
        sampler = config.make_sampler(
            Design(items=items, categories=_categories(config, primed)),
            budget=int(self.budget.amount * len(costs) / sum(costs)) if config.in_scores else None,
            questions=questions_of(primed) if config.variances is not None else None,
        )
        if not config.in_scores:
            sampler.weigh_costs(self.budget.amount)
        return sampler

    @property
    def book(self) -> Book:
        """Of all processes, told of all that came back."""
        if not self._book.is_told:
            self._book.refresh()
        return self._book

    def catch_up(self) -> None:
        """Tell the book what it was not told, if it can be reached."""
        with suppress(EvalbudgetError):
            self._book.refresh()

    # asking

    def ask(self, n: int) -> list[Asked]:
        """Up to n cells the budget pays for; none if it is used up or the sampler stops."""
        if self.money is not None:
            n = self.money.size(n, self.n_read, float(self.book.cells().cost.sum()))
            if not n:
                self.book.stop(USED_UP)
        requests = {self._asked(request): request for request in self._book.trade((), n)}
        self._requests |= requests
        return list(requests)

    @property
    def held(self) -> list[Asked]:
        """What this process has under way, perhaps since before it was killed."""
        return [self._asked(request) for request in self.book.held]

    @property
    def untold(self) -> list[Asked]:
        """The same, and what counts as lost, though an answer to it may be here."""
        return [self._asked(request) for request in (*self.book.held, *self.book.lost)]

    def _asked(self, request: Request) -> Asked:
        """The request in the host's terms: each call of a document has a number of its own."""
        return Asked(*self.documents[request.cell.item], self._book.attempt(request))

    # going on after a kill

    def fit(self) -> None:
        """Let go of what a larger budget promised, and has yet to be paid."""
        if self.money is None and self.kept.unanswered > self.book.paid_beside:
            self.book.pay(self.kept.unanswered - self.book.paid_beside, UNANSWERED)
        judged = {name for name in self.primed.names if panel_of(self.primed.task(name)) is not None}
        idle = [one for one in self.held if one not in self.kept.said or one.task in judged]
        idle.sort(key=self._known_of, reverse=True)  # what is known best is kept
        while idle and self.book.free < -_SLACK:
            self.book.give_back([self._requests[idle.pop()]])

    def _known_of(self, asked: Asked) -> tuple[int, int]:
        said = self.kept.said.get(asked, {})
        return len(said.get(SCORED, ())), sum(map(len, said.values()))

    def count_cut_off(self) -> None:
        """Count what may have been under way when this process was killed as spent.

        That is as many calls as the model takes at once, the first that were not answered. The others were
        never sent: they are asked now. Of a document that takes several calls, what was said stays.
        """
        if self.money is None:  # whose bill has what was cut off
            untold, failures = self.untold, self._failures()
            cut = [asked for asked in self.kept.under_way if asked in untold]
            cut.sort(key=lambda asked: failures[asked.document])
            left, calls = self.kept.at_once, {}
            for asked in cut:
                calls[asked] = min(left, self.kept.unheard(asked))
                left -= calls[asked]
            idle = {self._asked(request): self.book.most(request) for request in self._not_begun}
            lost = [asked for asked in cut if calls[asked] >= self.primed.cost(*asked.document)]
            # a document of which nothing was said is given back for what may have been under way of it
            parts = sum(calls[asked] for asked in cut if asked in idle and asked not in lost)
            free = 0.0 if self.is_shared else self.book.free  # which others may have taken by now
            room = free + sum(most for asked, most in idle.items() if asked not in lost)
            for asked in cut:
                if asked in idle or asked in lost or not calls[asked]:
                    continue
                # the rest of the document must be paid as well: it is kept only where there is room beside it
                if parts + calls[asked] <= room + _SLACK:
                    parts += calls[asked]
                else:
                    lost.append(asked)
            self.book.lose([self._requests[asked] for asked in lost])
            if parts:
                self.kept.pay(parts)
                self.book.pay(
                    self.kept.unanswered - self.book.paid_beside, UNANSWERED, out_of=self._not_begun
                )
        self.book.give_back([one for one in self.book.lost if self._asked(one) not in self.kept.said])
        if self.kept.under_way:
            self.kept.stop()

    @property
    def _not_begun(self) -> list[Request]:
        """What this process holds of which nothing was said."""
        return [request for request in self.book.held if not self.kept.said.get(self._asked(request))]

    def leave(self, error: BaseException | None, *, took_over: bool = True) -> None:
        """Close book and bill; other processes go on without this one, and what was not sent costs nothing.

        Args:
            error: that ended the run.
            took_over: what an earlier attempt had under way was counted; otherwise it stays as that left it.
        """
        # as after a kill, calls may be under way; after an error of the host's they are paid for already
        sent = 0 if isinstance(error, Exception) else self.kept.at_once
        try:
            if self.is_shared and took_over and not isinstance(error, StoreError):
                had = {*self.kept.said, *(one.asked for one in self.kept.bought)}
                held = [request for request in self.book.held if self._asked(request) not in had]
                self.book.give_back(held[sent:])
        except StoreError as ex:
            log.warning("evalbudget: %s", ex)
            error = ex
        finally:
            try:
                if self.bill is not None:
                    self.bill.close()
            finally:
                # alone, it goes on with what is under way when the same command runs again
                self._book.close(keeps=not (self.is_shared and took_over))

    # what comes back

    def tell(self, answers: Iterable[Answered]) -> None:
        """Documents were scored; it is in the book once anything is asked of that."""
        readings = [self._reading(answer) for answer in answers]
        if readings:
            self.record.count_by(counted_by(self.config))
            self.record.score_by(self.scoring)
        if self.is_shared:  # others decide by it, and take the cells of a process that is killed
            self._book.trade(readings, 0)
        else:
            self._book.tell(readings)
        for reading in readings:
            self._stop_if_free(reading, "calls")

    def score_again(self, answers: Sequence[Answered]) -> int:
        """Answers of this process have the scores that today's task gives them; how many have others now."""
        before = {
            Asked(*self.documents[called.reading.request.cell.item], called.attempt): called.reading
            for called in self.book.calls()
        }
        changed = []
        for answer in answers:
            was = before.get(answer.asked)
            if was is not None and (now := self._reading(answer, was.request)).value != was.value:
                changed.append(now)
        self.book.score_again(changed)
        return len(changed)

    def _reading(self, answer: Answered, request: Request | None = None) -> Reading:
        key = self.scores[answer.task]
        value = answer.metrics.get(key)
        error = self._no_score(answer, key, value)
        cost = float(answer.requests) if self.money is None else self.money.cost(answer.asked)
        request = request or self._requests[answer.asked]
        return Reading(request, value if error is None else None, cost, error)

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
        request = self._requests[asked]
        cost = self.book.most(request) if self.money is None else self.money.cost(asked)
        self.book.trade([Reading(request, None, cost, error)], 0)

    def unaffordable(self, cells: Iterable[Asked]) -> None:
        """They wait for a run with a larger budget; nothing more is asked in this one."""
        self.book.give_back([self._requests[asked] for asked in cells])
        self.book.stop(USED_UP)

    def pays(self, calls: int) -> bool:
        """Pay for calls that brought no answer; False, and nothing paid, if they exceed what is left."""
        if self.money is not None:
            return True  # the bill has them
        return self.book.pays(float(calls), UNANSWERED)

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        """Pay for them out of what was promised to cells, the last first; those are returned that remain."""
        requests = [self._requests[asked] for asked in cells]
        left = self.book.pay(float(calls), UNANSWERED, out_of=requests)
        return cells[: len(left)]

    # what is known

    @property
    def spent(self) -> float:
        """In units of the budget, by earlier runs too, as far as the book was told."""
        return self._book.spent if self.bill is None else self.bill.spent

    @property
    def asked(self) -> int:
        """How often cells were handed out."""
        return self._book.cells().asked

    @property
    def given_up(self) -> list[tuple[str, int]]:
        """Documents that are not asked any more."""
        return [self.documents[cell.item] for cell in self.book.closed]

    def shown(self, amount: float) -> str:
        """An amount of the budget, as people read it."""
        return shown_amount(amount, self.budget.unit, counts="calls")

    def _failures(self) -> Counter[tuple[str, int]]:
        cells, found = self.book.cells(), Counter[tuple[str, int]]()
        for item, failed in zip(cells.item.tolist(), cells.failures.tolist(), strict=True):
            found[self.documents[item]] += failed
        return found

    def account(self) -> Account:
        """What was bought in all."""
        lost = 0
        if self.money is not None:  # what they cost is on the bill; calls of judges are on record
            lost = self.kept.unanswered + self.money.bill.cut_off[""]
        elsewhere = {UNANSWERED: lost} if lost else {}
        return Account(self.book, elsewhere, self.documents, in_scores=self.money is None)


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
