"""How much of a budget in money or tokens is spent while a run goes on, and how fast."""

from __future__ import annotations

import time
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]

from evalbudget.budget import shown_amount
from evalbudget.run import Bill
from evalbudget_lm_eval.repeats.progress import LINES, is_terminal, log

_SOON = 1.0  # seconds after which a rate means something


class MoneyProgress:
    """As :class:`~evalbudget_lm_eval.repeats.progress.Progress`, of a bill.

    Args:
        bill: of the run.
    """

    def __init__(self, bill: Bill) -> None:
        self._bill = bill
        self._first = bill.spent
        self._began = time.monotonic()
        self._said = 0
        self._bar: Any = None

    def start(self, spent: float) -> None:
        """The run goes on from here; nothing is drawn until the first call is answered."""
        self._first, self._began = spent, time.monotonic()
        self._said = self._mark

    def heard(self) -> None:
        """A call of the round was answered."""
        if self._bar is None and is_terminal():
            self._bar = tqdm(
                total=self._bill.cap.amount,
                initial=self._first,
                bar_format="{desc} |{bar}| {elapsed}",
                leave=True,
            )
        if self._bar is not None:
            self._bar.set_description_str(f"evalbudget: {self.text}", refresh=False)
            self._bar.update(self._bill.spent - self._bar.n)
        elif self._mark > self._said:
            self._said = self._mark
            log.info("%s", self.text)

    def spent(self, spent: float) -> None:
        """A round is over."""
        self.heard()

    def reached(self, spent: float) -> None:
        """So much is spent at least, while calls go on."""
        self.heard()

    def close(self) -> None:
        """Nothing more is asked; the bar stays as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    @property
    def text(self) -> str:
        """Spent, promised, and how fast."""
        bill, unit = self._bill, self._bill.cap.unit
        found = f"{shown_amount(bill.spent, unit)} of {bill.cap} is spent"
        if bill.held:
            found += f", {shown_amount(bill.held, unit)} promised"
        elapsed, bought = time.monotonic() - self._began, bill.spent - self._first
        if elapsed >= _SOON and bought > 0:
            left = (bill.cap.amount - bill.spent) * elapsed / bought
            found += f", {shown_amount(bought / elapsed * 60, unit)} a minute, about {_long(left)} left"
        return found

    @property
    def _mark(self) -> int:
        return int(self._bill.spent * LINES / self._bill.cap.amount)


def _long(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"
