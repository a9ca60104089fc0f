"""Arms ordered by urgency; one decision costs O(log arms)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

Entry = tuple[float, int, int, int, int]  # (-urgency, count, tie rank, arm, version)


class UrgencyHeap:
    """The most urgent arm, under changing urgencies; among equals the one with fewest readings, then by rank.

    A changed urgency is pushed anew and its old entry recognised as stale by its version.

    Args:
        rank: last tie-break per arm, shape (n_arms,), all different.
    """

    def __init__(self, rank: Sequence[int]) -> None:
        self._rank = rank
        self._version = [0] * len(rank)
        self._heap: list[Entry] = []

    def fill(self, arms: Iterable[tuple[int, float, int]]) -> None:
        """Start over with these (arm, urgency, count) only."""
        version = self._version
        for entry in self._heap:
            version[entry[3]] += 1
        self._heap = [self._entry(arm, urgency, count) for arm, urgency, count in arms]
        heapq.heapify(self._heap)

    def update(self, arm: int, urgency: float, count: int) -> None:
        """Insert the arm, or change its urgency."""
        entry = self._entry(arm, urgency, count)
        if self._heap and self._heap[0][3] == arm:
            heapq.heapreplace(self._heap, entry)
        else:
            heapq.heappush(self._heap, entry)

    def remove(self, arm: int) -> None:
        """Take the arm out, if it is in."""
        self._version[arm] += 1

    def peek(self, eligible: Callable[[int], bool] | None = None) -> int | None:
        """The most urgent (eligible) arm; None if there is none."""
        heap, version = self._heap, self._version
        while heap and version[heap[0][3]] != heap[0][4]:
            heapq.heappop(heap)
        if eligible is None:
            return heap[0][3] if heap else None
        aside: list[Entry] = []
        found: int | None = None
        while heap:
            entry = heap[0]
            if version[entry[3]] == entry[4]:
                if eligible(entry[3]):
                    found = entry[3]
                    break
                aside.append(entry)
            heapq.heappop(heap)
        for entry in aside:
            heapq.heappush(heap, entry)
        return found

    def _entry(self, arm: int, urgency: float, count: int) -> Entry:
        version = self._version[arm] + 1
        self._version[arm] = version
        return (-urgency, count, self._rank[arm], arm, version)
