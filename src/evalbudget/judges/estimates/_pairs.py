r"""Variance components from products of pairs of scores: for designs without a table.

Two scores of one item, judges taken out, share

================  ===============  ==========================================
generation        judge            covariance
================  ===============  ==========================================
another           another          item
the same          another          item + generation
another           the same         item + item x judge
================  ===============  ==========================================

and a score with itself all four sources. Which kinds of pairs a design has decides what it tells apart. The
residuals of the fitted judges are products of more than one pair; what fitting took from them is known, and
put back (moments of quadratic forms, Henderson's third method):

.. math:: E[e' Q_k e] = \sum_c \sigma_c^2 \, \mathrm{tr}(Q_k M V_c M')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evalbudget.judges.estimates._mixed import DENSE, MixedFit, counted
from evalbudget.judges.estimates._scores import JudgeScores
from evalbudget.judges.estimates._sources import Source
from evalbudget.statistics._bounds import FloatArray, IntArray

_RARE = 0.1  # of the items with the commonest kind of pair: kinds seen in fewer are not used

Partition = tuple[tuple[Source, ...], ...]
_ITEM, _GENERATION, _INTERACTION, _RESIDUAL = (
    Source.ITEM,
    Source.GENERATION,
    Source.INTERACTION,
    Source.RESIDUAL,
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Kinds of pairs that a design has in enough items.

    Attributes:
        other: another generation by another judge.
        judge: another generation by the same judge.
        generation: the same generation by another judge.
        one_generation: all scores of an item are of one generation, whatever their epochs.
    """

    other: bool
    judge: bool
    generation: bool
    one_generation: bool

    @classmethod
    def of(cls, panel: JudgeScores, *, one_generation: bool = False) -> Pairs:
        """Count the items that have each."""
        n = panel.n_items
        ordered = panel.per_item * (panel.per_item - 1)
        same_judge = _ordered(panel.item, panel.item * panel.n_judges + panel.judge, n)
        same_generation = _ordered(panel.item, panel.generation, n)
        if one_generation:
            same_generation = ordered - same_judge
        other = ordered - same_judge - same_generation
        seen = [int(np.count_nonzero(kind)) for kind in (other, same_judge, same_generation)]
        enough = max(2.0, _RARE * max(seen))
        has_other, has_judge, has_generation = (count >= enough for count in seen)
        if has_judge and has_generation and not has_other and not one_generation:
            # two sums that share the item: only one can be told
            has_judge, has_generation = seen[1] >= seen[2], seen[1] < seen[2]
        return cls(has_other, has_judge, has_generation, one_generation)

    @property
    def partition(self) -> Partition:
        """What is told apart, in the order of the sources."""
        if self.one_generation:
            if self.generation and self.judge:
                return (_ITEM, _GENERATION), (_INTERACTION,), (_RESIDUAL,)
            if self.judge:
                return (_ITEM, _GENERATION, _INTERACTION), (_RESIDUAL,)
            if self.generation:
                return (_ITEM, _GENERATION), (_INTERACTION, _RESIDUAL)
        elif self.other:
            if self.generation and self.judge:
                return (_ITEM,), (_GENERATION,), (_INTERACTION,), (_RESIDUAL,)
            if self.generation:
                return (_ITEM,), (_GENERATION,), (_INTERACTION, _RESIDUAL)
            if self.judge:
                return (_ITEM,), (_GENERATION, _RESIDUAL), (_INTERACTION,)
            return (_ITEM,), (_GENERATION, _INTERACTION, _RESIDUAL)
        elif self.generation:
            return (_ITEM, _GENERATION), (_INTERACTION, _RESIDUAL)
        elif self.judge:
            return (_ITEM, _INTERACTION), (_GENERATION, _RESIDUAL)
        return ((_ITEM, _GENERATION, _INTERACTION, _RESIDUAL),)

    @property
    def nothing(self) -> bool:
        """Whether there are none: one score per item."""
        return not (self.other or self.judge or self.generation)

    @property
    def design(self) -> str:
        """In words."""
        if self.nothing:
            return "rotated, one score per item"
        if self.one_generation:
            return "one generation" if self.generation else "one judge per item"
        if self.generation:
            return "crossed" if self.other else "crossed, one generation"
        return "rotated" if self.other else "one judge per item"


def _ordered(item: IntArray, group: IntArray, n_items: int) -> IntArray:
    """Ordered pairs within groups, per item."""
    _, at, size = np.unique(group, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(item, size[at] - 1, n_items).astype(np.int64))


