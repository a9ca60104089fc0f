"""The gate that every call of a run in money or tokens goes through: reserved before it, settled after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from time import monotonic
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from inspect_ai.hooks import BeforeModelGenerate
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model_info,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError

from evalbudget.budget import shown_amount
from evalbudget.errors import BudgetError, EvalbudgetError
from evalbudget.outage import is_refusal
from evalbudget.prices import Price, Usage
from evalbudget.run import Bill, Hold
from evalbudget.secrets import said_by
from evalbudget.shown import shown_logger
from evalbudget_inspect.host import sent_again
from evalbudget_inspect.host.call_bounds import input_at_most, output_at_most
from evalbudget_inspect.host.host_frames import held_by_caller
from evalbudget_inspect.host.private import sample_active

T = TypeVar("T")

logger = shown_logger(__name__)

_PAUSE = 0.02
"""Seconds between two looks at whether a call fits by now."""


@dataclass(slots=True, eq=False)
class _Call:
    """One that was reserved.

    Attributes:
        account: that pays.
        hold: what is reserved.
        begun: its provider was asked to send it.
        outcome: of what was sent last, where the client tells: its status; 0 where nobody was there, None
            where nothing came back.
        sent: how often the client sent it, where it tells.
        unpaid: it was to be sent once more, and the budget does not pay for that.
    """

    account: Account
    hold: Hold
    begun: bool = False
    outcome: int | None = None
    sent: int = 0
    unpaid: bool = False

    async def sends(self) -> None:
        """The client is about to send it.

        Raises:
            LimitExceededError: once more, after a sending that may be billed, and that does not fit.
        """
        billed = self.sent and (self.outcome is None or not (self.outcome == 0 or is_refusal(self.outcome)))
        if self.unpaid or (billed and not await self.account.again(self.hold)):
            self.unpaid = True
            raise self.account.used_up(self.hold.sample)
        self.sent += 1
        self.outcome = None

    def came(self, outcome: int | None) -> None:
        """What became of it: its status; 0 where nobody was there."""
        self.outcome = outcome

    def answered(self, output: ModelOutput, seconds: float) -> None:
        """The reply is there."""
        self._settle(_usage(output, seconds))

    def compacted(self, usage: ModelUsage | None, seconds: float) -> None:
        """The messages were shortened."""
        self._settle(None if usage is None else counted(usage, seconds))

    def _settle(self, usage: Usage | None) -> None:
        bill, bound = self.account.bill, self.hold.bound
        cost = bill.settle(self.hold, usage)
        if cost > bound * (1 + 1e-9):
            self.account.warn_of(self.hold.model, cost, bound)

    def failed(self, error: BaseException) -> None:
        """No reply came: nothing is billed only where the server refused it, or nobody was there."""
        status = self.outcome if self.sent else _status_of(error)
        if status is not None and (status == 0 or is_refusal(status)):
            self.account.bill.release(self.hold)
        else:
            self.account.bill.lose(self.hold)

    def end(self) -> None:
        """Its sample has ended."""
        if not self.begun:
            self.account.bill.release(self.hold)
        else:
            self.account.bill.lose(self.hold)


@dataclass(eq=False)
class Account:
    """Who pays for a run.

    Attributes:
        bill: that its calls are on.
        refuse: told of what makes it impossible to keep the budget.
        turns: held by whoever waits for other processes, where these share the bill; None where none do.
        spends: called when a call has ended.
        refusal: what makes it impossible; nothing more is asked.
        scored: something has been.
        gave_up: samples that wanted a call which the budget did not pay for.
        too_dear: of these, those whose call exceeds the whole budget, and why; others may go on.
        warned: models that bill more than they can.
    """

    bill: Bill
    refuse: Callable[[EvalbudgetError], None]
    turns: anyio.CapacityLimiter | None = None
    spends: Callable[[], None] = lambda: None
    refusal: EvalbudgetError | None = None
    scored: bool = False
    gave_up: set[str] = field(default_factory=set)
    too_dear: dict[str, str] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    _calls: dict[str, list[_Call]] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why a sample ended that could not ask."""
        return f"the budget of {self.bill.cap} is used up"

    def used_up(self, sample: str) -> LimitExceededError:
        """What ends a sample whose next call does not fit."""
        self.gave_up.add(sample)
        reason = self.too_dear.get(sample, self.reason) if self.refusal is None else str(self.refusal)
        amount = self.bill.cap.amount
        return LimitExceededError("custom", value=self.bill.spent, limit=amount, message=reason)

    def refused(self, error: EvalbudgetError, sample: str) -> LimitExceededError:
        """What ends a sample where the budget cannot be kept; nothing more is asked."""
        self.refusal = error
        self.refuse(error)
        return self.used_up(sample)

    async def reserve(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        config: GenerateConfig,
        sample: str,
    ) -> _Call:
        """Put aside what a call costs at most; waits while what is under way may still leave room for it.

        Raises:
            LimitExceededError: it does not fit, or the budget cannot be kept.
        """
        name = str(model)
        role = model.role or ""
        own = _call.get()
        nested = own is not None and own.begun and not own.hold.ended
        try:
            if self.refusal is not None:
                raise self.used_up(sample)
            given = input_at_most(name, messages, tools, config)
            reply = output_at_most(name, config, self.bill.tariff.price(name))
            reserved = _Reservation(
                self, partial(self.bill.reserve, name, given, reply, sample=sample, role=role)
            )
            while True:
                call = await reserved.tried()
                if call is not None:
                    return call
                if nested or not self.bill.may_fit(name, given, reply):
                    self._check_one_call(name, given, reply, sample)
                    raise self.used_up(sample)
                await anyio.sleep(_PAUSE)
        except EvalbudgetError as ex:
            raise self.refused(ex, sample) from ex

    def takes(self, call: _Call) -> None:
        """It ends with its sample at the latest."""
        self._calls.setdefault(call.hold.sample, []).append(call)

    async def again(self, hold: Hold) -> bool:
        """The call is sent once more; False if that does not fit."""
        return await self.in_turn(partial(self.bill.again, hold))

    async def tell(self) -> None:
        """A call has ended; where little is left, others may wait for that, and are told at once."""
        if self.turns is not None and self.bill.free < self.bill.held:
            with suppress(EvalbudgetError):  # whoever needs the store next says so
                await self.in_turn(self.bill.look)

    async def in_turn(self, act: Callable[[], T]) -> T:
        """Without keeping the event loop waiting for other processes, which may take a minute."""
        if self.turns is None:
            return act()

        def unless_refused() -> T:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            return act()

        return await anyio.to_thread.run_sync(unless_refused, limiter=self.turns)

    def _check_one_call(self, model: str, given: int, reply: int, sample: str) -> None:
        most, cap = self.bill.tariff.most(model, given, reply), self.bill.cap
        if most <= cap.amount:
            return
        shown = shown_amount(most, cap.unit)
        self.too_dear[sample] = f"a call of {model} may cost {shown}, more than the budget of {cap}"
        if not self.scored:
            raise BudgetError(
                f"the budget of {cap} is below one call of {model}, which may cost {shown}: up to {given:,} "
                f"tokens of input and {reply:,} of the reply. Raise --budget to {shown} or more, or "
                "limit replies (--max-tokens)"
            )

    def sample_ended(self, sample: str) -> None:
        """An attempt at it has: what nobody settled counts, and what was never sent does not."""
        for call in self._calls.pop(sample, ()):
            call.end()
        self.spends()

    def warn_of(self, model: str, cost: float, bound: float) -> None:
        """A provider bills more than the call can cost: said once of each model."""
        if model not in self.warned:
            self.warned.add(model)
            unit = self.bill.cap.unit
            logger.warning(
                "evalbudget: %s says that a call cost %s, which is more than it can cost by its price and "
                "limits (%s). It counts in full, and the cap may not hold: does the provider keep "
                "max_tokens, and is the price right?",
                *(model, shown_amount(cost, unit), shown_amount(bound, unit)),
            )


