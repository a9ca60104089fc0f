"""Rating kernel: for scores on a scale of few levels, what one reading says about the next."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Cell, Design
from evalbudget.repeats.samplers._eb_bernstein import EBBernstein, EBBernsteinOptions
from evalbudget.repeats.samplers._objective import Objective

_MOST_LEVELS = 32
_MOST_DIFFERENT = 0.75  # of the readings; where more differ, the scale has no levels that come again
_TAIL = 8.0  # weight of the fourth moment; flat in 8..32
_SMOOTHING = 1e-3
_FARTHEST = 1000  # a level outside the warm-up's range counts as at most this many half-ranges away
_WORTH = 1.5  # of T, over the agreement; flat in 1.3..3
_LEAST_AGREEMENT = 0.005

Moments = tuple[float, float, float, float]


class RatingKernel(EBBernstein):
    r"""Learns from the warm-up what one reading of an item says about another reading of it.

    Let :math:`C_{ia}` count the warm-up readings of item i at level a, :math:`n_i = \sum_a C_{ia}`, and g be
    the pool's share of every level. Pairs of readings of the same item give the kernel

    .. math:: P_{ab} = \sum_i \frac{C_{ia} (C_{ib} - 1_{a=b})}{n_i (n_i - 1)}, \qquad
              T_{ab} \propto P_{ab} + 10^{-3} g_b, \quad \sum_b T_{ab} = 1,

    the distribution of a second reading after a first one at a. An item's posterior is its own histogram and
    :math:`\alpha` pseudo-readings drawn from T at its own readings. With :math:`y` the level, mapped to
    [-1, 1], and :math:`R_k(a) = \sum_b T_{ab} y_b^k`, its moments are

    .. math:: M_k = \frac{\sum_j y_{ij}^k + \frac{\alpha}{n_i} \sum_j R_k(x_{ij})}{n_i + \alpha}

    over the item's readings so far, its variance is :math:`V_i = M_2 - M_1^2` and its fourth central moment
    :math:`m_{4i}`. The next reading goes to

    .. math:: \arg\max_i \Bigl(\frac{V_i^2}{n_i^2} + 8 \frac{m_{4i}}{n_i^3}\Bigr)^{1/4}
              \quad (\text{worst-item}), \qquad
              \arg\max_i \frac{w_i^2 V_i}{n_i (n_i+1)} \quad (\text{mse, mean}),

    the first after :math:`E[(\bar x - \mu)^4] = 3 V^2/n^2 + m_4/n^3 + \dots` with more weight on the tail, as
    the worst of many items sits there. A reading at the top of a scale where most items are unanimous says
    little about V; one in the middle says much.

    How much T is worth follows from how often two readings of an item agree, beyond chance:

    .. math:: \alpha = 1.5 / \rho, \qquad
              \rho = \frac{\sum_a P_{aa} / \sum_{ab} P_{ab} - \sum_a g_a^2}{1 - \sum_a g_a^2}.

    If items were Dirichlet distributed around g, their posterior after n readings would be had exactly at
    :math:`\alpha = n/(n-1)/\rho`; on repeated judgements 1.5 does as well as the best alpha in hindsight by
    leave-one-out likelihood, and two readings per item are enough to fit it.

    T and alpha are frozen after the warm-up. A level first seen later says about other readings what the pool
    does. Where the kernel has nothing to go by, in that items' warm-ups all agree or the pool shows more than
    32 levels, or hardly a level twice (a few items on a continuous scale), this is ``eb-bernstein``.

    Args:
        common: see EBBernstein; there is no bonus.

    Raises:
        UnknownNameError: no such objective.
        InvalidInputError: a warm-up too short for pairs, weights of another shape, negative or not finite.
    """

    name = "rating-kernel"
    _common = EBBernsteinOptions

    def __init__(self, design: Design, **common: Unpack[EBBernsteinOptions]) -> None:
        super().__init__(design, **common)
        del self.options["bonus"]
        self._first_readings: _Log | None = _Log()
        self._kernel: _Kernel | None = None
        self._counts: list[int] = []  # of item 0 at each level, of item 1, ...
        self._novel: dict[int, _Novel] = {}  # item -> its readings at levels the warm-up did not show

    def _look_afresh(self) -> None:
        super()._look_afresh()
        self._first_readings = _Log()

    def _look_at(self, item: int, units: int) -> None:
        super()._look_at(item, units)
        kernel = self._kernel
        if not self._frozen and self._first_readings is not None:
            self._first_readings.add(item, units)
        elif kernel is not None:
            level = kernel.levels.get(units)
            if level is None:
                self._novel.setdefault(item, _Novel()).add(kernel.offset(units))
            else:
                self._counts[item * len(kernel.levels) + level] += 1

    def _warmed_up(self) -> None:
        super()._warmed_up()
        self._kernel, self._counts = None, []
        levels = [] if self._first_readings is None else self._first_readings.levels()
        if self._first_readings is not None and 2 <= len(levels) <= min(
            _MOST_LEVELS, _MOST_DIFFERENT * len(self._first_readings)
        ):
            counts = self._first_readings.counts(self.design.n_items)
            self._kernel = _Kernel.fit(levels, counts)
            self._counts = [] if self._kernel is None else counts.ravel().tolist()

    def _asked(self, cell: Cell) -> None:
        super()._asked(cell)
        if self._frozen:
            self._first_readings = None

    def _cost_power(self) -> float:
        if self._kernel is None or self.objective is not Objective.WORST_ITEM:
            return super()._cost_power()
        return 2.0 * self._cost_exponent  # the urgency is a fourth power of the error

    def _urgency(self, item: int) -> float:
        kernel = self._kernel
        if kernel is None:
            return super()._urgency(item)
        size = len(kernel.levels)
        counts = self._counts[item * size : (item + 1) * size]
        m1, m2, m3, m4 = kernel.moments(counts, self.n_read(item), self._novel.get(item))
        n = self.n_asked(item)
        square = m1 * m1
        v = max(m2 - square, 0.0)
        if self.objective is not Objective.WORST_ITEM:
            return self._weights_sq[item] * v / (n * (n + 1))
        fourth = max(m4 - 4.0 * m1 * m3 + 6.0 * square * m2 - 3.0 * square * square, v * v)
        return (v * v + _TAIL * fourth / n) / (n * n)  # without the root, which changes no order


@dataclass(frozen=True, slots=True)
class _Kernel:
    """T and alpha of one pool.

    Attributes:
        levels: index of each level, in increasing order.
        centre: twice the middle of the scale, in the units of the levels.
        range: of the scale, same units.
        alpha: how many pseudo-readings T is worth.
        powers: y^k, k = 1..4, and then R_k of every level.
        pool: moments of the pool, k = 1..4.
    """

    levels: dict[int, int]
    centre: int
    range: int
    alpha: float
    powers: list[list[float]]
    pool: Moments

    @classmethod
    def fit(cls, levels: Sequence[int], counts: NDArray[np.int64]) -> _Kernel | None:
        """From at least 2 levels and counts of shape (n_items, n_levels); None if no item disagrees."""
        C = counts[counts.sum(axis=1) > 1].astype(np.float64)
        n = C.sum(axis=1)
        share = C / (n * (n - 1.0))[:, None]
        P = share.T @ C - np.diag(share.sum(axis=0))
        disagreement = float(P[~np.eye(len(levels), dtype=bool)].sum())
        if disagreement == 0.0:
            return None
        g = counts.sum(axis=0) / counts.sum()
        by_chance = 1.0 - float(g @ g)
        agreement = 1.0 - disagreement / float(P.sum()) / by_chance
        T = P + _SMOOTHING * g
        T /= T.sum(axis=1, keepdims=True)
        centre, length = levels[0] + levels[-1], levels[-1] - levels[0]
        y = np.array([(2 * level - centre) / length for level in levels])
        powers = y[:, None] ** np.arange(1, 5)
        return cls(
            levels={level: index for index, level in enumerate(levels)},
            centre=centre,
            range=length,
            alpha=_WORTH / max(agreement, _LEAST_AGREEMENT),
            powers=np.hstack([powers, T @ powers]).tolist(),
            pool=_moments((g @ powers).tolist()),
        )

    def offset(self, units: int) -> int:
        """Twice the distance of a new level from the centre, in units."""
        farthest = _FARTHEST * self.range
        return max(-farthest, min(2 * units - self.centre, farthest))

    def moments(self, counts: Sequence[int], n: int, novel: _Novel | None) -> Moments:
        """M_k of an item with these readings, in an order that is always the same."""
        if n == 0:
            return self.pool
        pseudo = self.alpha / n
        m1 = m2 = m3 = m4 = 0.0
        for count, (y1, y2, y3, y4, r1, r2, r3, r4) in zip(counts, self.powers):  # noqa: B905  # hot
            if count:
                m1 += count * (y1 + pseudo * r1)
                m2 += count * (y2 + pseudo * r2)
                m3 += count * (y3 + pseudo * r3)
                m4 += count * (y4 + pseudo * r4)
        if novel is not None:
            pseudo *= novel.n
            own, other = novel.powers(self.range), self.pool
            m1 += own[0] + pseudo * other[0]
            m2 += own[1] + pseudo * other[1]
            m3 += own[2] + pseudo * other[2]
            m4 += own[3] + pseudo * other[3]
        weight = n + self.alpha
        return m1 / weight, m2 / weight, m3 / weight, m4 / weight


class _Novel:
    """Readings of one arm at levels the warm-up did not show, summed exactly."""

    __slots__ = ("n", "sums")

    def __init__(self) -> None:
        self.n = 0
        self.sums = [0, 0, 0, 0]

    def add(self, offset: int) -> None:
        self.n += 1
        self.sums = [total + offset ** (k + 1) for k, total in enumerate(self.sums)]

    def powers(self, length: int) -> Moments:
        """Sums of y^k."""
        return _moments([total / length ** (k + 1) for k, total in enumerate(self.sums)])


class _Log:
    """Readings of the warm-up, until their levels are known."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}
        self._place = array("q")
        self._code = array("b")

    def __len__(self) -> int:
        return len(self._code)

    def add(self, place: int, units: int) -> None:
        if len(self._codes) <= _MOST_LEVELS:  # beyond, it is too late
            self._place.append(place)
            self._code.append(self._codes.setdefault(units, len(self._codes)))

    def levels(self) -> list[int]:
        """In increasing order."""
        return sorted(self._codes)

    def counts(self, n_items: int) -> NDArray[np.int64]:
        """Shape (n_items, n_levels)."""
        size = len(self._codes)
        index = np.empty(size, dtype=np.int64)
        index[[self._codes[level] for level in self.levels()]] = np.arange(size)
        cells = np.array(self._place) * size + index[np.array(self._code)]
        return np.bincount(cells, minlength=n_items * size).reshape(n_items, size)


def _moments(values: Sequence[float]) -> Moments:
    m1, m2, m3, m4 = values
    return m1, m2, m3, m4
