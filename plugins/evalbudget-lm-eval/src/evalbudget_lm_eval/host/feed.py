"""Calls of one model behind a server that go on while others are added, and while answers are scored.

The host's API classes gather a list of requests in an event loop, and return when the last is answered. So
each list waits in a thread of its own, while all calls are made in one loop, in another thread; no more of
them are under way at once than the user asked for, whatever list they are of.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import copy_context
from itertools import compress
from threading import Lock, Thread
from typing import Any, Self

from lm_eval.api.model import CachingLM

from evalbudget_lm_eval.host.answers import Asked
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.patched import patched
from evalbudget_lm_eval.host.responses import Hook, Memory, Responses, said_to
from evalbudget_lm_eval.host.task_requests import Sent

_LOOK = 0.05  # seconds between two looks at what came
_LISTS = 64  # that may wait at once, each for its slowest call


def can_be_fed(lm: Any) -> bool:
    """Whether the host gathers calls of this model in a loop that may as well run in another thread."""
    has_its_own = not isinstance(lm, CachingLM) and is_api(lm) and hasattr(lm, "get_batched_requests")
    # that of a notebook is patched (nest_asyncio), and stays in its thread
    return has_its_own and lm._concurrent > 1 and asyncio.run.__module__ == "asyncio.runners"


class Feed:
    """Has a model asked for one list of requests after another, without waiting for those before.

    Use it as a context manager: left by an error, it waits for what is under way.

    Args:
        lm: the host's model object.
        requests: of cells.
        hook: told what is asked and answered.
        stop: sends nothing more; whether what is under way is to be waited for.
    """

    def __init__(
        self,
        lm: Any,
        requests: Callable[[Sequence[Asked]], Sequence[Sent]],
        hook: Hook,
        stop: Callable[[], bool],
    ) -> None:
        self._lm, self._requests, self._hook, self._stop = lm, requests, hook, stop
        self._over = asyncio.Event()
        self._pool = ThreadPoolExecutor(_LISTS, thread_name_prefix="evalbudget list")
        # on Windows a loop that is made in the main thread takes the signals
        self._loop = self._pool.submit(asyncio.new_event_loop).result()
        self._lock = Lock()
        self._lists: list[Future[None]] = []
        self._stack = ExitStack()

    def send(self, cells: Sequence[Asked], said: Responses) -> None:
        """Have these asked as well, but for what was said to them before."""
        sent = self._requests(cells)
        self._hook.expect(sent, said)
        self._lists.append(self._pool.submit(copy_context().run, self._ask, sent, said))

    def wait(self, ready: Callable[[], Sequence[Asked]]) -> Sequence[Asked]:
        """What is ready, as soon as something is; nothing if nothing is, and nothing is under way.

        Raises:
            BaseException: what the model's class raised, when the other lists are done.
        """
        while True:
            under_way = [one for one in self._lists if not one.done()]
            errors = [ex for one in self._lists if one.done() and (ex := one.exception()) is not None]
            if errors and not under_way:
                raise errors[0]
            found = () if errors else ready()
            if found or not under_way:
                return found
            wait(under_way, _LOOK)

    def __enter__(self) -> Self:
        gather = self._lm.get_batched_requests

        async def gathered(*given: Any, **named: Any) -> Any:
            with self._lock:
                if self._over.is_set():
                    raise ConnectionAbortedError("calls are given up")
                made = asyncio.run_coroutine_threadsafe(gather(*given, **named), self._loop)
            return await asyncio.wrap_future(made)

        with ExitStack() as opened:  # undone where a thread cannot be had
            opened.callback(self._loop.close)
            opened.enter_context(patched(iter([(self._lm, {"get_batched_requests": gathered})])))
            opened.callback(self._pool.shutdown)
            thread = Thread(target=self._serve, name="evalbudget calls", daemon=True)
            thread.start()
            opened.callback(thread.join)
            opened.callback(self._loop.call_soon_threadsafe, self._over.set)
            if (
                not gc.get_freeze_count()
            ):  # all calls stop while Python looks through what the host has loaded
                opened.callback(gc.unfreeze)
                gc.freeze()
            self._stack = opened.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            if self._stop():
                while wait(self._lists, _LOOK).not_done:  # on Windows a signal is heard between two waits
                    pass
        finally:
            self._stack.close()

    def _serve(self) -> None:
        """Calls are made; at the end those that are under way are cut off."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._over.wait())
            with self._lock:  # no other list comes now
                runner.run(asyncio.sleep(0))  # what has not begun is not cut off, and never ends

    def _ask(self, sent: Sequence[Sent], said: Responses) -> None:
        lm = Memory(self._lm, said)
        lm.expect(sent)
        for kind in dict.fromkeys(one.instance.request_type for one in sent):
            own = [(one, n) for one in sent if one.instance.request_type == kind for n in range(one.repeats)]
            is_new = [n >= len(said_to(one, said)) for one, n in own]
            told = getattr(lm, kind)([one.instance for one, _ in own])
            answers = [(one, answer) for (one, _), answer in zip(own, told, strict=True)]
            self._hook.told(compress(answers, is_new))
