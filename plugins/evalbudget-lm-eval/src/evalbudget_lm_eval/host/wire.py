"""The calls of a round on their way to a server: none is cut off, and what is sent again is paid again.

The host's API classes send a request up to ``max_retries`` times and, when one has failed for good, cut off
all others. Between them and the server stands :class:`Wire`.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from evalbudget.errors import EvalbudgetError
from evalbudget.outage import is_down
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.billing import may_be_billed
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.sessions import NoticingSession
from evalbudget_lm_eval.host.used_up import UsedUpError

log = shown_logger(__name__)

_PAUSE = 0.05  # seconds between two looks at whether the others are done


class Payer(Protocol):
    """Who pays for calls that brought no answer."""

    def pays(self, calls: int) -> bool:
        """Pay for so many; False, and nothing paid, if they exceed what is free of the budget."""

    def owes(self, calls: int) -> None:
        """So many are billed whether or not they can be paid."""


class Halt:
    """A stop sign.

    Attributes:
        error: raised wherever something would be sent; None as long as things go on.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def check(self) -> None:
        """Raise it, if it is up."""
        if self.error is not None:
            raise self.error


halt_of_all: ContextVar[Halt | None] = ContextVar("halt_of_all", default=None)
"""In a thread that asks one of several arms: the sign that stops all of them."""


@contextmanager
def wired(lm: Any, payer: Payer, *, alone: bool = False) -> Iterator[Wire]:
    """Keep account of what is sent and answered during one round.

    Args:
        lm: the host's model object; nothing is done for one that asks no server.
        payer: of calls that brought no answer.
        alone: the round has one cell; when it fails, the caller counts it as paid.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM came; what was on its way has been waited for.
    """
    lm = getattr(lm, "lm", lm)  # behind the host's cache
    wire = Wire(lm, payer, alone=alone)
    wire.check()
    if not wire.is_api:
        yield wire
        return
    instead = {"model_call": wire.call, "amodel_call": wire.acall, "parse_generations": wire.parse}
    before = {name: vars(lm)[name] for name in instead if name in vars(lm)}
    vars(lm).update(instead)
    try:
        with signals(wire.stop):
            try:
                yield wire
            except Final as final:
                raise final.error from None
            finally:
                wire.check()
    finally:
        for name in instead:
            del vars(lm)[name]
        vars(lm).update(before)


