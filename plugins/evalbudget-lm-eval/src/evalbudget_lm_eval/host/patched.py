"""What is another in the host for a while: attributes of its objects, and what all threads share.

The host draws bars, says what it runs and compiles templates in every call: a run in rounds makes hundreds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

from tqdm.std import tqdm  # type: ignore[import-untyped]

from evalbudget_lm_eval.host.private import env

WORTH_A_BAR = 100
"""Documents of a round that takes long enough to be watched."""

_hidden: ContextVar[bool] = ContextVar("hidden", default=False)
"""Whether this thread draws no bar: another one may load a model, and show that."""
_HOST_LOGS = tuple(logging.getLogger(f"lm_eval.{name}") for name in ("evaluator", "models"))


@contextmanager
def patched(changes: Iterator[tuple[Any, Mapping[str, Any]]]) -> Iterator[None]:
    """Within this block objects have other attributes; afterwards their own again.

    Args:
        changes: objects, and their attributes by name; what is raised on the way undoes what was done.
    """
    before: list[tuple[dict[str, Any], dict[str, Any], Mapping[str, Any]]] = []
    try:
        for thing, values in changes:
            own = vars(thing)
            before.append((own, {name: own[name] for name in values if name in own}, values))
            own.update(values)
        yield
    finally:
        for own, old, values in reversed(before):
            for name in values:
                own.pop(name, None)
            own.update(old)


class WhileAnyone:
    """A change of what all threads share: made by the first that wants it, undone after the last.

    Args:
        change: makes it, and undoes it on leaving.
    """

    def __init__(self, change: Callable[[], AbstractContextManager[None]]) -> None:
        self._change = change
        self._lock = Lock()
        self._wanted = 0
        self._made = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._wanted:
                self._made.enter_context(self._change())
            self._wanted += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                self._made.close()


@contextmanager
def bars_of_a_round(documents: int, *, hidden: bool = False) -> Iterator[None]:
    """Draw no bar while a small round runs.

    Args:
        documents: of the round.
        hidden: draw none while a large one runs either.
    """
    if documents >= WORTH_A_BAR and not hidden:
        yield
        return
    before = _hidden.set(True)
    try:
        with _heeded:
            yield
    finally:
        _hidden.reset(before)


@contextmanager
def _without_bars() -> Iterator[None]:
    kept, stock = vars(tqdm)["__init__"], tqdm.__init__  # kept is a descriptor, which makes stock

    def without(self: Any, *args: Any, **options: Any) -> None:
        stock(self, *args, **({**options, "disable": True} if _hidden.get() else options))

    tqdm.__init__ = without
    try:
        yield
    finally:
        tqdm.__init__ = kept


_heeded = WhileAnyone(_without_bars)


@contextmanager
def _quiet() -> Iterator[None]:
    before = [log.level for log in _HOST_LOGS]
    for log in _HOST_LOGS:
        log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for log, level in zip(_HOST_LOGS, before, strict=True):
            log.setLevel(level)


said_once = WhileAnyone(_quiet)
"""The host says what it runs: once is enough."""

compiled_once = WhileAnyone(lambda: patched(iter([(env, {"from_string": cache(env.from_string)})])))
"""The host compiles the template of a target for every score; a run has many scores of a document."""
