"""Two models on the same items: what a paired difference rests on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.statistics._bounds import FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Both:
    """Two models on the same items.

    Attributes:
        means: item means, shape (2, items); nan where a model has no score.
        lowest: the same with every missing score the lowest that it could be; nan where none is missing.
        highest: likewise the highest.
        errors: see :attr:`Study.judge_errors`, shapes (2,).
        missing: answers of each.
    """

    means: FloatArray
    lowest: FloatArray
    highest: FloatArray
    errors: tuple[FloatArray, FloatArray]
    missing: tuple[int, int]

    @property
    def is_comparable(self) -> bool:
        """Whether both have a score on some item."""
        return not bool(np.isnan(self.means).any(axis=0).all())

    @property
    def swapped(self) -> Both:
        """The second and the first."""
        added, degrees = self.errors
        return Both(
            *(self.means[::-1], self.lowest[::-1], self.highest[::-1]),
            (added[::-1], degrees[::-1]),
            self.missing[::-1],
        )
