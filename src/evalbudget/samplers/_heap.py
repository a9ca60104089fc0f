"""Arms ordered by urgency; one decision costs O(log arms)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

Entry = tuple[float, int, int, int]  # (-urgency, tie rank, arm, version)


class UrgencyHeap:
    """The most urgent arm, under changing urgencies; ties go to the lower rank.

    A changed urgency is pushed anew and its old entry recognised as stale by its version.

    Args:
        rank: tie-break per arm, shape (n_arms,), all different.
    """

    def __init__(self, rank: Sequence[int]) -> None:
        self._rank = rank
        self._version = [0] * len(rank)
        self._heap: list[Entry] = []

    def fill(self, arms: Sequence[int], urgency: Callable[[int], float]) -> None:
        """Start over with these arms only."""
        rank, version = self._rank, self._version
        for arm in arms:
            version[arm] += 1
        self._heap = [(-urgency(arm), rank[arm], arm, version[arm]) for arm in arms]
        heapq.heapify(self._heap)

    def update(self, arm: int, urgency: float) -> None:
        """Insert the arm, or change its urgency."""
        version = self._version[arm] + 1
        self._version[arm] = version
        entry = (-urgency, self._rank[arm], arm, version)
        if self._heap and self._heap[0][2] == arm:
            heapq.heapreplace(self._heap, entry)
        else:
            heapq.heappush(self._heap, entry)

    def remove(self, arm: int) -> None:
        """Take the arm out, if it is in."""
        self._version[arm] += 1

    def peek(self, eligible: Callable[[int], bool] | None = None) -> int | None:
        """The most urgent (eligible) arm; None if there is none."""
        heap, version = self._heap, self._version
        while heap and version[heap[0][2]] != heap[0][3]:
            heapq.heappop(heap)
        if eligible is None:
            return heap[0][2] if heap else None
        aside: list[Entry] = []
        found: int | None = None
        while heap:
            entry = heap[0]
            if version[entry[2]] == entry[3]:
                if eligible(entry[2]):
                    found = entry[2]
                    break
                aside.append(entry)
            heapq.heappop(heap)
        for entry in aside:
            heapq.heappush(heap, entry)
        return found
