"""When a run may end: how well each item is known, and how many readings that will take."""

from __future__ import annotations

import numpy as np

from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._bounds import Scale

_ERRORS = 2.87
"""Half-width of a betting interval in standard errors: .408, .201, .091 and .041 wide after 50, 200, 1000 and
5000 readings of Bernoulli(.5)."""
_FEW = 8  # readings from which on an item's own width tells as much of the rest as its variance does
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
        self._seen: list[tuple[int, float] | None] = [
            None
        ] * n_items  # readings and width when last looked at
        self._look_at = [0] * n_items  # readings from which on to look again
        self._changed: set[int] = set()
        self._first = 0  # items before it are known, or closed

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
            self._seen[item] = n, width
            self._look_at[item] = n + 1 + n // _SELDOM
            if width <= 2.0 * self.half_width:
                self.known[item], self._values[item] = True, {}
                known.append(item)
        return known

    def expected(self, item: int, n: int, sum_of_squares: float) -> float:
        r"""Readings of the item until it is known, as it looks now: wrong, it costs precision and no more.

        .. math:: \frac{8}{n + 8} \Bigl(\frac{2.87}{W}\Bigr)^2 s^2
                  + \frac{n}{n + 8} m \Bigl(\frac{U_m}{2 W}\Bigr)^2, \quad
                  s^2 = \frac{SS + R^2 / 4}{n}

        with W the half-width to reach, R the range of the scores and U_m the interval's width when it was
        last looked at, after m readings: a width shrinks like 1 / sqrt(m).

        Args:
            item: that is asked.
            n: its readings that may be looked at.
            sum_of_squares: SS, of their deviations from their mean.
        """
        range_of_scores = self._bounds.high - self._bounds.low
        variance = (sum_of_squares + range_of_scores**2 / 4.0) / max(n, 1)
        expected = variance * (_ERRORS / self.half_width) ** 2
        looked = self._seen[item]
        if looked is None or looked[1] >= range_of_scores:
            return expected
        by_width = looked[0] * (looked[1] / (2.0 * self.half_width)) ** 2
        return (_FEW * expected + n * by_width) / (_FEW + n)

    def is_reached(self, is_open: list[bool]) -> bool:
        """Whether every open item is known."""
        while self._first < len(is_open) and (self.known[self._first] or not is_open[self._first]):
            self._first += 1
        return self._first == len(is_open)
