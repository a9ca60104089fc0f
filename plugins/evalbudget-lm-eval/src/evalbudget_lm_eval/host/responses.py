"""What the model said, as it says it: a round that breaks off loses nothing that was paid for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from evalbudget_lm_eval.host.answers import Asked, key_of
from evalbudget_lm_eval.host.private import hash_args
from evalbudget_lm_eval.host.task_requests import Sent

Received = Callable[[Asked, int, Any], object]
"""Told every response when it comes: who asked, to which of the document's requests, what the model said."""

Responses = Mapping[Asked, Mapping[int, Sequence[Any]]]
"""What the model said: to each of a document's requests as many responses as the host repeats it."""

Expect = Callable[[Sequence[Sent], Responses], object]
"""Told what is about to be asked, but for what was said before."""


answering: ContextVar[list[str] | None] = ContextVar("answering", default=None)
"""While the host reads a reply: the cells it is for, as a bill names them; None where nobody keeps one."""


@contextmanager
def listening(lm: Any, received: Received, also: Expect | None = None) -> Iterator[Hook]:
    """Have the model's class report every new response, in front of the host's own cache.

    Classes report to the host's cache hook, so that ``--use_cache`` keeps what a broken run had; one that
    does not is not heard.
    """
    before = getattr(lm, "cache_hook", None)
    hook = Hook(before, received, also)
    if before is None:
        yield hook
        return
    lm.set_cache_hook(hook)
    try:
        yield hook
    finally:
        lm.set_cache_hook(before)


class Hook:
    """Takes the place of the host's cache hook, and passes everything on to it."""

    def __init__(self, before: Any, received: Received, also: Expect | None) -> None:
        self._before = before
        self._received = received
        self._also = also
        self._waiting: dict[str, deque[Sent]] = {}

    def expect(self, sent: Sequence[Sent], said: Responses) -> None:
        """These will be asked, but for what was said before; others who are to know are told."""
        if self._also is not None:
            self._also(sent, said)
        for one in sent:
            key = _key(one.instance.request_type, one.instance.args)
            if key is not None:  # repeats have the same key: one is as good as the other
                self._waiting.setdefault(key, deque()).extend([one] * (one.repeats - len(said_to(one, said))))

    def add_partial(self, attr: str, req: Iterable[Any], res: Any) -> None:
        """Called by the model's class with the arguments of the request that was answered."""
        self._before.add_partial(attr, req, res)
        key = _key(attr, req)
        waiting = self._waiting.get(key) if key is not None else None
        if waiting:
            one = _next(waiting)
            self._received(one.asked, one.number, res)

    def told(self, responses: Iterable[tuple[Sent, Any]]) -> None:
        """These were answered; what could not be reported as it came is reported now."""
        for one, response in responses:
            if _key(one.instance.request_type, one.instance.args) is None:
                self._received(one.asked, one.number, response)


def _next(waiting: deque[Sent]) -> Sent:
    """For whom the call was made that is being answered; the first, where nobody knows."""
    owners = answering.get()
    for one in tuple(waiting):  # to which another thread may add
        if owners and key_of(one.asked) in owners:
            owners.remove(key_of(one.asked))
            waiting.remove(one)
            return one
    return waiting.popleft()


def _key(attr: str, arguments: Iterable[Any]) -> str | None:
    try:
        return str(hash_args(attr, arguments))
    except TypeError:  # pictures and sounds, which the host's cache cannot hold either
        return None


class Memory:
    """Takes the model's place: repeats what it said, and asks it for the rest.

    Args:
        lm: the model.
        said: its responses so far.
    """

    def __init__(self, lm: Any, said: Responses) -> None:
        self._lm = lm
        self._said = said
        self._sent: dict[int, Sent] = {}
        self._used: dict[int, int] = {}

    def expect(self, sent: Sequence[Sent]) -> None:
        """Know whose each request of the round is."""
        self._sent = {id(one.instance): one for one in sent}
        self._used = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lm, name)

    def generate_until(self, requests: Sequence[Any], **more: Any) -> list[Any]:
        """Responses to these requests."""
        return self._respond(self._lm.generate_until, requests, more)

    def loglikelihood(self, requests: Sequence[Any], **more: Any) -> list[Any]:
        """Responses to these requests."""
        return self._respond(self._lm.loglikelihood, requests, more)

    def loglikelihood_rolling(self, requests: Sequence[Any], **more: Any) -> list[Any]:
        """Responses to these requests."""
        return self._respond(self._lm.loglikelihood_rolling, requests, more)

    def _respond(
        self, ask: Callable[..., Sequence[Any]], requests: Sequence[Any], more: Mapping[str, Any]
    ) -> list[Any]:
        known = [self._next(request) for request in requests]
        missing = [request for request, had in zip(requests, known, strict=True) if not had]
        told = iter(ask(missing, **more) if missing else ())
        return [had[0] if had else next(told) for had in known]

    def _next(self, request: Any) -> list[Any]:
        """The next response to it; empty if there is none."""
        one = self._sent[id(request)]
        count = self._used.get(id(request), 0)
        self._used[id(request)] = count + 1
        had = said_to(one, self._said)[count : count + 1]
        return [tuple(r) if isinstance(r, list) else r for r in had]  # JSON knows no tuples


def said_to(one: Sent, said: Responses) -> Sequence[Any]:
    """Responses to one request."""
    return said.get(one.asked, {}).get(one.number, ())
