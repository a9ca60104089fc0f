"""When a run may end: how well each item is known."""

from __future__ import annotations

import numpy as np

from evalbudget.cells import Cells
from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._bounds import BoolArray, Scale


class Goal:
    """Which items are known well enough, whatever the order in which readings come back.

    Args:
        half_width: to be reached by each item's interval.
        bounds: smallest and largest possible score.
        n_items: of the benchmark.
    """

    def __init__(self, half_width: float, bounds: tuple[float, float], n_items: int) -> None:
        self.half_width = half_width
        self._bounds, self._n_items = Scale(*bounds), n_items

    def known(self, cells: Cells, phase: int) -> BoolArray:
        """Which items are, by readings of this phase and those before it; shape (n_items,)."""
        found = np.zeros(self._n_items, np.bool_)
        rows = np.flatnonzero((cells.phase <= phase) & np.isfinite(cells.value))
        rows = rows[np.lexsort((cells.epoch[rows], cells.item[rows]))]
        item, n = np.unique(cells.item[rows], return_counts=True)
        if item.size:
            bounds = self._bounds.low, self._bounds.high
            width = betting_intervals(cells.value[rows], n.tolist(), bounds=bounds).width
            found[item] = width <= 2.0 * self.half_width
        return found

    @property
    def reason(self) -> str:
        """What to say when it is reached."""
        return f"every item that can be scored is known to ± {self.half_width:g}"
