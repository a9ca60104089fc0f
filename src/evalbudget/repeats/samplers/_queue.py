"""What was planned and is not asked yet, reading by reading."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable

Entry = tuple[int, int]
"""Phase and item of a planned reading."""


class Queue:
    """The round that is being handed out, and what must be asked besides.

    Args:
        is_open: of each item, whether it may be asked; its owner changes it.
    """

    def __init__(self, is_open: list[bool]) -> None:
        self._open = is_open
        self._phase = 0
        self._round: list[int] = []
        self._at = 0  # how many of these were asked, or set aside
        self._again: list[tuple[int, Entry]] = []  # what failed, in the order in which it was asked
        self._n_again: Counter[Entry] = Counter()
        self._ahead: Counter[Entry] = Counter()  # asked before they were planned, or out of turn
        self._parked: dict[int, list[Entry]] = {}  # of closed items: planned, or failed

    def take(self, phase: int, items: list[int]) -> None:
        """Hand this round out; the one before it must be handed out."""
        self._phase, self._round, self._at = phase, items, 0

    def first(self, may_ask: Callable[[int], bool] | None) -> Entry | None:
        """The first that may be asked: what failed, or the next that was planned.

        Args:
            may_ask: of an item, whether it may be asked now; None where every one may.
        """
        for _, entry in self._again:
            if may_ask is None or may_ask(entry[1]):
                return entry
        while self._at < len(self._round):  # those that were asked before their turn, and of closed items
            entry = (self._phase, self._round[self._at])
            if self._ahead[entry]:
                self._ahead[entry] -= 1
            elif not self._open[entry[1]]:
                self._park(entry)
            else:
                break
            self._at += 1
        if may_ask is None:
            return self._next
        skipped: Counter[Entry] = Counter()
        for item in self._round[self._at :]:
            entry = (self._phase, item)
            if skipped[entry] < self._ahead[entry]:
                skipped[entry] += 1
            elif self._open[item] and may_ask(item):
                return entry
        return None

    def asked(self, entry: Entry) -> None:
        """It was handed out, in its turn or not."""
        if self._n_again[entry]:
            self._n_again[entry] -= 1
            self._again.pop(next(i for i, each in enumerate(self._again) if each[1] == entry))
        elif entry == self._next:
            self._at += 1
        else:
            self._ahead[entry] += 1

    def failed(self, entry: Entry, row: int) -> None:
        """It came back without a score.

        Args:
            entry: what it was asked as.
            row: when it was asked; what was asked first is asked again first.
        """
        if self._ahead[entry]:  # another was asked in its place, or will be in its turn
            self._ahead[entry] -= 1
        elif self._open[entry[1]]:
            self._ask_again(entry, row)
        else:
            self._park(entry)

    def closed(self, item: int) -> None:
        """Keep what is planned of the item until it opens again."""
        for _, entry in self._again:
            if entry[1] == item:
                self._park(entry)
                self._n_again[entry] -= 1
        self._again = [each for each in self._again if each[1][1] != item]

    def opened(self, item: int, row: int) -> None:
        """Ask what was kept of the item, as if it had been asked at this row."""
        for entry in self._parked.pop(item, []):
            self._ask_again(entry, row)

    @property
    def _next(self) -> Entry | None:
        return (self._phase, self._round[self._at]) if self._at < len(self._round) else None

    def _ask_again(self, entry: Entry, row: int) -> None:
        insort(self._again, (row, entry))
        self._n_again[entry] += 1

    def _park(self, entry: Entry) -> None:
        self._parked.setdefault(entry[1], []).append(entry)
