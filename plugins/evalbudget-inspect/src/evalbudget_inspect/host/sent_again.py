"""Calls that a provider's client sends again: what came of the first may be billed, so it is paid too.

Clients repeat a request that brought no reply by themselves, and so does the host. What a server refused
(429, 500) costs nothing, and neither does a server that is not there.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from inspect_ai.log import EvalSample
from inspect_ai.util import LimitExceededError

from evalbudget_inspect.host.private import HttpHooks, active_model_event, sample_active

Pays = Callable[[float], Awaitable[bool]]
"""Pay for calls, in samples, or get them back; False, and nothing paid, if they exceed what is left."""

UNPAID = "no reply, and the budget does not pay for asking again"

_CLIENTS = ("httpx", "httpx2")
_NOBODY_THERE = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol"})


class Sending(Protocol):
    """A call whose client may send it several times, where what it costs is known."""

    async def sends(self) -> None:
        """It is about to be sent; raises if it may not be."""

    def came(self, outcome: int | None) -> None:
        """The status that came back; 0 where nobody was there, None where nothing came."""


sending: ContextVar[Sending | None] = ContextVar("evalbudget_sending", default=None)
"""The call that is under way in this context."""

_payers: dict[str, Pays] = {}
_calls: dict[str, _Calls] = {}


@dataclass(slots=True)
class _Calls:
    """Of one sample, by model.

    Attributes:
        pays: for what may be billed and brought nothing.
        answered: calls that were answered.
        reserved: what was paid for calls that are yet to be sent again.
        unpaid: the budget does not pay for one, so nothing is sent again.
    """

    pays: Pays
    answered: Counter[str] = field(default_factory=Counter)
    reserved: dict[str, float] = field(default_factory=dict)
    unpaid: set[str] = field(default_factory=set)

    def before(self, model: str) -> None:
        """What was reserved is spent now.

        Raises:
            LimitExceededError: nothing could be.
        """
        if model in self.unpaid:
            raise LimitExceededError("custom", value=1, limit=0, message=UNPAID)
        self.reserved.pop(model, None)

    async def lost(self, model: str) -> None:
        """A call may be billed and brought nothing: it costs at most its part of the sample."""
        share = 1.0 / (1 + self.answered[model])
        if await self.pays(share):
            self.reserved[model] = self.reserved.get(model, 0.0) + share
        else:
            self.unpaid.add(model)

    async def end(self) -> None:
        """A call that was not sent again is the sample's own."""
        if self.reserved:
            await self.pays(-sum(self.reserved.values()))


_asking: ContextVar[_Calls | None] = ContextVar("evalbudget_asking", default=None)
"""Where calls are no sample's of a run."""

_last: ContextVar[tuple[_Calls, str] | None] = ContextVar("evalbudget_last_call", default=None)
"""The call that was answered last, in the context of whoever asked."""


def pay_by(eval_id: str, pays: Pays) -> None:
    """Who pays for what the samples of a run send again."""
    _payers[eval_id] = pays
    watch_sends()


def forget_payers() -> None:
    """The run has ended: nobody pays for it any more."""
    _payers.clear()
    _calls.clear()


@asynccontextmanager
async def paying(pays: Pays) -> AsyncIterator[None]:
    """Who pays for what is sent again within this block, where no budgeted run is under way."""
    watch_sends()
    calls = _Calls(pays)
    before = _asking.set(calls)
    try:
        yield
    finally:
        _asking.reset(before)
        await calls.end()


def watch_sends() -> None:
    """From now on, know what clients send."""
    for name in _CLIENTS:
        try:
            client = importlib.import_module(name).AsyncClient
        except ImportError:
            continue
        if not hasattr(client.send, "counts_calls"):
            client.send = _counting(client.send)


def gave_up() -> bool:
    """Whether the sample in whose context this is called had a call that was not sent again."""
    active = sample_active()
    calls = None if active is None else _calls.get(active.sample_uuid or "")
    return calls is not None and bool(calls.unpaid)


def was_unpaid(sample: EvalSample) -> bool:
    """Whether a finished sample had."""
    return sample.limit is not None and sample.limit.reason == UNPAID


async def settle(sample: str) -> None:
    """An attempt at it has ended."""
    calls = _calls.pop(sample, None)
    if calls is not None:
        await calls.end()


async def retried() -> None:
    """The host asks again, whatever the reply was.

    Raises:
        LimitExceededError: nothing of this sample is asked again, since the budget does not pay for it.
    """
    asking = _calls_of_sample()
    if asking is not None and asking.unpaid:  # some clients take our own error for a lost connection
        raise LimitExceededError("custom", value=1, limit=0, message=UNPAID)
    last = _last.get()
    if last is not None:
        calls, model = last
        calls.answered[model] -= 1
        _last.set(None)
        await calls.lost(model)


def _counting(send: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def counting(client: Any, request: Any, *given: Any, **named: Any) -> Any:
        asks = HttpHooks.REQUEST_ID_HEADER in request.headers
        call = sending.get()
        if asks and call is not None:
            return await _watched(call, send, client, request, *given, **named)
        calls = _calls_of_sample() if asks else None
        if calls is None:
            return await send(client, request, *given, **named)
        event = active_model_event.get()
        model = "" if event is None else event.model
        _last.set(None)
        calls.before(model)
        try:
            response = await send(client, request, *given, **named)
        except BaseException as ex:
            if type(ex).__name__ not in _NOBODY_THERE:
                with anyio.CancelScope(shield=True):
                    await calls.lost(model)
            raise
        if response.status_code < 400:
            calls.answered[model] += 1
            _last.set((calls, model))
        return response

    counting.__dict__["counts_calls"] = True
    return counting


async def _watched(call: Sending, send: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
    await call.sends()
    try:
        response = await send(*given, **named)
    except BaseException as ex:
        call.came(0 if type(ex).__name__ in _NOBODY_THERE else None)
        raise
    call.came(response.status_code)
    return response


def _calls_of_sample() -> _Calls | None:
    active = sample_active()
    if active is None or active.sample_uuid is None:
        return _asking.get()
    pays = _payers.get(active.eval_id)
    return _asking.get() if pays is None else _calls.setdefault(active.sample_uuid, _Calls(pays))
