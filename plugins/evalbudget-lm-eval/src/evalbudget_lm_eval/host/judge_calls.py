"""A judge's calls on their way to a server: what is sent again is paid again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from evalbudget.errors import EvalbudgetError
from evalbudget_lm_eval.host.billing import may_be_billed
from evalbudget_lm_eval.host.sessions import NoticingSession
from evalbudget_lm_eval.host.used_up import UsedUpError
from evalbudget_lm_eval.host.wire import Final


@contextmanager
def counted(models: Iterable[Any], again: Callable[[int], bool]) -> Iterator[None]:
    """Ask before a request that failed is sent again.

    Args:
        models: the host's API models.
        again: given how many calls may be billed for the attempt that failed: pays for them, and says whether
            to send the request again. What it declines fails for good, as :class:`Final`.
    """
    changed = []
    try:
        for lm in models:
            calls = _Calls(lm, again)
            instead = {"model_call": calls.call, "amodel_call": calls.acall}
            changed.append((lm, {name: vars(lm)[name] for name in instead if name in vars(lm)}))
            vars(lm).update(instead)
        yield
    finally:
        for lm, before in changed:
            del vars(lm)["model_call"], vars(lm)["amodel_call"]
            vars(lm).update(before)


class _Calls:
    """Stands before the methods through which one model sends its requests, from several threads."""

    def __init__(self, lm: Any, again: Callable[[int], bool]) -> None:
        self._most = lm.max_retries
        self._send, self._asend = lm.model_call, lm.amodel_call
        self._again = again
        self._times: dict[int, int] = {}  # by identity: the host sends the same object again

    def call(self, messages: Any, **more: Any) -> Any:
        """Send one request, and nothing beside it."""
        try:
            answers = self._send(messages, **more)
        except Exception as ex:
            self._failed(messages, ex, sent=False)
            raise
        self._times.pop(id(messages), None)
        return answers

    async def acall(self, session: Any, sem: Any, messages: Any, **more: Any) -> Any:
        """The same in the thread's event loop."""
        noticed = NoticingSession(session)
        try:
            answers = await self._asend(noticed, sem, messages, **more)
        except Exception as ex:
            self._failed(messages, ex, sent=noticed.sent)
            raise
        self._times.pop(id(messages), None)
        return answers

    def _failed(self, messages: Any, error: Exception, *, sent: bool) -> None:
        """Decide whether the host sends it again; the last attempt is what was paid for to begin with."""
        if isinstance(error, UsedUpError):
            raise Final(error) from error
        times = self._times.pop(id(messages), 0) + 1
        if times >= self._most:
            return
        try:
            again = self._again(len(messages) if may_be_billed(error, sent=sent) else 0)
        except EvalbudgetError as ex:  # it cannot be recorded
            raise Final(ex) from ex
        if not again:
            raise Final(error) from error
        self._times[id(messages)] = times
