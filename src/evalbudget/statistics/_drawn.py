"""Draws of a finite pool, in draw order: what every kernel needs to know of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evalbudget.statistics._bounds import FloatArray


class Drawn:
    """What follows from a pool's size and the scores drawn from it, nan where a draw failed.

    Attributes:
        pool: number of items to draw from.
        value: score of each draw, in [0, 1], nan where it failed, shape (t,).
    """

    pool: int
    value: FloatArray

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to draw."""
        return self.value.size == self.pool

    @cached_property
    def failed(self) -> FloatArray:
        """1 where the draw failed, else 0, shape (t,)."""
        return np.isnan(self.value).astype(np.float64)

    @cached_property
    def score(self) -> FloatArray:
        """Scores with 0 where the draw failed, shape (t,)."""
        return np.nan_to_num(self.value, nan=0.0)
