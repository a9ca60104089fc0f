"""The bill of an audit whose calls have a budget: one for all its runs, kept beside its store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample, EvalSpec
from inspect_ai.scorer import SampleScore, Score, Scorer, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import EarlyStop, EarlyStopping, LimitExceededError

from evalbudget.audits.store import AuditBudget, close_bill, open_bill
from evalbudget.prices import Tariff
from evalbudget.run import Bill
from evalbudget.store import Address
from evalbudget_inspect.host.bill import Account, gave_up, host_price, open_account
from evalbudget_inspect.host.call_bounds import check_roles
from evalbudget_inspect.host.private import sample_active
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.host.scoring import in_place_of
from evalbudget_inspect.repeats.progress import show_spending

UNPAID = "evalbudget_unpaid"
"""Key in a sample's metadata: the budget did not pay for a call of it."""
_PAUSE = 0.05
"""Seconds between two looks at whether a sample fits by now."""


@dataclass
class AuditMoney:
    """What the calls of an audit cost, run by run.

    Attributes:
        budget: what the user asked for.
        store: of the audit.
        tariff: what calls cost.
        bill: of the run that was opened last.
        short: something was not asked, since it does not fit.
    """

    budget: AuditBudget
    store: Address
    tariff: Tariff = field(init=False)
    bill: Bill | None = None
    short: bool = False
    _account: Account | None = None
    _begun: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tariff = self.budget.tariff(host_price)

    @contextmanager
    def opened(self) -> Iterator[Account]:
        """Calls within the block go on the bill, once somebody says whose they are.

        Raises:
            JournalError: it is damaged, or another process writes it.
            BudgetError: it is in another unit.
        """
        self.bill = open_bill(self.store, self.budget, self.tariff)
        account = self._account = Account(self.bill, refused)
        self._begun, self.short = [], False
        try:
            yield account
        finally:
            self.short = self.short or bool(account.gave_up)
            self._account = None
            close_bill(self.bill, self.store)

    def check(self, models: Iterable[str]) -> None:
        """Refuse models without a price, and roles whose replies nothing limits.

        Raises:
            BudgetError: names them.
        """
        self.tariff.check([name for name in dict.fromkeys(models) if name and name != "none/none"])
        check_roles(self.tariff.price)

    def over(self, task: Task, watch: EarlyStopping, kept: Container[str]) -> None:
        """Have a task's samples begin, score and end as the budget allows.

        Args:
            task: is changed.
            watch: what else ends it early.
            kept: ids of samples that are answered, and only scored.
        """
        assert self._account is not None
        task.scorer = [_if_paid(scorer) for scorer in task.scorer or []] or None
        task.cleanup = _marking(task.cleanup)
        task.early_stopping = _Doorkeeper(self, self._account, watch, kept)

    async def admits(self) -> bool:
        """Whether the sample of this context may begin: what is left covers the most that one needed."""
        account, active = self._account, sample_active()
        while account is not None and not (account.gave_up or account.refusal):
            self._begun = [one for one in self._begun if one.completed is None]
            if account.bill.has_room(one.sample_uuid or "" for one in self._begun):
                if active is not None:
                    self._begun.append(active)
                return True
            if not self._begun:
                break
            await anyio.sleep(_PAUSE)
        self.short = True
        return False

    @property
    def text(self) -> str:
        """What was paid to whom, in a sentence."""
        return "" if self.bill is None else self.bill.text


def is_unpaid(sample: EvalSample) -> bool:
    """Whether the budget did not pay for a call of a logged sample."""
    return UNPAID in (sample.metadata or {})


def is_cut_off(sample: EvalSample) -> bool:
    """Whether that was one of its answer, not of its scores."""
    return is_unpaid(sample) and sample.limit is not None and sample.limit.type == "custom"


class _Doorkeeper(EarlyStopping):
    """Lets samples begin for which there is room, until the first call that does not fit."""

    def __init__(
        self, money: AuditMoney, account: Account, watch: EarlyStopping, kept: Container[str]
    ) -> None:
        self._money, self._account, self._watch, self._kept = money, account, watch, kept

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """From now on its calls are on the bill."""
        open_account(task.eval_id, self._account)
        show_spending(self._account, self._money.store.name)
        return await self._watch.start_task(task, samples, epochs)

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002
        """Whether a sample is still to be asked; waits while those under way may leave room for it."""
        stop = await self._watch.schedule_sample(id, epoch)
        if stop is not None or str(id) in self._kept:  # of which only the score is missing
            return stop
        if await self._money.admits():
            return None
        return EarlyStop(id=id, epoch=epoch, reason=self._account.reason)

    async def complete_sample(
        self,
        id: str | int,  # noqa: A002
        epoch: int,
        scores: dict[str, SampleScore],
    ) -> None:
        """As the other one."""
        await self._watch.complete_sample(id, epoch, scores)

    async def complete_task(self) -> dict[str, str]:  # type: ignore[override]
        """As the other one."""
        return await self._watch.complete_task()  # type: ignore[return-value]


def _if_paid(base: Scorer) -> Scorer:
    """Of an answer that was cut off there is no score, and none of a judge that could not be asked."""

    async def score(state: TaskState, target: Target) -> Score | None:
        if gave_up():
            return None
        try:
            given = await base(state, target)
        except LimitExceededError:
            if gave_up():
                return None
            raise
        return None if gave_up() else given

    return in_place_of(base, score)


def _marking(
    base: Callable[[TaskState], Awaitable[None]] | None,
) -> Callable[[TaskState], Awaitable[None]]:
    async def cleanup(state: TaskState) -> None:
        state.metadata.pop(UNPAID, None)
        if gave_up():
            state.metadata[UNPAID] = True
        if base is not None:
            await base(state)

    return cleanup
