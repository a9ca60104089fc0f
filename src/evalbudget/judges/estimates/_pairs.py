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
from typing import Any, NamedTuple

import numpy as np

from evalbudget.judges.estimates._mixed import MixedFit, counted, dense
from evalbudget.judges.estimates._scores import JudgeScores, Source
from evalbudget.statistics._bounds import FloatArray, IntArray

_RARE = 0.1  # of the items with the commonest kind of pair: kinds seen in fewer are not used

Partition = tuple[tuple[Source, ...], ...]
_ITEM, _GENERATION, _INTERACTION, _RESIDUAL = (
    Source.ITEM,
    Source.GENERATION,
    Source.INTERACTION,
    Source.RESIDUAL,
)


class _Kind(NamedTuple):
    """One kind of pairs of an item's scores.

    Attributes:
        shared: sources of which both have the same draw.
        products: their products, from squared sums per item, generation, cell and score.
    """

    shared: tuple[Source, ...]
    products: tuple[int, int, int, int]


_OTHER = _Kind((_ITEM,), (1, -1, -1, 1))
_SAME_GENERATION = _Kind((_ITEM, _GENERATION), (0, 1, 0, -1))
_SAME_JUDGE = _Kind((_ITEM, _INTERACTION), (0, 0, 1, -1))
_KEPT_OTHERS = _Kind((_ITEM, _GENERATION), (1, 0, -1, 0))
"""Of one generation, whatever the epochs of the scores are."""
_KEPT_SAME = _Kind((_ITEM, _GENERATION, _INTERACTION), (0, 0, 1, -1))
_ITSELF = _Kind((_ITEM, _GENERATION, _INTERACTION, _RESIDUAL), (0, 0, 0, 1))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Kinds of pairs that a design has in enough items.

    Attributes:
        used: these kinds.
    """

    used: tuple[_Kind, ...]

    @classmethod
    def of(cls, panel: JudgeScores, *, one_generation: bool = False) -> Pairs:
        """Count the items that have each.

        Args:
            panel: every judge has scores.
            one_generation: all scores of an item are of one generation, whatever their epochs.
        """
        n = panel.n_items
        ordered = panel.per_item * (panel.per_item - 1)
        same_judge = _ordered(panel.item, panel.item * panel.n_judges + panel.judge, n)
        same_generation = _ordered(panel.item, panel.generation, n)
        found = {
            _OTHER: ordered - same_judge - same_generation,
            _SAME_GENERATION: same_generation,
            _SAME_JUDGE: same_judge,
        }
        if one_generation:
            found = {_KEPT_OTHERS: ordered - same_judge, _KEPT_SAME: same_judge}
        seen = {kind: int(np.count_nonzero(count)) for kind, count in found.items()}
        enough = max(2.0, _RARE * max(seen.values()))
        used = tuple(kind for kind, items in seen.items() if items >= enough)
        if used == (_SAME_GENERATION, _SAME_JUDGE):  # two sums that share the item: only one can be told
            used = (max(_SAME_JUDGE, _SAME_GENERATION, key=lambda kind: seen[kind]),)
        return cls(used)

    @property
    def partition(self) -> Partition:
        """What is told apart: sources that no kind of pairs has without the other are one."""
        alike: dict[tuple[bool, ...], list[Source]] = {}
        for source in _ITSELF.shared:
            alike.setdefault(tuple(source in kind.shared for kind in self.used), []).append(source)
        return tuple(map(tuple, alike.values()))

    @property
    def design(self) -> str:
        """In words."""
        if not self.used:
            return "rotated, one score per item"
        if _KEPT_OTHERS in self.used:
            return "one generation"
        if _SAME_GENERATION in self.used:
            return "crossed" if _OTHER in self.used else "crossed, one generation"
        return "rotated" if _OTHER in self.used else "one judge per item"


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
    kinds = np.array([kind.products for kind in (*pairs.used, _ITSELF)], dtype=np.float64)
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
        x: Z' X, shape (groups, K).
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
        x = counted(np.ones(N), by, panel.judge, (n, K))
        block = counted(np.ones(N), fit.block, panel.judge, (blocks, K))
        pull = counted(fit.pull, by, fit.block, (n, blocks))
        return cls(by, x, (x - pull @ block) / (1.0 - fit.rho), squares)


def _trace(fit: MixedFit, q: _Group, v: _Group) -> float:
    """tr(Q M V M') with M = I - X A^-1 X' V0^-1, which makes residuals of scores."""
    _, meet = np.unique(v.by * (int(q.by.max()) + 1) + q.by, return_counts=True)
    shared = counted(np.ones(v.by.size), v.by, q.by, (int(v.by.max()) + 1, int(q.by.max()) + 1))
    once, own, pulled = (dense(each) for each in (v.w.T @ (shared @ q.x), q.x.T @ q.x, v.w.T @ v.w))
    twice = own @ fit.inverse @ pulled @ fit.inverse
    return float((meet**2).sum() - 2.0 * (fit.inverse * once.T).sum() + np.trace(twice))
