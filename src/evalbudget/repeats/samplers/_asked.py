"""What was asked of the items of one model, and what came back: columns that grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalbudget.cells import CAME, TAKEN, Cells
from evalbudget.design import Cell
from evalbudget.repeats._rounds import Readings
from evalbudget.statistics._bounds import BoolArray

_COLUMNS: dict[str, tuple[type, Any]] = {
    "item": (np.int64, 0),
    "epoch": (np.int64, 0),
    "rater": (np.int64, 0),
    "phase": (np.int64, 0),
    "value": (np.float64, np.nan),
    "cost": (np.float64, 0.0),
    "under_way": (np.bool_, True),
    "is_learned": (np.bool_, False),
}


class Asked:
    """Every reading that was handed out, in order."""

    def __init__(self) -> None:
        self._n = 0
        self._of: dict[str, Any] = {name: np.full(64, fill, kind) for name, (kind, fill) in _COLUMNS.items()}
        self._row: dict[Cell, int] = {}  # of those under way

    def __len__(self) -> int:
        return self._n

    def is_under_way(self, cell: Cell) -> bool:
        """Whether it was handed out and did not come back."""
        return cell in self._row

    def add(self, cell: Cell, phase: int) -> None:
        """A cell was handed out."""
        if self._n == self._of["item"].size:
            for name, (kind, fill) in _COLUMNS.items():
                self._of[name] = np.concatenate([self._of[name], np.full(self._n, fill, kind)])
        row = self._row[cell] = self._n
        self._of["item"][row], self._of["epoch"][row] = cell.item, cell.epoch
        self._of["rater"][row], self._of["phase"][row] = cell.rater, phase
        self._n += 1

    def paid(self, cell: Cell, cost: float) -> None:
        """What a cell cost; said before it came."""
        self._of["cost"][self._row[cell]] = cost

    def came(self, cell: Cell, value: float | None) -> int:
        """A cell came back, with a score or without; its phase."""
        row = self._row.pop(cell)
        self._of["under_way"][row] = False
        if value is not None:
            self._of["value"][row] = value
        return int(self._of["phase"][row])

    def learned_until(self, phase: int) -> list[tuple[int, int, float]]:
        """Item, epoch and score of readings of this phase and earlier ones; each is given once."""
        value = self._column("value")
        fresh = (self._column("phase") <= phase) & np.isfinite(value) & ~self._column("is_learned")
        self._of["is_learned"][: self._n][fresh] = True
        item, epoch = self._column("item")[fresh].tolist(), self._column("epoch")[fresh].tolist()
        return list(zip(item, epoch, value[fresh].tolist(), strict=True))

    def readings(
        self, is_open: list[bool], is_known: list[bool] | None, left: int | None, *, with_costs: bool
    ) -> Readings:
        """What a plan may look at, as it is now."""
        known: BoolArray = (
            np.zeros(len(is_open), np.bool_) if is_known is None else np.array(is_known, np.bool_)
        )
        return Readings(
            **{name: self._column(name) for name in ("item", "rater", "phase", "value", "under_way")},
            cost=self._column("cost") if with_costs else None,
            is_open=np.array(is_open, np.bool_),
            is_known=known,
            left=left,
        )

    def _column(self, name: str) -> Any:
        return self._of[name][: self._n]


def table_of(cells: Cells, n_items: int, left: int | None, *, with_costs: bool) -> Readings:
    """Every reading that was handed out, also those that failed, as plans look at them.

    Args:
        cells: of a book.
        n_items: of the design.
        left: how many more readings are paid for.
        with_costs: whether costs are weighed.
    """
    handed = np.flatnonzero((cells.state == TAKEN) | (cells.state == CAME))
    failed = np.repeat(np.arange(cells.item.size), cells.failures)
    row = np.concatenate([handed, failed])
    returned = cells.returned
    each = np.divide(cells.cost, returned, out=np.zeros(cells.cost.size), where=returned > 0)
    under_way = np.concatenate([cells.under_way[handed], np.zeros(failed.size, np.bool_)])
    is_open = np.ones(n_items, np.bool_)
    is_open[[key.item for key in cells.given_up]] = False
    return Readings(
        item=cells.item[row],
        rater=cells.rater[row],
        phase=cells.phase[row],
        value=np.concatenate([cells.value[handed], np.full(failed.size, np.nan)]),
        cost=np.where(under_way, 0.0, each[row]) if with_costs else None,
        under_way=under_way,
        is_open=is_open,
        is_known=np.zeros(n_items, np.bool_),
        left=left,
    )
