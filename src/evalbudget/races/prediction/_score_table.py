"""Scores of models x items that factors are trained on, a few rows or columns at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics._bounds import FloatArray, IntArray

BLOCK = 1 << 22
"""Scores that are held at a time, 32 MiB; a table that is no larger is held whole."""

Blocks = Iterator[tuple[int, FloatArray]]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Some models of a table.

    Attributes:
        source: any floats, nan where missing, shape (all models, n_items).
        models: rows of ``source``, shape (n_models,).
    """

    source: NDArray[np.floating[Any]]
    models: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Models and items."""
        return self.models.size, self.source.shape[1]

    def take(self, models: IntArray) -> ScoreTable:
        """Some of these models, by their numbers here; nothing is copied."""
        return replace(self, models=self.models[models])

    def read(self, models: IntArray, items: IntArray | None = None) -> FloatArray:
        """Scores of some models, on all or some items, shape (models, items)."""
        rows = self.models[models]
        return np.asarray(self.source[rows if items is None else np.ix_(rows, items)], dtype=np.float64)

    def by_models(self) -> Blocks:
        """The number of the first model of each block, and the scores, shape (models, n_items)."""
        if self._fits:
            yield 0, self._whole
            return
        step = max(1, BLOCK // self.shape[1])
        for first in range(0, self.shape[0], step):
            yield first, np.asarray(self.source[self.models[first : first + step]], dtype=np.float64)

    def by_items(self) -> Blocks:
        """The number of the first item of each block, and the scores, shape (items, n_models)."""
        if self._fits:
            yield 0, self._transposed
            return
        step = max(1, BLOCK // self.shape[0])
        for first in range(0, self.shape[1], step):
            part = self.source[:, first : first + step][self.models]
            yield first, np.ascontiguousarray(part.T, dtype=np.float64)

    @property
    def _fits(self) -> bool:
        return math.prod(self.shape) <= BLOCK

    @cached_property
    def _whole(self) -> FloatArray:
        return np.asarray(self.source[self.models], dtype=np.float64)

    @cached_property
    def _transposed(self) -> FloatArray:
        return np.ascontiguousarray(self._whole.T)


def table_of(source: NDArray[np.floating[Any]]) -> ScoreTable:
    """All models of a table."""
    return ScoreTable(source, np.arange(source.shape[0]))
