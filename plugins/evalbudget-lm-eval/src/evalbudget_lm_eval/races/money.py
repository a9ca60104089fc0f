"""The bill of a race whose budget is money or tokens: one for all arms."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget.races import RaceConfig
from evalbudget.run import bill_in
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.paid_arms import PaidArms
from evalbudget_lm_eval.repeats.money import check_kind
from evalbudget_lm_eval.run.record import Record


class RaceMoney(PaidArms):
    """What the calls of all arms of a race cost."""

    @classmethod
    def of(cls, config: RaceConfig, arms: Sequence[Arm], record: Record) -> RaceMoney | None:
        """The bill in a race's record; None where the budget counts evaluations.

        Raises:
            JournalError: the record was begun with a budget of another kind, or its bill cannot be read.
        """
        bought = any(record.of(arm.name).bought for arm in arms)
        check_kind(record, in_scores=config.in_scores, bought=bought)
        if config.in_scores:
            return None
        budget, tariff = config.resolve_budget(1, 1), config.tariff()
        bill = bill_in(record.db, budget, tariff, risk=config.risk)
        return cls(bill, [arm.name for arm in arms])
