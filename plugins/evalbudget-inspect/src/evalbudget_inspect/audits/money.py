"""What ends a batch early: calls that a budget does not pay for, scores that the audit cannot use."""

from __future__ import annotations

import math
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

from evalbudget.audits.store import AuditBudget, Scale, close_bill, open_bill
from evalbudget.errors import InvalidInputError
from evalbudget.prices import Tariff
from evalbudget.run import Bill
from evalbudget.store import Address
from evalbudget_inspect.host.bill import Account, gave_up, host_price, open_account
from evalbudget_inspect.host.call_bounds import check_roles
from evalbudget_inspect.host.private import sample_active
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.host.score_values import score_to_float
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

    def over(self, task: Task) -> None:
        """Have a task's samples score and end as the budget allows."""
        task.scorer = [_if_paid(scorer) for scorer in task.scorer or []] or None
        task.cleanup = _marking(task.cleanup)

    def begins(self, eval_id: str) -> None:
        """From now on the calls of a task are on the bill."""
        assert self._account is not None
        open_account(eval_id, self._account)
        show_spending(self._account, self.store.name)

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
    def why(self) -> str:
        """Why nothing more is asked."""
        return "" if self._account is None else self._account.reason

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


@dataclass
class ScaleWatch:
    """Looks at every score of the judge as it comes; models that answer side by side share one.

    Whoever reads the log refuses the score, and says the remedy.

    Attributes:
        found: what is wrong with a score; empty as long as all are good.
    """

    found: str = ""

    def over(self, judge: Scorer, name: str, key: str | None, scale: Scale) -> Scorer:
        """The judge, watched; it is asked nothing more once one of its scores was no good."""

        async def score(state: TaskState, target: Target) -> Score | None:
            if self.found:
                return None
            given = await judge(state, target)
            if given is not None and not self.found:
                self.found = _fault(given, name, key, scale)
            return given

        return in_place_of(judge, score)


class Doorkeeper(EarlyStopping):
    """Lets samples begin until a score cannot be used, and as far as there is money; the host asks it first.

    Args:
        watch: of scores.
        money: pays for the calls; None where they cost what they cost.
        kept: ids of samples that are answered, and only scored.
    """

    def __init__(self, watch: ScaleWatch, money: AuditMoney | None, kept: Container[str]) -> None:
        self._watch, self._money, self._kept = watch, money, kept

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Tell the host a name."""
        if self._money is not None:
            self._money.begins(task.eval_id)
        return "evalbudget"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:  # noqa: A002
        """Whether a sample is still to be asked; waits while those under way may leave room for it."""
        if self._watch.found:
            return EarlyStop(id=id, epoch=epoch, reason=self._watch.found)
        if self._money is None or str(id) in self._kept or await self._money.admits():
            return None
        return EarlyStop(id=id, epoch=epoch, reason=self._money.why)

    async def complete_sample(
        self,
        id: str | int,  # noqa: A002
        epoch: int,
        scores: dict[str, SampleScore],
    ) -> None:
        """Nothing to do: scores were seen when they came."""

    async def complete_task(self) -> dict[str, str]:  # type: ignore[override]
        """Nothing to tell."""
        return {}


def _fault(given: Score, name: str, key: str | None, scale: Scale) -> str:
    try:
        value = score_to_float(given, name, key, "--judge", strict=True)
    except InvalidInputError as ex:
        return str(ex)
    fits = math.isnan(value) or scale.low <= value <= scale.high
    return "" if fits else f"the judge gave {value:g}, and the audit's scale is {scale}"


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
