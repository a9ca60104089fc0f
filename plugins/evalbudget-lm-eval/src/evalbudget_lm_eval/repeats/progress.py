"""How much of the budget is spent while a run goes on: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]

from evalbudget.shown import shown_logger

log = shown_logger("lm_eval.evalbudget")  # shown, and silenced, as the host's own lines

LINES = 20
"""Of a whole run, where there is no terminal."""


class Progress:
    """Of one run; whole calls, and never more than the budget.

    Args:
        amount: of the budget.
    """

    def __init__(self, amount: float) -> None:
        self._amount = int(amount)
        self._spent = 0
        self._said = 0
        self._bar: Any = None

    def start(self, spent: float) -> None:
        """The run goes on from here; nothing is drawn until the first call is answered."""
        self._spent = int(spent)
        self._said = self._mark(self._spent)

    def heard(self) -> None:
        """A call of the round was answered."""
        self.spent(self._spent + 1)

    def reached(self, spent: float) -> None:
        """So much is spent at least: what was answered and is not scored yet was heard before."""
        if spent > self._spent:
            self.spent(spent)

    def spent(self, spent: float) -> None:
        """So much is spent altogether."""
        if self._bar is None and is_terminal():
            self._bar = tqdm(
                total=self._amount,
                initial=self._spent,
                desc="evalbudget",
                file=sys.stderr,
                bar_format="{desc}: {n:,} of {total:,} calls |{bar}| {elapsed}<{remaining}",
            )
        self._spent = min(int(spent), self._amount)
        if self._bar is not None:
            self._bar.update(self._spent - self._bar.n)
        elif self._mark(self._spent) > self._said:
            self._said = self._mark(self._spent)
            log.info("%s of %s calls are spent", f"{self._spent:,}", f"{self._amount:,}")

    def close(self) -> None:
        """Nothing more is asked; the bar stays as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _mark(self, spent: int) -> int:
        return spent * LINES // max(self._amount, 1)


def is_terminal() -> bool:
    """Whether a bar can be drawn."""
    return bool(getattr(sys.stderr, "isatty", lambda: False)())
