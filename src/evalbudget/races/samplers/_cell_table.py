"""A table of models x items that takes memory only where something was written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics._bounds import IntArray

DENSE = 1 << 26
"""Cells up to which a table is a plain array: half a gigabyte of numbers."""

_WIDTH = 64
"""Columns of a block, as many as a step often gives a model."""


class CellTable:
    """Zeros until they are written, in blocks of a model's columns.

    It is indexed like an array, by a model and an item or by arrays of them that fit one another.

    Args:
        n_models: rows.
        n_items: columns.
        dtype: of the entries.
        place: column of each item, shape (n_items,): items that are read together stand side by side. None
            where items are columns.
    """

    def __init__(self, n_models: int, n_items: int, dtype: Any, place: IntArray | None = None) -> None:
        self._place = place
        self._columns = np.arange(n_items) if place is None else place
        self._block = np.zeros((n_models, -(-n_items // _WIDTH)), dtype=np.int32)  # 0: nothing written
        self._cells = np.zeros((1, _WIDTH), dtype=dtype)
        self._used = 1

    def __getitem__(self, at: tuple[Any, Any]) -> Any:
        """Entries of a model and an item; copies."""
        model, column = self._at(at)
        return self._cells[self._block[model, column // _WIDTH], column % _WIDTH]

    def __setitem__(self, at: tuple[Any, Any], values: Any) -> None:
        model, column = self._at(at)
        block = column // _WIDTH
        if np.any(self._block[model, block] == 0):
            self._make(*np.broadcast_arrays(model, block))
        self._cells[self._block[model, block], column % _WIDTH] = values

    def _at(self, at: tuple[Any, Any]) -> tuple[Any, Any]:
        model, item = at
        return model, self._columns[item]

    def _make(self, model: NDArray[Any], block: NDArray[Any]) -> None:
        missing = self._block[model, block] == 0
        new = np.unique(np.column_stack([model[missing], block[missing]]), axis=0)
        needed = self._used + len(new)
        if needed > len(self._cells):
            # in its place: a copy would be there twice for a moment
            self._cells.resize((max(needed, len(self._cells) * 5 // 4), _WIDTH), refcheck=False)
        self._block[new[:, 0], new[:, 1]] = np.arange(self._used, needed)
        self._used = needed


def cell_table(n_models: int, n_items: int, dtype: Any, place: IntArray | None = None) -> Any:
    """A plain array, or blocks where that would be large."""
    if n_models * n_items <= DENSE:
        return np.zeros((n_models, n_items), dtype=dtype)
    return CellTable(n_models, n_items, dtype, place)
