"""The calls of a round as the provider bills them: none is cut off, and what is sent twice is paid twice.

The host's API classes send a request up to ``max_retries`` times and, when one has failed for good, cut off
all others. Between them and the server stands :class:`Wire`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from evalbudget.errors import EvalbudgetError
from evalbudget_lm_eval.host.identity import is_api

log = logging.getLogger(__name__)

_NOBODY_THERE = (
    "ClientConnectorError",
    "ConnectTimeout",
    "NewConnectionError",
)  # of aiohttp, requests, urllib3
_PAUSE = 0.05  # seconds between two looks at whether the others are done


def at_a_kill(lm: Any) -> int:
    """How many requests may be on their way, and billed, when the run is killed; local models bill nobody."""
    if not is_api(lm):
        return 0
    sizes = (getattr(lm, name, 1) for name in ("_concurrent", "_batch_size"))
    return math.prod(size for size in sizes if isinstance(size, int))


def may_be_billed(lm: Any, error: BaseException) -> bool:
    """Whether a server may have answered a request that failed so: it was reached, and did not refuse it."""
    if not is_api(lm) or _nobody_was_there(error):
        return False
    response = getattr(error, "response", None)
    status = getattr(error, "status", None) or getattr(response, "status_code", None)
    return not (isinstance(status, int) and status >= 400)


@contextmanager
def wired(lm: Any, pay: Callable[[int], bool]) -> Iterator[Wire]:
    """Keep account of what is sent and answered during one round.

    Args:
        lm: the host's model object; nothing is done for one that asks no server.
        pay: pays for so many calls that are sent again; False if the budget does not.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; what was on its way has been waited for.
        SystemExit: the same, for SIGTERM.
    """
    lm = getattr(lm, "lm", lm)  # behind the host's cache
    wire = Wire(lm, pay)
    if not is_api(lm):
        yield wire
        return
    before = {name: vars(lm)[name] for name in ("model_call", "amodel_call") if name in vars(lm)}
    lm.model_call, lm.amodel_call = wire.call, wire.acall
    try:
        with _signals(wire.stop):
            yield wire
            wire.check()
    finally:
        del lm.model_call, lm.amodel_call
        vars(lm).update(before)


class Wire:
    """Stands before the two methods through which the host's API classes send their requests.

    When a request has failed for good, or Ctrl-C was pressed, nothing more is sent; what is on its way is
    waited for. What may have been billed is paid for before it is sent again; where the budget does not pay,
    that request has failed for good.

    Args:
        lm: the host's model object.
        pay: pays for so many calls; False if the budget does not.
    """

    def __init__(self, lm: Any, pay: Callable[[int], bool]) -> None:
        self._lm = lm
        self._pay = pay
        self._send = getattr(lm, "model_call", None)
        self._asend = getattr(lm, "amodel_call", None)
        self._times: dict[int, int] = {}
        """How often requests were sent; by identity, since the host sends the same object again."""
        self._billed: dict[int, tuple[Any, BaseException]] = {}
        """Those that failed, and may have been billed."""
        self._over: BaseException | None = None
        self._under_way = 0
        self._unread = 0
        self._cut = 0

    @property
    def lost(self) -> int:
        """Calls that may have been billed, and whose answers nobody has."""
        return self._cut + self._unread + sum(len(messages) for messages, _ in self._billed.values())

    def heard(self) -> None:
        """The host has read an answer."""
        self._unread = max(0, self._unread - 1)

    def stop(self, number: int) -> None:
        """A signal came: send nothing more, and wait for what is on its way; at the second, do not wait."""
        interrupt = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        if not self._under_way or isinstance(self._over, KeyboardInterrupt | SystemExit):
            raise interrupt
        self._over = interrupt
        log.warning(
            "evalbudget: %d calls are on their way, and are waited for since they are paid; Ctrl-C again to "
            "give them up",
            self._under_way,
        )

    def check(self) -> None:
        """Raise why nothing more is sent, if so."""
        if self._over is not None:
            raise self._over

    def call(self, messages: Any, **more: Any) -> Any:
        """Send one request, and nothing beside it."""
        self.check()
        self._pay_again(messages)
        self.check()
        self._unread = 0
        self._under_way = len(messages)
        try:
            answers = self._send(messages, **more)  # type: ignore[misc]
        except Exception as ex:
            self._failed(messages, ex)
            raise
        except BaseException:
            self._cut += len(messages)
            raise
        finally:
            self._under_way = 0
        self._unread = len(messages)
        del self._times[id(messages)]
        return answers

    async def acall(self, session: Any, sem: Any, messages: Any, **more: Any) -> Any:
        """Send one request of several."""
        async with sem:
            if self._over is None:
                self._pay_again(messages)
            if self._over is None:
                self._under_way += len(messages)
                try:
                    answers = await self._asend(session, _Free(), messages, **more)  # type: ignore[misc]
                except Exception as ex:
                    self._failed(messages, ex)
                    if self._over is None:
                        raise
                except BaseException:
                    self._cut += len(messages)
                    raise
                else:
                    del self._times[id(messages)]
                    return answers
                finally:
                    self._under_way -= len(messages)
        while self._under_way:
            await asyncio.sleep(_PAUSE)
        assert self._over is not None
        raise self._over

    def _pay_again(self, messages: Any) -> None:
        """Pay for what was billed once already, if it was."""
        self._times[id(messages)] = self._times.get(id(messages), 0) + 1
        _, error = self._billed.get(id(messages), (None, None))
        if error is None:
            return
        if self._pay(len(messages)):
            del self._billed[id(messages)]
        else:
            self._over = error

    def _failed(self, messages: Any, error: Exception) -> None:
        if may_be_billed(self._lm, error):
            self._billed[id(messages)] = (messages, error)
        for_good = isinstance(error, EvalbudgetError) or self._times[id(messages)] >= self._lm.max_retries
        if for_good and self._over is None:
            self._over = error


class _Free:
    """In place of the host's semaphore, which is held already."""

    async def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


@contextmanager
def _signals(stop: Callable[[int], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda number, frame: stop(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nobody_was_there(error: BaseException) -> bool:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    reason = getattr(error.args[0], "reason", None) if error.args else None  # requests wraps urllib3's
    return not kinds.union(kind.__name__ for kind in type(reason).__mro__).isdisjoint(_NOBODY_THERE)
