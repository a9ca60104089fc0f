"""JudgeScores: one model's scores by a panel, in an order that does not depend on when they arrived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray


class Source(StrEnum):
    """What makes scores differ."""

    ITEM = "item"
    """alpha: some items are harder."""
    GENERATION = "generation"
    """beta: the model answers differently each time."""
    INTERACTION = "item x judge"
    """Judges differ more on some items than on others."""
    RESIDUAL = "residual"
    """epsilon: the judge's own noise, and everything else."""
    JUDGE = "judge"
    """gamma: some judges are lenient; the mean of gamma_l squared over this panel."""


@dataclass(frozen=True, eq=False)
class JudgeScores:
    """Scores X_ijl of item i, generation j (epoch), judge l, sorted. Build it with :meth:`of`.

    Attributes:
        judges: names of the panel, judges that scored nothing included.
        n_items: how many items the benchmark has, those never scored included.
        item: item of each score, shape (n_scores,), ascending.
        epoch: generation, same shape, ascending within the item.
        judge: index into ``judges``, same shape, ascending within the generation.
        value: the score, same shape; failed ones are absent.
        failed: calls that gave no score, per judge, shape (K,).
        cost: of all calls, the failed ones included, in units of the budget.
        phase: ``Request.phase`` of each score, shape (n_scores,), nan where unknown; None: the scores of an
            item weigh the same.
        phase_sizes: readings per item in each phase of the run that these are a part of; empty: of these.
    """

    judges: tuple[str, ...]
    n_items: int
    item: IntArray
    epoch: IntArray
    judge: IntArray
    value: FloatArray
    failed: IntArray
    cost: float
    phase: FloatArray | None = None
    phase_sizes: Sequence[float] = ()

    @classmethod
    def of(
        cls,
        item: ArrayLike,
        epoch: ArrayLike,
        judge: ArrayLike,
        value: ArrayLike,
        *,
        judges: Sequence[str],
        n_items: int | None = None,
        cost: float | None = None,
        phase: ArrayLike | None = None,
        phase_sizes: Sequence[float] = (),
    ) -> JudgeScores:
        """Sort scores that came in any order.

        Args:
            item: index of the item of each call, shape (n_calls,).
            epoch: generation, from 0, same shape.
            judge: index into ``judges``, same shape.
            value: the score, same shape; NaN where the call failed or its reply could not be parsed.
            judges: names of the panel, unique.
            n_items: size of the benchmark; None: the largest index seen, plus one.
            cost: of everything bought; None: one unit per call, failures included.
            phase: ``Request.phase`` of each call, same shape; nan where unknown.
            phase_sizes: readings per item in each phase of the run that these are a part of.

        Raises:
            InvalidInputError: shapes differ, an index is out of range, a score is infinite, a judge is listed
                twice, or a judge scores the same generation twice.
        """
        names = tuple(judges)
        if not names or len(set(names)) != len(names):
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            raise InvalidInputError(
                f"the panel lists a judge twice: {', '.join(map(repr, twice))}; list each judge once"
                if twice
                else "the panel has no judges; give at least one name"
            )
        i, j, k = (np.asarray(index, dtype=np.int64) for index in (item, epoch, judge))
        v = np.asarray(value, dtype=np.float64)
        if i.ndim != 1 or not i.shape == j.shape == k.shape == v.shape:
            raise InvalidInputError(
                f"item, epoch, judge and value have shapes {i.shape}, {j.shape}, {k.shape}, {v.shape}; "
                "give one entry each per call"
            )
        size = int(i.max(initial=-1)) + 1 if n_items is None else n_items
        if i.size and (i.min() < 0 or i.max() >= size or j.min() < 0 or k.min() < 0 or k.max() >= len(names)):
            raise InvalidInputError(
                f"items run from {i.min()} to {i.max()}, epochs from {j.min()}, judges from {k.min()} to "
                f"{k.max()}; items must lie in 0..{size - 1}, judges in 0..{len(names) - 1}, epochs start "
                "at 0"
            )
        if np.isinf(v).any():
            at = int(np.flatnonzero(np.isinf(v))[0])
            raise InvalidInputError(
                f"judge {names[k[at]]!r} gave item {i[at]}, epoch {j[at]} the score {v[at]}; "
                "write NaN for a call that failed"
            )
        paid = float(v.size) if cost is None else float(cost)
        scored = ~np.isnan(v)
        failed = np.bincount(k[~scored], minlength=len(names))
        order = np.flatnonzero(scored)[np.lexsort((k[scored], j[scored], i[scored]))]
        i, j, k, v = i[order], j[order], k[order], v[order]
        p = None if phase is None else np.asarray(phase, dtype=np.float64)[order]
        same = np.flatnonzero((np.diff(i) == 0) & (np.diff(j) == 0) & (np.diff(k) == 0))
        if same.size:
            at = int(same[0])
            raise InvalidInputError(
                f"judge {names[k[at]]!r} scores item {i[at]}, epoch {j[at]} twice; average repeated "
                "judgements of one generation, or number them as epochs of their own"
            )
        return cls(names, size, i, j, k, v, failed, paid, p, phase_sizes)

    @classmethod
    def from_table(cls, table: ArrayLike, *, judges: Sequence[str]) -> JudgeScores:
        """From an array (items, judges, epochs), NaN where there is no score (counted as not asked).

        Raises:
            InvalidInputError: another shape, or nothing but NaN.
        """
        array = np.asarray(table, dtype=np.float64)
        if array.ndim != 3 or array.shape[1] != len(judges):
            raise InvalidInputError(
                f"the table has shape {array.shape}; it must be (items, {len(judges)} judges, epochs)"
            )
        item, judge, epoch = np.nonzero(~np.isnan(array))
        value = array[item, judge, epoch]
        return cls.of(item, epoch, judge, value, judges=judges, n_items=array.shape[0])

    # counts

    @property
    def n_judges(self) -> int:
        """Size of the panel."""
        return len(self.judges)

    @cached_property
    def counts(self) -> IntArray:
        """Scores per judge, shape (K,)."""
        return np.bincount(self.judge, minlength=self.n_judges)

    @cached_property
    def per_item(self) -> IntArray:
        """Scores per item, shape (n_items,)."""
        return np.bincount(self.item, minlength=self.n_items)

    @cached_property
    def silent(self) -> tuple[str, ...]:
        """Judges without a single score."""
        return tuple(name for name, count in zip(self.judges, self.counts, strict=True) if count == 0)

    @cached_property
    def generation(self) -> IntArray:
        """Number of each score's (item, epoch) pair, shape (n_scores,), ascending."""
        if not self.item.size:
            return self.item
        new = (np.diff(self.item) != 0) | (np.diff(self.epoch) != 0)
        return np.concatenate([[0], np.cumsum(new)])

    @cached_property
    def is_crossed(self) -> bool:
        """Whether generations are scored by several judges each, but for what failed."""
        sizes = np.bincount(self.generation)
        return bool(sizes.size) and int(sizes[sizes > 1].sum()) * 2 >= self.value.size

    @cached_property
    def is_once(self) -> bool:
        """Whether no item has more than one score (m = 1, rotated)."""
        return bool((self.per_item <= 1).all())

    # parts and other forms

    def where(self, keep: BoolArray | IntArray) -> JudgeScores:
        """The scores marked True, or of these numbers, of the same benchmark and panel at the same cost."""
        return replace(
            self,
            item=self.item[keep],
            epoch=self.epoch[keep],
            judge=self.judge[keep],
            value=self.value[keep],
            phase=None if self.phase is None else self.phase[keep],
        )

    @property
    def knows_phases(self) -> bool:
        """Whether it is known of each score in which phase its answer was bought."""
        return self.phase is not None and not np.isnan(self.phase).any()

    def scoring_panel(self) -> JudgeScores:
        """The same scores with a panel of those judges only that gave any."""
        active = self.counts > 0
        if active.all():
            return self
        names = tuple(name for name, keep in zip(self.judges, active, strict=True) if keep)
        renumbered = np.cumsum(active) - 1
        return replace(self, judges=names, judge=renumbered[self.judge], failed=self.failed[active])

    def table(self) -> FloatArray:
        """Shape (items with a score, judges, generations), NaN elsewhere; generations renumbered."""
        items, row = np.unique(self.item, return_inverse=True)
        epochs, column = np.unique(self.epoch, return_inverse=True)
        found: FloatArray = np.full((items.size, self.n_judges, epochs.size), np.nan)
        found[row, self.judge, column] = self.value
        return found

    def resample(self, items: IntArray) -> JudgeScores:
        """The benchmark made of these items, repetitions allowed and counted as items of their own."""
        starts = np.cumsum(self.per_item) - self.per_item
        sizes = self.per_item[items]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        at = np.repeat(starts[items], sizes) + within
        return replace(self.where(at), n_items=items.size, item=np.repeat(np.arange(items.size), sizes))
