"""Ctrl-C and SIGTERM: samples under way are paid for, so they are waited for; at the second, no longer."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import Counter
from typing import Any

import anyio

from evalbudget.shown import shown_logger

log = shown_logger(__name__)

_WAITING = "evalbudget: %d samples are under way and paid, so they are waited for; Ctrl-C again gives them up"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IGNORED = frozenset(number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN)
"""When the process began: nohup, and a shell's background jobs."""


class Interrupts:
    """Stands before the host's own handler of Ctrl-C, which cuts off everything at once."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._under_way: dict[str, str] = {}  # sample, and whose: the id of its evaluation
        self._given_up: Counter[str] = Counter()
        self.held: set[str] = set()
        """Samples that wait for the end of the run, and have asked nothing."""
        self.came = False
        """Whether nothing more is to be begun."""
        self._passing = anyio.Event()
        self.ended_a_run = False
        """Whether the last run that was watched had a signal."""

    def watch(self) -> None:
        """From now on until :meth:`release`, in front of the handlers that the host has for its run."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            before = signal.getsignal(number)
            # whoever ignores it has a reason; the host's own server catches it all the same, and lets it go
            if number not in _IGNORED and before not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self._signal)
        self._passing = anyio.Event()

    def release(self) -> None:
        """Leave signals to whom they belonged, unless these have been left to others already."""
        self._step_aside()
        self.ended_a_run = self.came
        self._before, self._under_way, self.held = {}, {}, set()
        self.came = False
        self._passing = anyio.Event()

    def given_up(self, eval_id: str) -> int:
        """How many samples of an evaluation were under way at the second signal, and not waited for."""
        return self._given_up[eval_id]

    async def begins(self, sample: str, eval_id: str = "") -> None:
        """A sample is about to ask its first question; after a signal it never does."""
        if not self._before:
            return
        if not self.came:
            self._under_way[sample] = eval_id
            return
        self.held.add(sample)
        with anyio.CancelScope(shield=True):  # no time limit has it go on
            self.ends(sample)
            await self._passing.wait()
        await anyio.sleep_forever()

    def ends(self, sample: str) -> None:
        """An attempt at a sample has ended, and is in the log."""
        self._under_way.pop(sample, None)
        if self.came and not self._under_way and not self._passing.is_set():
            self._pass_on()

    def _signal(self, number: int, frame: object) -> None:
        again, self.came = self.came, True
        if again or not self._under_way:
            self._given_up.update(self._under_way.values())
            self._under_way = {}
            self._pass_on()
            return
        # from a thread: the signal may have come while this one was writing to the same log
        threading.Thread(target=log.warning, args=(_WAITING, len(self._under_way))).start()

    def _pass_on(self) -> None:
        """Let the host end the run as it does at Ctrl-C, whose handler it has; it has none for SIGTERM."""
        self._passing.set()
        handler = self._before.get(signal.SIGINT, signal.default_int_handler)
        try:
            if callable(handler):
                handler(signal.SIGINT, None)
            else:
                raise KeyboardInterrupt
        except BaseException:
            # it ends the host's loop, which takes its own handler back only where that stands
            self._step_aside()
            raise

    def _step_aside(self) -> None:
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._signal:
                signal.signal(number, signal.default_int_handler if _is_of_ended_loop(handler) else handler)


def _is_of_ended_loop(handler: object) -> bool:
    """Whether asyncio put it there for a loop that has ended since: it takes it back only where it stands."""
    task = getattr(handler, "keywords", {}).get("main_task")
    return isinstance(task, asyncio.Task) and task.done()


interrupts = Interrupts()
"""Of this process, in which the host runs one evaluation at a time."""
