"""The scores that are examined, and what several checks want to know of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.report._study import Study, known_range
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray, IntArray

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Case:
    """Scores of one metric, or of one panel of judges.

    Attributes:
        recorded: the scores.
        level: of all intervals.
        seed: of everything that is drawn.
        elsewhere: models that are not among these since other raters scored them, with who did.
    """

    recorded: RecordedScores
    level: float = 0.95
    seed: int = 0
    elsewhere: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def study(self) -> Study:
        """The estimates that reports have of them."""
        return Study(self.recorded, level=self.level, bounds=known_range(self.recorded))

    @property
    def is_panel(self) -> bool:
        """Whether there are several judges."""
        return len(self.recorded.raters) > 1

    @property
    def is_graded(self) -> bool:
        """Whether scores take more than two values, as those of judges mostly do."""
        values = self.recorded.scores
        known = values[np.isfinite(values)]
        return bool(((known != known.min()) & (known != known.max())).any())

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest score that occurs; 0 and 1 where all lie between."""
        low, high = float(np.nanmin(self.recorded.scores)), float(np.nanmax(self.recorded.scores))
        return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, max(high, low + 1.0))

    @cached_property
    def is_plain(self) -> bool:
        """Whether no score was bought because of another."""
        bought = self.recorded.purchases
        return bought is None or all(each.allocation is Allocation.FIXED for each in bought)

    @cached_property
    def read(self) -> IntArray:
        """Items with a score, of each model, shape (models,)."""
        return np.asarray((self.recorded.counts.sum(axis=2) > 0).sum(axis=1), dtype=np.int64)

    @cached_property
    def item_means(self) -> FloatArray:
        """Shape (models, items); nan where an item has no score."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of items without any
            return np.asarray(np.nanmean(self.recorded.true_scores, axis=2))

    @cached_property
    def within(self) -> float:
        """Variance of one score of a cell about the cell's mean; nan where no cell has two."""
        n = self.recorded.counts
        several = n > 1
        if not several.any():
            return float("nan")
        squares = (self.recorded.true_variances * n)[several].sum()
        return float(squares / (n[several] - 1).sum())

    @cached_property
    def identical(self) -> tuple[int, int]:
        """Cells whose repeats are all the same, and cells with repeats."""
        several = self.recorded.counts > 1
        same = self.recorded.true_variances[several] <= _ROUNDING
        return int(same.sum()), int(several.sum())