def components_of_pairs(fit: MixedFit, pairs: Pairs) -> FloatArray:
    """Estimates for ``pairs.partition`` from the residuals of a fit: unbiased given rho, may be negative.

    Returns:
        Shape (components,); nan where the residuals cannot tell them apart.
    """
    panel = fit.panel
    cell = panel.item * panel.n_judges + panel.judge
    each = _Group.of(fit, np.arange(panel.item.size))
    groups = [
        each if np.unique(by).size == by.size else _Group.of(fit, by)  # often nobody shares a draw
        for by in (panel.item, panel.generation, cell)
    ]
    groups.append(each)
    kinds = np.array(_products(pairs), dtype=np.float64)
    drawn = [_drawn_by(sources) for sources in pairs.partition]
    known: dict[tuple[int, int], float] = {}
    for q in groups:
        for v in (groups[number] for number in drawn):
            if (id(q), id(v)) not in known:
                known[id(q), id(v)] = _trace(fit, q, v)
    traces = np.array([[known[id(q), id(groups[v])] for v in drawn] for q in groups])
    squares = np.array([group.squares for group in groups])
    try:
        return np.asarray(np.linalg.solve(kinds @ traces, kinds @ squares))
    except np.linalg.LinAlgError:
        return np.full(len(drawn), np.nan)


def _products(pairs: Pairs) -> list[tuple[int, int, int, int]]:
    """Products of each kind used, and the squares, from squared sums per item, generation, cell and score."""
    if pairs.one_generation:
        rows = [((1, 0, -1, 0), pairs.generation), ((0, 0, 1, -1), pairs.judge)]
    else:
        rows = [
            ((1, -1, -1, 1), pairs.other),
            ((0, 1, 0, -1), pairs.generation),
            ((0, 0, 1, -1), pairs.judge),
        ]
    return [*(row for row, used in rows if used), (0, 0, 0, 1)]


def _drawn_by(sources: tuple[Source, ...]) -> int:
    """Position of the groups whose scores share a draw of the component."""
    if _RESIDUAL in sources:
        return 3
    return 0 if _ITEM in sources else 1 if _GENERATION in sources else 2


@dataclass(frozen=True, eq=False)
class _Group:
    """Scores that share a draw: Z of V = Z Z'.

    Attributes:
        by: number of the group of each score, shape (n_scores,).
        x: Z' X, shape (groups, K); sparse where there are many scores.
        w: Z' V0^-1 X with the V0 of the fit, likewise.
        squares: of the groups' summed residuals.
    """

    by: IntArray
    x: Any
    w: Any
    squares: float

    @classmethod
    def of(cls, fit: MixedFit, by: IntArray) -> _Group:
        panel, N, K = fit.panel, by.size, fit.panel.n_judges
        _, by = np.unique(by, return_inverse=True)
        n, blocks = int(by.max()) + 1, int(fit.block.max()) + 1
        squares = float((np.bincount(by, fit.residual) ** 2).sum())
        if N * K <= DENSE:
            own = counted(by, panel.judge, np.ones(N), (n, K))
            shared = counted(fit.block, panel.judge, np.ones(N), (blocks, K))
            pulled = _summed(fit.pull[:, None] * shared[fit.block], by)
            return cls(by, own, (own - pulled) / (1.0 - fit.rho), squares)
        from scipy.sparse import coo_array

        x = coo_array((np.ones(N), (by, panel.judge)), shape=(n, K)).tocsr()
        block = coo_array((np.ones(N), (fit.block, panel.judge)), shape=(blocks, K)).tocsr()
        pull = coo_array((fit.pull, (by, fit.block)), shape=(n, blocks)).tocsr()
        w = (x - pull @ block) / (1.0 - fit.rho)
        return cls(by, x, w.tocsr(), squares)


def _summed(rows: FloatArray, by: IntArray) -> FloatArray:
    """Sums of the rows of every group, of which none is empty."""
    order = np.argsort(by, kind="stable")
    return np.asarray(np.add.reduceat(rows[order], np.flatnonzero(np.diff(by[order], prepend=-1))))


def _trace(fit: MixedFit, q: _Group, v: _Group) -> float:
    """tr(Q M V M') with M = I - X A^-1 X' V0^-1, which makes residuals of scores."""
    _, meet = np.unique(v.by * (int(q.by.max()) + 1) + q.by, return_counts=True)
    if isinstance(q.x, np.ndarray):
        once, own, pulled = v.w.T @ _summed(q.x[q.by], v.by), q.x.T @ q.x, v.w.T @ v.w
    else:
        from scipy.sparse import coo_array

        shared = coo_array((np.ones(v.by.size), (v.by, q.by))).tocsr()
        once, own, pulled = (part.toarray() for part in (v.w.T @ (shared @ q.x), q.x.T @ q.x, v.w.T @ v.w))
    twice = own @ fit.inverse @ pulled @ fit.inverse
    return float((meet**2).sum() - 2.0 * (fit.inverse * once.T).sum() + np.trace(twice))
