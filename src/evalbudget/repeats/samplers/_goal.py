"""When a run may end: how well each item is known."""

from __future__ import annotations

import numpy as np

from evalbudget.cells import Cells
from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._bounds import Scale

_SELDOM = 32  # an item is looked at again after one in so many further readings, and at once while it has few


class Goal:
    """Which items are known well enough, whatever the order in which readings come back.

    Args:
        half_width: to be reached by each item's interval.
        bounds: smallest and largest possible score.
        n_items: of the benchmark.

    Attributes:
        known: of each item, whether it is.
    """

    def __init__(self, half_width: float, bounds: tuple[float, float], n_items: int) -> None:
        self.half_width = half_width
        self._bounds = Scale(*bounds)
        self._values: list[dict[int, float]] = [{} for _ in range(n_items)]  # by epoch
        self.known = [False] * n_items
        self._look_at = [0] * n_items  # readings from which on to look again
        self._changed: set[int] = set()
        self._first = 0  # items before it are known, or closed

    def of(self, cells: Cells, phase: int) -> Goal:
        """What is known of items by readings of this phase and those before it."""
        goal = Goal(self.half_width, (self._bounds.low, self._bounds.high), len(self.known))
        rows = np.flatnonzero((cells.phase <= phase) & np.isfinite(cells.value))
        for item, epoch, value in zip(
            cells.item[rows].tolist(), cells.epoch[rows].tolist(), cells.value[rows].tolist(), strict=True
        ):
            goal.learn(item, epoch, value)
        goal.newly_known()
        return goal

    @property
    def reason(self) -> str:
        """What to say when it is reached."""
        return f"every item that can be scored is known to ± {self.half_width:g}"

    def learn(self, item: int, epoch: int, value: float) -> None:
        """Take a reading in."""
        if not self.known[item]:
            self._values[item][epoch] = value
            self._changed.add(item)

    def reopen(self) -> None:
        """An item was closed, or opened again."""
        self._first = 0

    def newly_known(self) -> list[int]:
        """Items that are known since the last call; they stay so."""
        due = [item for item in sorted(self._changed) if len(self._values[item]) >= self._look_at[item]]
        self._changed.difference_update(due)
        if not due:
            return []
        values = [[self._values[i][epoch] for epoch in sorted(self._values[i])] for i in due]
        found = betting_intervals(
            np.concatenate(values),
            [len(each) for each in values],
            bounds=(self._bounds.low, self._bounds.high),
        )
        known = []
        for item, width in zip(due, found.width.tolist(), strict=True):
            n = len(self._values[item])
            self._look_at[item] = n + 1 + n // _SELDOM
            if width <= 2.0 * self.half_width:
                self.known[item], self._values[item] = True, {}
                known.append(item)
        return known

    def is_reached(self, is_open: list[bool]) -> bool:
        """Whether every open item is known."""
        while self._first < len(is_open) and (self.known[self._first] or not is_open[self._first]):
            self._first += 1
        return self._first == len(is_open)
