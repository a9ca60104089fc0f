"""A sampler of repeats behind a book in memory, for loops that ask and tell as they like."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget import Budget, Reading, Request
from evalbudget.book import Book
from evalbudget.budget import Unit
from evalbudget.repeats.samplers import RepeatSampler

_ENDLESS = 1e300


class Asking:
    """Has no end but the sampler's own.

    Args:
        sampler: fresh.
    """

    def __init__(self, sampler: RepeatSampler) -> None:
        self._book = Book(sampler, Budget(_ENDLESS, Unit.TOKENS))
        self._came: list[Reading] = []

    def ask(self, n: int = 1) -> Sequence[Request]:
        """Up to so many; none where the sampler waits or ends."""
        came, self._came = self._came, []
        return self._book.trade(came, n)

    def tell(self, reading: Reading) -> None:
        """One came back."""
        self._came.append(reading)