class _Reservation:
    """Room for a call, which goes back if nobody waits for it any more when it is there.

    Args:
        account: that pays.
        reserve: puts it aside; None if it does not fit.
    """

    def __init__(self, account: Account, reserve: Callable[[], Hold | None]) -> None:
        self._account = account
        self._reserve = reserve
        self._call: _Call | None = None
        self._is_off = False

    async def tried(self) -> _Call | None:
        """The call there is room for now; None if there is none."""
        try:
            await self._account.in_turn(self._put_aside)
        except BaseException:  # a host that cancels its task leaves a thread behind that goes on
            self._is_off = True
            self._give_back()
            raise
        if self._call is not None:
            self._account.takes(self._call)
        return self._call

    def _put_aside(self) -> None:
        hold = self._reserve()
        self._call = None if hold is None else _Call(self._account, hold)
        if self._is_off:
            self._give_back()

    def _give_back(self) -> None:
        if self._call is not None:
            self._call.end()


_accounts: dict[str, Account] = {}
_call: ContextVar[_Call | None] = ContextVar("evalbudget_call", default=None)


def open_account(eval_id: str, account: Account) -> None:
    """From now on calls of this run's samples go through the gate."""
    _accounts[eval_id] = account
    sent_again.watch_sends()


def close_accounts() -> None:
    """The runs have ended; their bills let their files go."""
    accounts = list(_accounts.values())
    _accounts.clear()
    for account in accounts:
        try:
            account.bill.close()
        except EvalbudgetError as ex:  # what it lacks counts at the most when the run goes on
            logger.warning("evalbudget: a bill could not be closed: %s", ex)


_beside: ContextVar[tuple[Account, str] | None] = ContextVar("evalbudget_beside", default=None)


@contextmanager
def paid_beside(account: Account, sample: str) -> Iterator[None]:
    """Calls within the block, which are no sample's of a run, go through the gate.

    Args:
        account: that pays.
        sample: what the bill calls them.
    """
    sent_again.watch_sends()
    before = _beside.set((account, sample))
    try:
        yield
    finally:
        _beside.reset(before)
        account.sample_ended(sample)


