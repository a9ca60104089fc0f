"""Paired differences of all pairs of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates import JudgeScores, judge_corrected, paired_difference
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import Bounds, FloatArray, IntArray, check_level
from evalbudget.statistics._shrinkage import t_quantile

if TYPE_CHECKING:
    from evalbudget.recorded._how_bought import HowBought


@dataclass(frozen=True, slots=True)
class Pairs:
    """Differences of model a (row) and model b (column), each shape (models, models).

    Attributes:
        value: a's mean less b's, over what both were scored on; nan if that is nothing.
        standard_error: nan or 0 where it leaves nothing to estimate it from.
        degrees: of freedom.
        n_items: that both were scored on.
    """

    value: FloatArray
    standard_error: FloatArray
    degrees: FloatArray
    n_items: IntArray

    @property
    def count(self) -> int:
        """Of pairs, each counted once."""
        n = len(self.value)
        return n * (n - 1) // 2

    def confidence_intervals(self, level: float, comparisons: int) -> Bounds:
        """Student's t intervals that hold for this many comparisons at once (Bonferroni).

        nan where the standard error is 0 (the models differ by the same everywhere, or not at all) or nan.
        """
        alpha = (1.0 - check_level(level)) / max(comparisons, 1)
        defined = self.standard_error > 0.0
        half = np.where(
            defined, t_quantile(1.0 - alpha, np.maximum(self.degrees, 1.0)) * self.standard_error, np.nan
        )
        return Bounds(self.value - half, self.value + half)

    def ranks(self, level: float) -> tuple[tuple[int, int], ...]:
        """Best and worst rank of every model that the differences leave open, for all models at once.

        Model a ranks behind every model whose difference to a is certainly positive: with the intervals of
        all pairs holding at once, so do all ranks.

        References:
            Al Mohamad, van Zwet, Solari, Goeman (2022), Simultaneous confidence intervals for ranks.
        """
        bounds = self.confidence_intervals(level, self.count)
        n = len(self.value)
        better, worse = (bounds.high < 0.0).sum(axis=1), (bounds.low > 0.0).sum(axis=1)
        return tuple((1 + int(b), n - int(w)) for b, w in zip(better, worse, strict=True))


def pairs_by_item(means: FloatArray) -> Pairs:
    """Of one rater: the mean of the items' differences, items sampled.

    Args:
        means: item means, shape (models, items); NaN where missing.
    """
    m = len(means)
    value, error, degrees = (np.full((m, m), np.nan) for _ in range(3))
    count = np.zeros((m, m), dtype=np.int64)
    for a in range(m):
        difference = means[a] - means
        shared = ~np.isnan(difference)
        n = np.count_nonzero(shared, axis=1)
        difference = np.where(shared, difference, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            value[a] = difference.sum(axis=1) / n
            squares = (np.where(shared, difference - value[a][:, None], 0.0) ** 2).sum(axis=1)
            error[a] = np.sqrt(squares / (n - 1) / n)
        same = _ptp(difference, shared) == 0.0
        error[a, same & (n > 1)] = 0.0
        degrees[a], count[a] = n - 1, n
    return Pairs(value, error, degrees, count)


def pairs_of_panel(scores: Sequence[JudgeScores], purchases: Sequence[HowBought]) -> Pairs:
    """Of a panel: paired by item, epoch and judge, every judge weighing the same.

    Epochs that may not count for one of the two means do not count for their difference.
    """
    m = len(scores)
    value, error, degrees = (np.full((m, m), np.nan) for _ in range(3))
    count = np.zeros((m, m), dtype=np.int64)
    usable = [
        s.where(s.epoch < p.fixed_repeats) if p.allocation is Allocation.ADAPTIVE else s
        for s, p in zip(scores, purchases, strict=True)
    ]
    for a in range(m):
        value[a, a], count[a, a] = 0.0, int(np.count_nonzero(usable[a].per_item))
        for b in range(a + 1, m):
            if Allocation.WEIGHTED in (purchases[a].allocation, purchases[b].allocation):
                _pair_weighted(usable, a, b, (value, error, degrees, count))
                continue
            try:
                found = paired_difference(usable[a], usable[b])
            except InvalidInferenceError:  # nothing matches
                continue
            items = len(scores[a].per_item) - int(found.details["items_missing"])
            for row, column, sign in ((a, b, 1.0), (b, a, -1.0)):
                value[row, column] = sign * found.value
                error[row, column] = found.standard_error
                degrees[row, column] = found.details["degrees"]
                count[row, column] = items
    return Pairs(value, error, degrees, count)


def _pair_weighted(
    scores: Sequence[JudgeScores], a: int, b: int, to: tuple[FloatArray, FloatArray, FloatArray, IntArray]
) -> None:
    """By item: scores weigh what was fixed before each, which pairs of single scores would not respect."""
    means = [judge_corrected(scores[m]).weighted_means for m in (a, b)]
    found = pairs_by_item(np.array(means))
    for table, of_two in zip(
        to, (found.value, found.standard_error, found.degrees, found.n_items), strict=True
    ):
        table[a, b], table[b, a] = of_two[0, 1], of_two[1, 0]


def _ptp(values: FloatArray, shared: NDArray[np.bool_]) -> FloatArray:
    """Largest less smallest of each row's shared values; 0 where there are none."""
    high = np.where(shared, values, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(shared, values, np.inf).min(axis=1, initial=np.inf)
    return np.asarray(np.where(shared.any(axis=1), np.maximum(high - low, 0.0), 0.0))
