"""A sampler of repeats behind a book in memory, asked and told as a test likes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evalbudget import Budget, Cell, Reading, Request
from evalbudget.book import Book
from evalbudget.budget import Unit
from evalbudget.cells import CAME
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.testing._play import Played


class Asking:
    """Has no end but the sampler's own."""

    def __init__(self, sampler: RepeatSampler) -> None:
        self.sampler = sampler
        self._book = Book(sampler, Budget(1e300, Unit.TOKENS))
        self._came: list[Reading] = []

    def ask(self, n: int = 1) -> tuple[Request, ...]:
        """Up to so many; none where the sampler waits or ends."""
        came, self._came = self._came, []
        return tuple(self._book.trade(came, n))

    def tell(self, readings: Iterable[Reading]) -> None:
        """What came back, in any order."""
        self._came += readings

    @property
    def book(self) -> Book:
        """That knows what was told."""
        self.ask(0)
        return self._book

    @property
    def asked(self) -> int:
        """How many in all."""
        return self.book.cells().asked

    @property
    def closed(self) -> tuple[Cell, ...]:
        """What is given up now."""
        book = self.book
        book._copy.waiting.first()  # it is looked up when something is asked
        return book.closed

    @property
    def stop_reason(self) -> str | None:
        """Why nothing more is asked; None while it may be."""
        book = self.book
        return book.stop_reason if book.finished else None

    def counts(self) -> tuple[int, ...]:
        """Readings of each item that have a score."""
        cells = self.book.cells()
        read = np.bincount(cells.item[cells.state == CAME], minlength=self.sampler.design.n_items)
        return tuple(read.tolist())


def first_items(sampler: RepeatSampler, n: int) -> list[int]:
    """What it asks, whatever the scores are: of samplers that do not go by them."""
    book, found = ArrayBook(sampler), list[int]()
    while book.n < n and (asked := book.ask(n - book.n)) is not None:
        book.tell(np.zeros(asked.item.size))
        found += asked.item.tolist()
    return found


def counts_of(played: Played, n_items: int) -> tuple[int, ...]:
    """Readings of each item that have a score."""
    items = [reading.request.cell.item for reading in played.readings if reading.value is not None]
    return tuple(np.bincount(items, minlength=n_items).tolist())
