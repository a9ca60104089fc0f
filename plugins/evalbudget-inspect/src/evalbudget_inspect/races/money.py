"""The bill of a race whose budget is money or tokens: one for all arms."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from anyio import CapacityLimiter

from evalbudget.budget import Budget
from evalbudget.errors import EvalbudgetError
from evalbudget.prices import Tariff
from evalbudget.races import RacePurchase
from evalbudget.run import Bill
from evalbudget_inspect.host.bill import Account, open_account
from evalbudget_inspect.host.bill_file import open_common_bill
from evalbudget_inspect.host.book_file import folder_of, is_here
from evalbudget_inspect.host.call_bounds import check_roles
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.races.arm import Arm
from evalbudget_inspect.repeats.progress import show_spending


@dataclass
class RaceMoney:
    """What the calls of all arms cost.

    Attributes:
        account: that pays for all of them.
    """

    account: Account

    @property
    def bill(self) -> Bill:
        """That keeps the cap."""
        return self.account.bill

    def pays_for(self, run: Run) -> None:
        """From now on the calls of this run's samples are on the bill."""
        open_account(run.spec.eval_id, self.account)

    def ended(self, race: RacePurchase, arm: int, sample: str, *, scored: bool) -> bool:
        """A sample has ended; False if it wanted a call that the budget did not pay for."""
        if sample in self.account.gave_up and sample not in self.account.too_dear:
            return False
        self.account.scored |= scored and all(
            lane.tally.readings or lane.left or number == arm for number, lane in enumerate(race.lanes)
        )
        return True


def check_money(arms: Iterable[Arm], tariff: Tariff) -> None:
    """Refuse arms that no budget can be kept of.

    Raises:
        BudgetError: an arm or a judge has no price, or nothing limits its replies.
    """
    payers = list(arms)
    tariff.check(list(dict.fromkeys(model for arm in payers for model in arm.models)))
    for arm in payers:
        arm.context.run(check_roles, tariff.price)


def bill_of(run: Run, cap: Budget, tariff: Tariff, *, identity: object, risk: float, goes_on: bool) -> Bill:
    """Begin the bill of a race, or go on with that of its earlier attempts.

    Args:
        run: of one of its arms.
        cap: in money or tokens.
        tariff: what calls cost.
        identity: what tells this race from others whose logs are in the same folder.
        risk: as in :class:`~evalbudget.run.Bill`.
        goes_on: earlier attempts have bought something.

    Raises:
        BudgetError: the bill cannot be beside the logs, or is missing there.
        JournalError: it is damaged, or another process writes it.
    """
    return open_common_bill(run, _key_of(identity), cap, tariff, risk=risk, goes_on=goes_on)


def copy_of_bill(run: Run, cap: Budget, tariff: Tariff, identity: object) -> Bill | None:
    """Where calls of this process are recorded beside its logs, too, each once it has ended.

    None if its logs are elsewhere.

    Args:
        run: of one of its arms.
        cap: of the race with other processes, whose bill is in its store.
        tariff: what calls cost.
        identity: what tells this process's part of the race from others whose logs are in the same folder.

    Raises:
        JournalError: the file there is damaged, or another process writes it.
    """
    if not run.log_location or not is_here(folder_of(run.log_location)):
        return None
    return open_common_bill(run, _key_of(identity), cap, tariff, risk=0.0, goes_on=False)


def _key_of(identity: object) -> str:
    return f"race-{hashlib.sha256(repr(identity).encode()).hexdigest()[:22]}"


def open_money(
    arms: Iterable[Arm],
    bill: Bill,
    *,
    name: str,
    refuse: Callable[[EvalbudgetError], object],
    turns: CapacityLimiter | None = None,
) -> RaceMoney:
    """From now on the calls of these arms are on the bill.

    Args:
        arms: that run now.
        bill: of the race.
        name: of the race.
        refuse: told of what makes it impossible to keep the budget.
        turns: held by whoever waits for the other processes that share the bill; None where none do.
    """

    def refused(error: EvalbudgetError) -> None:
        refuse(error)

    money = RaceMoney(Account(bill, refused, turns=turns))
    for arm in arms:
        money.pays_for(arm.run)
    show_spending(money.account, name)
    return money
