"""How much of a budget in money or tokens is spent while a run goes on, and how fast."""

from __future__ import annotations

from collections.abc import Callable

from evalbudget.budget import shown_amount
from evalbudget.run import Bill

_SOON = 1.0  # seconds after which a rate means something


class Spending:
    """What is said of a bill from now on.

    Args:
        bill: of the run.
        clock: seconds, from any moment.
    """

    def __init__(self, bill: Bill, clock: Callable[[], float]) -> None:
        self._bill, self._clock = bill, clock
        self._before, self._began = bill.spent, clock()

    def __str__(self) -> str:
        """Spent, promised, how fast, and how long there is something left at that."""
        bill, unit = self._bill, self._bill.cap.unit
        found = f"{shown_amount(bill.spent, unit)} of {bill.cap} is spent"
        if bill.held:
            found += f", {shown_amount(bill.held, unit)} promised"
        elapsed, bought = self._clock() - self._began, bill.spent - self._before
        if elapsed >= _SOON and bought > 0:
            left = (bill.cap.amount - bill.spent) * elapsed / bought
            found += f", {shown_amount(bought / elapsed * 60, unit)} a minute, about {_long(left)} left"
        return found


def _long(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"
