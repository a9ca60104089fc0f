"""What was planned and is not asked yet, reading by reading."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence

Entry = tuple[int, int]
"""Phase and item of a planned reading."""


class Queue:
    """The round that is being handed out, and what must be asked besides.

    What it answers follows from what was asked and what failed; that somebody looked at it changes nothing.

    Args:
        is_open: of each item, whether it may be asked; its owner changes it.
        place: of each item among those whose readings failed, all different.
    """

    def __init__(self, is_open: list[bool], place: Sequence[int]) -> None:
        self._open, self._place = is_open, place
        self._rounds: list[tuple[int, list[int]]] = []  # phase and items
        self._at = 0  # how many of the first one's items had their turn
        self._n_begun = 0  # rounds that were there when something was asked last
        self._ahead: Counter[Entry] = Counter()  # asked before their turn; below 0: to be asked again
        self._again: list[tuple[int, int, int]] = []  # a heap of the latter: phase, place, item
        self._reopened = False

    def take(self, phase: int, items: list[int]) -> None:
        """Hand this round out after those before it."""
        self._rounds.append((phase, items))

    def forget(self) -> None:
        """Drop the rounds that were taken since something was asked."""
        del self._rounds[self._n_begun :]

    def first(self, may_ask: Callable[[int], bool] | None) -> Entry | None:
        """The first that may be asked: what failed, or the next that was planned.

        Args:
            may_ask: of an item, whether it may be asked now; None where every one may.
        """
        failed = self._first_again(may_ask)
        if failed is not None:
            return failed
        skipped: Counter[Entry] = Counter()
        for number, (phase, items) in enumerate(self._rounds):
            for at in range(0 if number else self._at, len(items)):
                entry = (phase, items[at])
                if self._ahead and skipped[entry] < self._ahead[entry]:
                    skipped[entry] += 1
                elif self._open[entry[1]] and (may_ask is None or may_ask(entry[1])):
                    return entry
        return None

    def asked(self, entry: Entry) -> None:
        """It was handed out, in its turn or not."""
        if (not self._ahead or self._ahead[entry] >= 0) and self._next() == entry:
            self._at += 1
        else:
            self._count(entry, 1)
        self._n_begun = len(self._rounds)

    def failed(self, entry: Entry) -> None:
        """It came back without a score: it is asked again, unless another was asked in its place."""
        self._count(entry, -1)

    def opened(self) -> None:
        """An item is open again: what was planned of it, or failed, may be asked."""
        self._reopened = True

    def _next(self) -> Entry | None:
        """What is planned next; what was asked ahead, or is of closed items, had its turn."""
        while self._rounds:
            phase, items = self._rounds[0]
            for at in range(self._at, len(items)):
                entry = (phase, items[at])
                if (not self._ahead or self._ahead[entry] <= 0) and self._open[entry[1]]:
                    self._at = at
                    return entry
                self._count(entry, -1)
            del self._rounds[0]
            self._at = 0
        return None

    def _count(self, entry: Entry, more: int) -> None:
        self._ahead[entry] += more
        if self._ahead[entry] < 0:
            heapq.heappush(self._again, (entry[0], self._place[entry[1]], entry[1]))
        elif not self._ahead[entry]:
            del self._ahead[entry]

    def _first_again(self, may_ask: Callable[[int], bool] | None) -> Entry | None:
        if self._reopened:
            short = [entry for entry, ahead in self._ahead.items() if ahead < 0]
            self._again = sorted((phase, self._place[item], item) for phase, item in short)
            self._reopened = False
        while self._again and not self._is_due(self._again[0]):
            heapq.heappop(self._again)
        due = self._again[:1] if may_ask is None else filter(self._is_due, sorted(self._again))
        return next(((phase, item) for phase, _, item in due if may_ask is None or may_ask(item)), None)

    def _is_due(self, failed: tuple[int, int, int]) -> bool:
        phase, _, item = failed
        return self._open[item] and self._ahead[phase, item] < 0
