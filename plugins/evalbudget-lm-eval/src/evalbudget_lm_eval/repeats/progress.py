"""How much of the budget is spent while a run goes on: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]

from evalbudget.hosts import Spending
from evalbudget.run import Bill
from evalbudget.shown import shown_logger

log = shown_logger("lm_eval.evalbudget")  # shown, and silenced, as the host's own lines

LINES = 20
"""Of a whole run, where there is no terminal."""


class Progress:
    """Of one run; whole calls, and never more than the budget.

    Args:
        amount: of the budget.
    """

    _format = "{desc}: {n:,.0f} of {total:,.0f} calls |{bar}| {elapsed}<{remaining}"

    def __init__(self, amount: float) -> None:
        self._amount = amount
        self._spent = 0.0
        self._said = 0
        self._bar: Any = None

    def start(self, spent: float) -> None:
        """The run goes on from here; nothing is drawn until the first call is answered."""
        self._spent = int(spent)
        self._said = self._mark

    def heard(self) -> None:
        """A call of the round was answered."""
        self.spent(self._spent + 1)

    def reached(self, spent: float) -> None:
        """So much is spent at least: what was answered and is not scored yet was heard before."""
        if spent > self._spent:
            self.spent(spent)

    def spent(self, spent: float) -> None:
        """So much is spent altogether."""
        self._show(min(int(spent), int(self._amount)))

    def _show(self, spent: float) -> None:
        if self._bar is None and bool(getattr(sys.stderr, "isatty", lambda: False)()):
            self._bar = tqdm(
                total=self._amount,
                initial=self._spent,
                desc=self._title,
                file=sys.stderr,
                bar_format=self._format,
            )
        self._spent = spent
        if self._bar is not None:
            self._bar.set_description_str(self._title, refresh=False)
            self._bar.update(self._spent - self._bar.n)
        elif self._mark > self._said:
            self._said = self._mark
            log.info("%s", self)

    def close(self) -> None:
        """Nothing more is asked; the bar stays as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    @property
    def _mark(self) -> int:
        return int(self._spent * LINES / max(self._amount, 1e-9))

    @property
    def _title(self) -> str:
        return "evalbudget"

    def __str__(self) -> str:
        return f"{self._spent:,} of {int(self._amount):,} calls are spent"


class MoneyProgress(Progress):
    """As of a run in calls, of a bill in money or tokens, and how fast it is spent.

    Args:
        bill: of the run.
        clock: seconds, from any moment.
    """

    _format = "{desc} |{bar}| {elapsed}"

    def __init__(self, bill: Bill, clock: Callable[[], float]) -> None:
        super().__init__(bill.cap.amount)
        self._bill, self._clock = bill, clock
        self._spending = Spending(bill, clock)

    def start(self, spent: float) -> None:
        """The run goes on from here, however much is spent."""
        self._spent, self._spending = spent, Spending(self._bill, self._clock)
        self._said = self._mark

    def heard(self) -> None:
        """A call of the round was answered."""
        self._show(self._bill.spent)

    def spent(self, spent: float) -> None:
        """A round is over, whose calls are on the bill."""
        self.heard()

    @property
    def _title(self) -> str:
        return f"evalbudget: {self}"

    def __str__(self) -> str:
        return str(self._spending)