def _payer_here() -> tuple[Account, str] | None:
    """Who pays in this context, and for which sample; None where nobody does."""
    active = sample_active()
    if active is None:
        return _beside.get()
    account = _accounts.get(active.eval_id or "")
    return None if account is None else (account, active.sample_uuid or "")


def gave_up() -> bool:
    """Whether the sample of this context wanted a call that the budget did not pay for."""
    payer = _payer_here()
    if payer is None:
        return sent_again.gave_up()
    account, sample = payer
    return sample in account.gave_up


def sample_ended(sample: str) -> None:
    """An attempt at a sample has ended."""
    for account in _accounts.values():
        account.sample_ended(sample)


def host_price(model: str) -> Price | None:
    """What the host knows, by ``--model-cost-config``, ``set_model_info`` or its own database."""
    info = get_model_info(model)
    cost = None if info is None else info.cost
    if cost is None:
        return None
    return Price(
        input=cost.input, output=cost.output, cached=cost.input_cache_read, written=cost.input_cache_write
    )


async def before_call(data: BeforeModelGenerate) -> None:
    """Reserve what is about to be asked.

    Raises:
        LimitExceededError: it does not fit.
    """
    payer = _payer_here()
    if payer is None:
        return
    (account, sample), model = payer, held_by_caller(Model)
    if model is None:
        raise account.used_up(sample)
    try:
        release_unsent()
        _bracket(model)
        call = await account.reserve(model, data.input, data.tools, data.config, sample)
    except LimitExceededError:
        raise
    except Exception as ex:  # the host would only log it, and send the call
        why = f"what a call of {model} can cost is not known ({said_by(ex)}), so that no budget can be kept"
        raise account.refused(ex if isinstance(ex, EvalbudgetError) else BudgetError(why), sample) from ex
    _call.set(call)


def release_unsent() -> None:
    """What was reserved last in this context has not been sent: a cache had the reply."""
    call = _call.get()
    if call is not None and not call.begun:
        call.account.bill.release(call.hold)


def _bracket(model: Model) -> None:
    api: ModelAPI = model.api
    if hasattr(api.generate, "is_settled"):
        return
    generate, compact = api.generate, api.compact

    @wraps(generate)
    async def settled(*given: Any, **named: Any) -> Any:
        call = _call.get()
        if call is None or call.begun or call.hold.ended:
            return await generate(*given, **named)
        call.begun = True
        started = monotonic()
        result = await _sending(call, generate, *given, **named)
        output = result[0] if isinstance(result, tuple) else result
        if isinstance(output, ModelOutput):
            call.answered(output, monotonic() - started)
        else:
            call.failed(output)
            _raise_if_unpaid(call)
        call.account.spends()
        await call.account.tell()
        return result

    @wraps(compact)
    async def compacted(messages: Any, tools: Any, config: Any, *given: Any, **named: Any) -> Any:
        payer = _payer_here()
        if payer is None:
            return await compact(messages, tools, config, *given, **named)
        account, sample = payer
        call = await account.reserve(model, messages, list(tools), config, sample)
        call.begun = True
        started = monotonic()
        result = await _sending(call, compact, messages, tools, config, *given, **named)
        call.compacted(result[1], monotonic() - started)
        return result

    settled.__dict__["is_settled"] = True
    api.__dict__.update(generate=settled, compact=compacted)


async def _sending(call: _Call, ask: Callable[..., Any], *given: Any, **named: Any) -> Any:
    before = sent_again.sending.set(call)
    try:
        return await ask(*given, **named)
    except BaseException as ex:
        call.failed(ex)
        call.account.spends()
        if isinstance(ex, Exception):
            _raise_if_unpaid(call)
        raise
    finally:
        sent_again.sending.reset(before)


def _raise_if_unpaid(call: _Call) -> None:
    if call.unpaid:  # some clients take our own error for a lost connection
        raise call.account.used_up(call.hold.sample)


def _status_of(error: BaseException) -> int | None:
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int) and status >= 400:
            return status
    return None


def _usage(output: ModelOutput, seconds: float) -> Usage | None:
    """As far as it can be right: a call reads something, and a reply that says something has tokens."""
    if output.usage is None:
        return None
    usage = counted(output.usage, seconds)
    if usage.input + usage.cached + usage.written <= 0:
        return None
    return None if usage.output <= 0 and not output.empty and output.completion else usage


def counted(usage: ModelUsage, seconds: float) -> Usage:
    """What the host says of calls, as prices go by it."""
    cached, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    # some providers leave reasoning out of the output, and none out of the total
    rest = usage.total_tokens - usage.input_tokens - cached - written
    reply = usage.output_tokens
    if reply >= 0:
        reply = max(reply, rest, usage.reasoning_tokens or 0)
    return Usage(usage.input_tokens, reply, cached, written, seconds, usage.total_cost)
