"""The bill of an audit whose calls have a budget in money or tokens: one for all arms, beside its store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalbudget.audits.store import AuditBudget, close_bill, open_bill
from evalbudget.store import Address
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.paid_arms import PaidArms, check_prices
from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.paid_calls import JUDGE, PaidCalls
from evalbudget_lm_eval.run.rounds import Rounds


class AuditMoney:
    """What the calls of all arms cost, and those of their judges.

    Args:
        budget: what the user asked for.
        arms: the models.
        task: the host's object.
        store: of the audit.

    Attributes:
        short: something was not asked, since it does not fit.

    Raises:
        BudgetError: an arm or a judge has no price, or the bill is in another unit.
        JournalError: the bill is damaged, or another process writes it.
    """

    def __init__(self, budget: AuditBudget, arms: Sequence[Arm], task: Any, store: Address) -> None:
        tariff = budget.tariff()
        check_prices(tariff, arms, [task])
        self._store = store
        self._bill = open_bill(store, budget, tariff)
        self._money = PaidArms(self._bill, [arm.name for arm in arms])
        self.short = False

    def paid(self, arm: str) -> PaidCalls:
        """What stands before an arm's calls."""
        return self._money.paid[arm]

    def ask(self, arm: str, primed: PrimedTasks, rounds: Rounds, cells: Sequence[Asked]) -> None:
        """Have cells answered, as far as that fits.

        Raises:
            BudgetError: the cap is below one call.
        """
        if self._money.ask(arm, primed, rounds, cells, lambda: not self.short):
            self.short = True

    def judge_price(self, scores: int) -> float | None:
        """What a score of the judges cost on average; None where there is none, or it cost nothing.

        Args:
            scores: that were given.
        """
        cost = sum(row.cost for row in self._bill.rows if row.role == JUDGE)
        return cost / scores if scores and cost else None

    @property
    def text(self) -> str:
        """What was paid to whom, in a sentence."""
        return self._bill.text

    def close(self) -> None:
        """Let the bill go."""
        close_bill(self._bill, self._store)