class Wire:
    """Stands before the methods through which the host's API classes send their requests.

    A request that has failed for good fails once the others of the round are done. After an interrupt, and if
    several fail one after the other, nothing more is sent, and what is on its way is waited for. What may
    have been billed is paid at once; where the budget does not pay it, that request is not sent again.

    Args:
        lm: the host's model object.
        payer: of calls that brought no answer.
        alone: the round has one cell; when it fails, the caller counts it as paid.

    Attributes:
        limit: of calls at once, where several lists of requests are under way; None for the list's own.
        is_api: whether the host asks a server.
        billed: calls of the cell that was alone, which failed, that may be billed.
        unpaid: requests that are not sent again because the budget does not pay for it.
    """

    def __init__(self, lm: Any, payer: Payer, *, alone: bool = False) -> None:
        self.limit: asyncio.Semaphore | None = None
        self.billed = 0
        self.unpaid: list[Any] = []
        self._lm = lm
        self._payer = payer
        self._alone = alone
        self.is_api = is_api(lm)
        self._send = getattr(lm, "model_call", None)
        self._asend = getattr(lm, "amodel_call", None)
        self._parse = getattr(lm, "parse_generations", None)
        self._times: dict[int, int] = {}
        """How often requests were sent; by identity, since the host sends the same object again."""
        self._halt = halt_of_all.get() or Halt()
        self._down: Exception | None = None
        self._failure: Exception | None = None  # of a request that is not sent again
        self._failures = 0  # for good, one after the other
        self._open: set[int] = set()
        self._ended: set[int] = set()
        self._under_way = 0
        self._unread = 0
        self._cut = 0
        self._settled = False
        self._raised: dict[int, BaseException] = {}
        """Errors of lists of requests, by the identity of their session."""
        self._given_up = False

    def heard(self) -> None:
        """The host has read an answer.

        Raises:
            KeyboardInterrupt: it was the last that was on its way, and an interrupt came.
        """
        if self._unread:
            self._unread -= 1
        elif self.is_api:
            return  # it was one of several requests, which wait for one another
        if not self._unread:
            self.check()

    def stop(self) -> None:
        """A signal came: send nothing more, and wait for what is on its way; at the second, do not wait."""
        again, self._halt.error = self._halt.error, KeyboardInterrupt()
        under_way = self._under_way or self._unread
        if again is not None or not under_way:
            self._given_up = again is not None
            if under_way:
                log.warning(
                    "evalbudget: %d calls are given up; they may be billed, and count as spent", under_way
                )
            raise self._halt.error
        log.warning(
            "evalbudget: %d calls are on their way, and are waited for since they are paid; Ctrl-C again to "
            "give them up",
            under_way,
        )

    def check(self) -> None:
        """Raise the interrupt that came, if one did."""
        self._halt.check()

    def end(self) -> bool:
        """Send nothing more; whether what is on its way is to be waited for."""
        self._down = self._down or ConnectionAbortedError("its round is over")
        return not self._given_up

    def settle(self) -> None:
        """The round broke off: what was cut off or never read is paid for.

        So is what is still under way: a loop that others use too (nest_asyncio) cancels nothing.
        """
        lost, self._cut, self._unread = self._cut + self._unread + self._under_way, 0, 0
        self.end()
        self._settled = True
        if self._alone:
            self.billed += lost
        elif lost and not self._payer.pays(lost):
            self._payer.owes(lost)

    def parse(self, *given: Any, **named: Any) -> list[str]:
        """What replies say; one without content was answered too, which the host tells in one path only."""
        from lm_eval.models.api_models import LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER as NO_CONTENT

        said = self._parse(*given, **named)  # type: ignore[misc]
        if None in said:
            log.warning("evalbudget: a reply has no content; does reasoning use up its limit of tokens?")
        return [NO_CONTENT if one is None else one for one in said]

    def call(self, messages: Any, **more: Any) -> Any:
        """Send one request, and nothing beside it."""
        self.check()
        self._times[id(messages)] = self._times.get(id(messages), 0) + 1
        self._under_way = len(messages)
        try:
            answers = self._send(messages, **more)  # type: ignore[misc]
            self._unread += len(messages)
        except Exception as ex:
            if self._failed(messages, ex, sent=False):
                raise Final(self._down or ex) from ex
            self.check()
            raise
        except BaseException:
            self._cut += len(messages)
            raise
        finally:
            self._under_way = 0
        del self._times[id(messages)]
        return answers

    async def acall(self, session: Any, sem: Any, messages: Any, **more: Any) -> Any:
        """Send one request of several."""
        self._open.add(id(messages))
        error: BaseException | None = None
        async with self.limit or sem:
            if not self.stopped:
                self._times[id(messages)] = self._times.get(id(messages), 0) + 1
                self._under_way += len(messages)
                noticed = NoticingSession(session)
                try:
                    answers = await self._asend(noticed, _Free(), messages, **more)  # type: ignore[misc]
                except Exception as ex:
                    error = ex
                    if not self._failed(messages, ex, sent=noticed.sent) and self._halt.error is None:
                        raise
                except BaseException:
                    self._cut += len(messages)
                    raise
                else:
                    self._failures = 0
                    self._open.discard(id(messages))
                    del self._times[id(messages)]
                    if self._halt.error is None:
                        return answers
                finally:
                    self._under_way -= len(messages)
        self._ended.add(id(messages))
        await asyncio.sleep(0)  # the first may fail, for want of money say, before the others have begun
        while self._under_way or (not self.stopped and self._open - self._ended):
            await asyncio.sleep(_PAUSE)
        if id(session) in self._raised:
            return []  # the host has one error already, and nobody would ask this task for its own
        error = error or self._down or next(iter(self._raised.values()), None)
        if isinstance(self._down, EvalbudgetError):
            error = self._down
        elif isinstance(error, UsedUpError):  # of a request that failed for good more is to be said
            error = self._down or self._failure or error
        error = self._halt.error or error  # as itself it would break off the loop, with other tasks in it
        assert error is not None
        self._raised[id(session)] = error
        raise Final(error) from error

    @property
    def stopped(self) -> bool:
        """Nothing more is sent."""
        return self._halt.error is not None or self._down is not None or bool(self._raised)

    @property
    def fails(self) -> bool:
        """Whether a request has failed for good, or nothing more is sent."""
        return self.stopped or bool(self._ended)

    def _failed(self, messages: Any, error: Exception, *, sent: bool) -> bool:
        """Pay for what may be billed; whether the request is not to be sent again."""
        if isinstance(error, UsedUpError):
            return True  # the model is not at fault, and others may still fit
        final = isinstance(error, EvalbudgetError) or self._times[id(messages)] >= self._lm.max_retries
        if may_be_billed(error, sent=sent) and not self._settled:
            try:
                final = not self._paid(messages, last=final) or final
            except EvalbudgetError as ex:  # it cannot be recorded
                error, final = ex, True
        if final:
            self._failure = self._failure or error
            self._failures += 1
            if isinstance(error, EvalbudgetError) or is_down(self._failures):
                self._down = error
        return final

    def _paid(self, messages: Any, *, last: bool) -> bool:
        """Pay for a request that failed; False if it cannot be sent again for that."""
        calls = len(messages)
        if self._alone:
            if last or not self._payer.pays(calls):
                self.billed += calls
            return not self.billed
        if self._payer.pays(calls):
            return True
        self._payer.owes(calls)
        self.unpaid += messages
        return False


class Final(BaseException):
    """A request has failed for good, or the run is stopped: no retry of the host's catches it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class _Free:
    """In place of the host's semaphore, which is held already."""

    async def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


@contextmanager
def signals_raise() -> Iterator[None]:
    """Within this block SIGTERM raises, as Ctrl-C does: what is being waited for is kept."""

    def stop() -> None:
        raise KeyboardInterrupt

    with signals(stop):
        yield


@contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """Within this block Ctrl-C and SIGTERM call ``stop``, where this thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    for one in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(one) not in (signal.SIG_IGN, None):  # whoever ignores it has a reason
            before[one] = signal.signal(one, lambda number, frame: stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
