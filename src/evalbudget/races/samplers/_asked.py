"""What rounds asked of the models of a race, and what came back: columns that grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalbudget.races.samplers._rounds import OPEN
from evalbudget.statistics._bounds import FloatArray, IntArray

_COLUMNS: dict[str, tuple[type, Any]] = {
    "model": (np.int32, 0),
    "item": (np.int32, 0),
    "round": (np.int32, -1),
    "state": (np.int8, OPEN),
    "value": (np.float64, np.nan),
    "cost": (np.float64, 0.0),  # this and the next only where costs are weighed
    "n_paid": (np.int32, 0),
}


class Asked:
    """Every cell that rounds asked for, in their order.

    Args:
        n_models: of the design.
        n_items: of the design.

    Attributes:
        row: where each cell stands, shape (n_models, n_items); -1 where it does not.
    """

    def __init__(self, n_models: int, n_items: int) -> None:
        self.row: IntArray = np.full((n_models, n_items), -1, dtype=np.int32)
        self._n = 0
        self._of: dict[str, Any] = {}
        self.keep("model", "item", "round", "state", "value")

    def keep(self, *names: str) -> None:
        """Have these columns, from the start."""
        self._of |= {name: np.zeros(0, _COLUMNS[name][0]) for name in names}

    def column(self, name: str) -> Any:
        """One of them, shape (k,)."""
        return self._of[name][: self._n]

    def begin(self, model: IntArray, item: IntArray, number: int) -> slice:
        """Append the cells of a round."""
        rows = slice(self._n, self._n + model.size)
        is_full = rows.stop > self._of["model"].size
        for name in self._of if is_full else ():
            kind, empty = _COLUMNS[name]
            more: Any = np.full(max(rows.stop, 64, self._n + self._n // 2) - self._n, empty, kind)
            self._of[name] = np.concatenate([self._of[name][: self._n], more])
        self._of["model"][rows], self._of["item"][rows], self._of["round"][rows] = model, item, number
        self.row[model, item] = np.arange(rows.start, rows.stop)
        self._n = rows.stop
        return rows

    def mark(self, row: Any, state: Any, value: Any = np.nan) -> None:
        """Say what became of cells, with their scores."""
        self._of["state"][row] = state
        self._of["value"][row] = value

    def paid(self, row: IntArray, cost: FloatArray, n_finished: int) -> None:
        """Count what requests cost; rounds that are finished were decided on."""
        counts = (cost > 0.0) & (self._of["round"][row] >= n_finished)
        row, cost = row[counts], cost[counts]
        self._of["n_paid"][row] += 1
        # so that the mean of equal costs is exactly that cost
        self._of["cost"][row] += (cost - self._of["cost"][row]) / self._of["n_paid"][row]
