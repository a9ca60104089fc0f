"""What a run's book says of its calls, in the host's terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from evalbudget.design import Reading
from evalbudget.errors import StoreError
from evalbudget.run import ABANDONED, UNANSWERED
from evalbudget.shown import shown_logger

if TYPE_CHECKING:
    from evalbudget.book import Book, Called, Unread

T = TypeVar("T")

logger = shown_logger(__name__)

_UNREACHED = "no score, of reasons that the store did not tell"


class Account:
    """Every call of all processes, as of when it is first looked up.

    Where the store is away: the scores that this process knows of, and how many calls brought none.

    Args:
        book: of the run, which was told of all that came back.
        elsewhere: calls that brought nothing and are paid on a bill, by the reason.
        in_scores: calls are what the budget counts, so that what cost nothing was no call.
    """

    def __init__(self, book: Book, elsewhere: Mapping[str, int], *, in_scores: bool) -> None:
        self._book, self._elsewhere, self._in_scores = book, Counter(elsewhere), in_scores
        self._is_away = False

    def look(self) -> None:
        """Have all of it be as it is now."""
        _ = self.readings, self.failures

    @cached_property
    def calls(self) -> Sequence[Called]:
        """That came back or were lost, in the order of asking."""
        return self._told(self._book.calls, self._book.known_calls)

    @cached_property
    def readings(self) -> Sequence[Reading]:
        """Of all that came back, with a score or without; a cell's epoch is the host's, counted from 0."""
        return [_in_host_terms(called) for called in self.calls if not called.is_lost]

    @cached_property
    def failures(self) -> dict[str, int]:
        """How often each reason occurred to pay and read nothing, the most frequent first."""
        unread, beside = self._told(lambda: (self._book.unread(), self._book.beside()), self._unreached)
        found: Counter[str] = Counter()
        for each in unread:
            if each.was_paid or (not self._in_scores and each.error != ABANDONED):
                found[UNANSWERED if each.is_lost else each.error or "no score"] += each.calls
        for reason, calls in (Counter(beside) + self._elsewhere).items():
            if times := math.ceil(calls - 1e-9):
                found[reason] += times
        return dict(found.most_common())

    @cached_property
    def processes(self) -> tuple[str, ...]:
        """That made calls, in the order in which they came, as far as they are known."""
        return tuple(dict.fromkeys(called.worker for called in self.calls if called.worker))

    def _unreached(self) -> tuple[Sequence[Unread], Mapping[str, float]]:
        cells = self._book.cells()
        return (), {_UNREACHED: float((cells.failures + cells.lost).sum())}

    def _told(self, by_store: Callable[[], T], as_known: Callable[[], T]) -> T:
        if not self._is_away:
            try:
                return by_store()
            except StoreError as ex:
                self._is_away = True
                logger.warning(
                    "%s. This run is told of as it was last known, without reasons of failures", ex
                )
        return as_known()


def _in_host_terms(called: Called) -> Reading:
    """Each call of an item has an epoch of its own."""
    request = called.reading.request
    cell = request.cell._replace(epoch=called.attempt)
    return replace(called.reading, request=replace(request, cell=cell))
