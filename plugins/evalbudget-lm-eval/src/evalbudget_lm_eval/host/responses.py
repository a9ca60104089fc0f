"""What the model said, as it says it: a round that breaks off loses nothing that was paid for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lm_eval.api.model import hash_args

from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.task_requests import Sent

Received = Callable[[Asked, int, Any], object]
"""Told every response when it comes: who asked, to which of the document's requests, what the model said."""

Responses = Mapping[Asked, Mapping[int, Sequence[Any]]]
"""What the model said: to each of a document's requests as many responses as the host repeats it."""


@contextmanager
def listening(lm: Any, sent: Sequence[Sent], received: Received) -> Iterator[None]:
    """Have the model's class report every response, in front of the host's own cache.

    Classes report to the host's cache hook, so that ``--use_cache`` keeps what a broken run had; one that
    does not is not heard.
    """
    if not hasattr(lm, "cache_hook"):
        yield
        return
    before = lm.cache_hook
    lm.set_cache_hook(_Hook(before, sent, received))
    try:
        yield
    finally:
        lm.set_cache_hook(before)


class _Hook:
    """Takes the place of the host's cache hook, and passes everything on to it."""

    def __init__(self, before: Any, sent: Sequence[Sent], received: Received) -> None:
        self._before = before
        self._received = received
        self._waiting: dict[str, deque[Sent]] = {}
        for one in sent:
            key = _key(one.instance.request_type, one.instance.args)
            if key is not None:  # repeats have the same key: one is as good as the other
                self._waiting.setdefault(key, deque()).extend([one] * one.repeats)

    def add_partial(self, attr: str, req: Iterable[Any], res: Any) -> None:
        """Called by the model's class with the arguments of the request that was answered."""
        self._before.add_partial(attr, req, res)
        key = _key(attr, req)
        waiting = self._waiting.get(key) if key is not None else None
        if waiting:
            one = waiting.popleft()
            self._received(one.asked, one.number, res)


def _key(attr: str, arguments: Iterable[Any]) -> str | None:
    try:
        return str(hash_args(attr, arguments))
    except TypeError:  # pictures and sounds, which the host's cache cannot hold either
        return None


class Memory:
    """Takes the model's place and repeats what it said.

    Args:
        lm: the model, for everything but answers.
        said: its responses.
    """

    def __init__(self, lm: Any, said: Responses) -> None:
        self._lm = lm
        self.said = said
        self._sent: dict[int, Sent] = {}
        self._used: dict[int, int] = {}

    def expect(self, sent: Sequence[Sent]) -> None:
        """Know whose each request of the round is."""
        self._sent = {id(one.instance): one for one in sent}
        self._used = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lm, name)

    def generate_until(self, requests: Sequence[Any], **_: object) -> list[Any]:
        """Responses to these requests."""
        return [self._next(request) for request in requests]

    def loglikelihood(self, requests: Sequence[Any], **_: object) -> list[Any]:
        """Responses to these requests."""
        return [self._next(request) for request in requests]

    def loglikelihood_rolling(self, requests: Sequence[Any], **_: object) -> list[Any]:
        """Responses to these requests."""
        return [self._next(request) for request in requests]

    def _next(self, request: Any) -> Any:
        one = self._sent[id(request)]
        count = self._used.get(id(request), 0)
        self._used[id(request)] = count + 1
        response = self.said[one.asked][one.number][count]
        return tuple(response) if isinstance(response, list) else response  # JSON knows no tuples
