"""Arms asked at once: a thread waits for each model, and everything else happens in the thread that began.

Threads, and not processes: models behind servers are waited for, and torch lets other threads run while it
computes. So arms share what is loaded, the record and the bill, and a model may be a live object. What the
host does not make for several threads is done in the one that began, one thing at a time: loading models and
tasks, scoring, asking judges. Local models share only the random numbers that they sample with: what they
draw at a temperature above 0 differs from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.task_requests import at_home
from evalbudget_lm_eval.host.wire import Halt, halt_of_all, signals

log = shown_logger(__name__)

T = TypeVar("T")

_LOOK = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class _Errand:
    """Something that a thread has done in the thread that began."""

    do: Callable[[], Any]
    done: Future[Any]


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    """A thread is done."""

    who: T
    error: BaseException | None


class SideBySide(Generic[T]):
    """Runs jobs at once, a thread each; with one at a time in this thread.

    Use it as a context manager. Left by an error, it sends nothing more, and waits for what is under way; so
    does Ctrl-C, and a second one gives that up.

    Args:
        at_once: jobs.

    Attributes:
        running: whose jobs have not ended.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self.running: list[T] = []
        self._halt = Halt()
        self._inbox: SimpleQueue[_Errand | _Ended[T]] = SimpleQueue()
        self._door = Lock()
        self._closed = False
        self._breakable = False
        self._given_up = False
        self._signals = ExitStack()

    @property
    def is_full(self) -> bool:
        """Whether one must end before another begins."""
        return len(self.running) >= self._at_once

    def start(self, who: T, job: Callable[[], object]) -> None:
        """Begin a job.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
            BaseException: whatever the job raises, where there is one at a time.
        """
        self._halt.check()
        if self._at_once == 1:
            job()
            self.running.append(who)
            self._inbox.put(_Ended(who, None))
            return
        run = copy_context().run
        Thread(target=run, name="evalbudget arm", args=(self._work, who, job), daemon=True).start()
        self.running.append(who)

    def wait(self) -> T:
        """Do what jobs want done here until one ends, and say whose.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
            BaseException: whatever the job raised.
        """
        ended = self._next()
        if ended.error is not None:
            raise ended.error
        self._halt.check()
        return ended.who

    @contextmanager
    def breakable(self) -> Iterator[None]:
        """Within this block Ctrl-C raises at once."""
        self._breakable = True
        try:
            yield
        finally:
            self._breakable = False

    def __enter__(self) -> Self:
        if self._at_once > 1:
            self._signals.enter_context(signals(self._stop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._halt.error = self._halt.error or KeyboardInterrupt()
        try:
            while self.running and not self._given_up:
                self._next()
        finally:
            self._signals.close()
            self._close()

    def _work(self, who: T, job: Callable[[], object]) -> None:
        at_home.set(self._send)
        halt_of_all.set(self._halt)
        error: BaseException | None = None
        try:
            job()
        except BaseException as ex:  # it is raised in the thread that began
            error = ex
        self._inbox.put(_Ended(who, error))

    def _send(self, do: Callable[[], Any]) -> Any:
        errand = _Errand(do, Future())
        with self._door:
            if self._closed:
                raise KeyboardInterrupt
            self._inbox.put(errand)
        return errand.done.result()

    def _next(self) -> _Ended[T]:
        while True:
            try:
                entry = self._inbox.get(timeout=_LOOK)
            except Empty:
                continue  # a signal that came just before the wait began is handled between two of them
            if isinstance(entry, _Ended):
                self.running.remove(entry.who)
                return entry
            try:
                entry.done.set_result(entry.do())
            except BaseException as ex:
                entry.done.set_exception(ex)
                if isinstance(ex, Exception) or ex is self._halt.error:
                    continue
                if self._halt.error is not None:
                    raise
                self._halt.error = ex  # Ctrl-C, which judges take note of by themselves

    def _stop(self) -> None:
        self._given_up = self._halt.error is not None
        if self._halt.error is not None or self._breakable or not self.running:
            raise KeyboardInterrupt
        self._halt.error = KeyboardInterrupt()
        log.warning(
            "evalbudget: calls of %d arms are on their way, and are waited for since they are paid; Ctrl-C "
            "again to give them up",
            len(self.running),
        )

    def _close(self) -> None:
        with self._door:
            self._closed = True
        while not self._inbox.empty():
            entry = self._inbox.get()
            if isinstance(entry, _Errand):
                entry.done.set_exception(KeyboardInterrupt())
