"""The bill of a run whose budget is money or tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from evalbudget.errors import JournalError
from evalbudget.run import Bill, bill_in, unit_in
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import is_api, short_name
from evalbudget_lm_eval.host.paid_calls import PaidCalls
from evalbudget_lm_eval.host.used_up import check_pays
from evalbudget_lm_eval.judges.at_most import dearest_answer, judgings_of_answer
from evalbudget_lm_eval.judges.filter import judges_of, panel_of
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.run.record import Record

_ROUNDING = 1e-9


class Money:
    """What the calls of a run cost: the model's and its judges'.

    Args:
        bill: that keeps the cap.
        models: the host's objects, the evaluated model first.
        call: what one call of the model costs at most, over all documents.
        answer: what one answer and its judging do, but for their time; None where the model is not asked.
        judgings: calls of judges that one answer takes.

    Attributes:
        bill: that keeps the cap.
        call: what one call of the model costs at most, over all documents.
        paid: stands before the calls.
    """

    def __init__(
        self, bill: Bill, models: Sequence[Any], call: float, answer: float | None, judgings: int
    ) -> None:
        self.bill = bill
        self.call = call
        self.paid = PaidCalls(bill)
        self._models = models
        self._answer = answer
        self._judgings = judgings

    def kept_in(self, record: Record) -> Money:
        """The same, kept in the file of a record.

        Raises:
            JournalError: it cannot be read.
        """
        bill = bill_in(record.db, self.bill.cap, self.bill.tariff, risk=self.bill.risk)
        return Money(bill, self._models, self.call, self._answer, self._judgings)

    @classmethod
    def checked(cls, config: Config, primed: PrimedTasks, *, asks_model: bool = True) -> Money:
        """A bill that nothing is on yet, and that is kept nowhere.

        Args:
            config: what the user asked for.
            primed: the tasks.
            asks_model: the model itself is asked, not only its judges.

        Raises:
            BudgetError: a model has no price, nothing limits its replies, or the cap is below one answer.
            InvalidInputError: a judge's prompt asks for a field that documents lack.
        """
        documents = [(name, doc) for name in primed.names for doc in primed.documents(name)]
        budget, tariff = config.resolve_budget(len(documents)), config.tariff()
        panels = [panel for name in primed.names if (panel := panel_of(primed.task(name)))]
        judges = {short_name(judge.load()): judge for panel in panels for judge in panel.specs}
        models = [*([primed.lm] if asks_model else []), *judges_of(primed)]
        tariff.check(map(short_name, models))
        bill = Bill(budget, tariff, risk=config.risk)
        call, answer = dearest_answer(PaidCalls(bill), primed) if asks_model else (0.0, None)
        least = {short_name(primed.lm): call} if asks_model else {}
        for name, judge in judges.items():  # without what it is told
            least[name] = max(
                least.get(name, 0.0), tariff.most(name, 0, judge.gen_kwargs.get("max_gen_toks"))
            )
        for name, most in least.items():
            check_pays(budget, f"one call of {name}", most)
        if answer is not None and judges:
            check_pays(budget, "one answer and its judging", answer)
        return cls(bill, models, call, answer, judgings_of_answer(primed))

    def before_calls(self) -> AbstractContextManager[None]:
        """Every call within the block is on the bill."""
        return self.paid.before(self._models)

    def cost(self, asked: Asked) -> float:
        """What a cell cost: its requests, its judges, and what was sent again or lost."""
        return self.paid.cost(asked)

    def size(self, n: int, readings: int, spent: float) -> int:
        """How many of n cells to ask: no more than what is left is likely to buy.

        Args:
            n: cells.
            readings: that there are.
            spent: on them, and on those that failed.

        Of a model on one's own machines, which is given whole rounds, and where time is paid, no more than
        what is left certainly buys.
        """
        times = [self.paid.time_of(lm) for lm in self._models]
        if None in times:
            return min(n, 1)  # by which the others are measured
        if self._answer is not None and (any(times) or not is_api(self._models[0])):
            n = self.paid.fits(self._models, self._answer, self._judgings, n)
        if readings and spent > 0:
            n = min(n, max(1, math.ceil(self.bill.free * readings / spent)))
        return n


def check_kind(record: Record, *, in_scores: bool, bought: bool) -> None:
    """Refuse to go on in money with what was begun in scores, and the other way round.

    Args:
        record: of the run or the race.
        in_scores: the budget counts scores.
        bought: it has answers already.

    Raises:
        JournalError: the record was begun with a budget of another kind.
    """
    has_bill = unit_in(record.db) is not None
    if in_scores and has_bill:
        raise JournalError(
            f"{record.where} was begun with a budget in money or tokens, and this one counts scores; go on "
            "with money, or choose another --journal"
        )
    if not in_scores and bought and not has_bill:
        raise JournalError(
            f"{record.where} has no bill: it was begun with a budget in scores, and what it cost is not "
            "known. Choose another --journal"
        )
