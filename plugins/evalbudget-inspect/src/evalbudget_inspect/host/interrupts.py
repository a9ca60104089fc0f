"""Ctrl-C and SIGTERM: samples under way are paid for, so they are waited for; at the second, no longer."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

import anyio

from evalbudget_inspect.host.attempt_notes import Attempt, add_to_note

log = logging.getLogger(__name__)

_WAITING = "evalbudget: %d samples are under way and paid, so they are waited for; Ctrl-C again gives them up"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Stands before the host's own handler of Ctrl-C, which cuts off everything at once."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._under_way: set[str] = set()
        self._held: dict[str, Attempt | None] = {}
        self._came = False
        self._passed = False
        self.ended_a_run = False
        """Whether the last run that was watched had a signal."""

    @property
    def came(self) -> bool:
        """Whether nothing more is to be begun."""
        return self._came

    def watch(self) -> None:
        """From now on until :meth:`release`, in front of the handlers that the host has for its run."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # whoever ignores it has a reason
                self._before[number] = before
                signal.signal(number, self._signal)

    def release(self) -> None:
        """Leave signals to whom they belonged, unless these have been left to others already."""
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._signal:
                signal.signal(number, handler)
        self.ended_a_run = self._came
        self._before, self._under_way, self._held = {}, set(), {}
        self._came = self._passed = False

    async def begins(self, sample: str, attempt: Attempt | None = None) -> None:
        """A sample is about to ask its first question; after a signal it never does."""
        if not self._before:
            return
        if not self._came:
            self._under_way.add(sample)
            return
        self._under_way.discard(sample)  # it failed, and would be tried again
        self._held[sample] = attempt
        await self._pass_on_if_done()
        await anyio.sleep_forever()

    async def ends(self, sample: str) -> None:
        """A sample is in the log."""
        self._under_way.discard(sample)
        if self._came:
            await self._pass_on_if_done()

    def _signal(self, number: int, frame: object) -> None:
        again, self._came = self._came, True
        if again or not self._under_way:
            self._pass_on()
            return
        # from a thread: the signal may have come while this one was writing to the same log
        threading.Thread(target=log.warning, args=(_WAITING, len(self._under_way))).start()

    async def _pass_on_if_done(self) -> None:
        if self._under_way or self._passed:
            return
        self._passed = True
        for attempt in {attempt for attempt in self._held.values() if attempt is not None}:
            await add_to_note(attempt, held=[s for s, own in self._held.items() if own == attempt])
        self._pass_on()

    def _pass_on(self) -> None:
        """Let the host end the run as it does at Ctrl-C, whose handler it has; it has none for SIGTERM."""
        handler = self._before.get(signal.SIGINT, signal.default_int_handler)
        if callable(handler):
            handler(signal.SIGINT, None)
        else:
            raise KeyboardInterrupt


interrupts = Interrupts()
"""Of this process, in which the host runs one evaluation at a time."""
