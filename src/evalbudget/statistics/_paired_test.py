r"""Is the mean of paired differences above a bound? Evidence that may be looked at after every pair.

Two models are scored on the same items; d is the score of one less that of the other, in [-1, 1]. Items come
in clusters (of one item, where nobody says otherwise) that are drawn at random. Against "D, the mean of d,
is at most c" a capital of 1 is bet: cluster t, with items i, brings

.. math:: z_t = \frac1s \sum_{i \in t} (d_i - c),
          \qquad K_t = \sum_j w_j \prod_{u \le t} (1 + \lambda_{ju} z_u),
          \qquad 0 \le \lambda_{ju} \le \frac{.9}{1 + c}

with s the size of the largest cluster and stakes chosen before the cluster is read. If D is at most c, no z
has a positive conditional mean and K is a nonnegative supermartingale: it ever reaches 1/a with a
probability of at most a (Ville). So it may be looked at, and reading stopped, at any moment. "At least c" is
the same test of -d.

What is claimed is about the population that clusters are a sample of: which items were drawn and what a
model or a judge answers this time are both random. For a claim about the N items of a finite pool, as scored
once each, the items left have to average (N c - S)/(N - t) under "D is at most c", S being the sum of the t
differences read: that takes the place of c, and with the last item D is known. An item on which a model
failed has no d; D is the mean over the others, :math:`d - c` counts as 0 there, and nobody need know which
will fail.

Stakes. Whoever asks with a margin m wants to tell 0 from -m, so the gaps to detect are known: a gap g is bet
on with :math:`\lambda = g / (v + g^2)`, v being the variance of z so far. The mixture has m, 2m and 4m and
the gap that earlier clusters show, so that a gap of any size is found in the end.

Where all pairs are there already, none comes first: :class:`UnorderedPairs` takes the mean of the capitals
that several random orders end with, which has a mean of at most 1 as well, and reaches 1/a with a
probability of at most a (Markov). It may be looked at once.

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86,
    Sections 4 and 5. Ramdas, Grunwald, Vovk & Shafer (2023), Game-theoretic statistics and safe anytime-valid
    inference, Statistical Science 38.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray

_MULTIPLES = np.array([1.0, 2.0, 4.0])
"""Gaps bet on, in margins."""
_WEIGHT = np.array([0.3, 0.4, 0.1, 0.2])
"""Of the capital at the start; the last is bet on the gap that earlier clusters show."""
_PSEUDO = 10.0
"""Clusters without a difference that the observed gap is shrunk by."""
_SPREAD = 0.25
"""Variance of a difference before the first one, worth one cluster."""
_MOST = 0.9
"""Share of the capital that one cluster may cost."""
_SCANNED = 48
"""Candidates looked at before an end of an interval is narrowed down."""
_HALVINGS = 12


_ORDERS = 32
"""Over which the evidence of pairs that are all there is averaged."""
_AT_ONCE = 20_000
"""Clusters, in as many orders as have no more: these are computed together."""


@dataclass(frozen=True, eq=False)
class PairedDraws:
    """Differences in the order in which their clusters were drawn.

    Attributes:
        total: sum of the differences of each cluster, on the scale on which scores span [0, 1], shape (t,);
            with a pool, nan where one of the two failed.
        size: items of each cluster that both models answered, at least 1, shape (t,).
        margin: the difference that matters, above 0, on the same scale.
        largest: s, size of the largest cluster there is.
        pool: N, where the claim is about these items only; None where they are a sample. Clusters are then
            single items.

    Raises:
        InvalidInputError: shapes or sizes do not fit, or the margin is not above 0.
    """

    total: FloatArray
    size: IntArray
    margin: float
    largest: int = 1
    pool: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.margin < 1.0:
            raise InvalidInputError(
                f"a margin of {self.margin:g} of the scores' range: give one above 0 and below 1"
            )
        if self.total.shape != self.size.shape or self.total.ndim != 1:
            raise InvalidInputError(
                f"sums of shape {self.total.shape} and sizes of shape {self.size.shape} do not fit"
            )
        if ((self.size < 1) | (self.size > self.largest)).any():
            raise InvalidInputError(f"a cluster has no item, or more than the largest, {self.largest}")
        if self.pool is not None and (self.largest > 1 or self.total.size > self.pool):
            raise InvalidInputError(
                f"{self.total.size} draws of a pool of {self.pool}: give single items of it"
            )

    @property
    def items(self) -> int:
        """Compared so far."""
        return int(self.size[~np.isnan(self.total)].sum())

    @property
    def mean(self) -> float:
        """Of the differences; nan before the first."""
        return float(np.nansum(self.total) / self.items) if self.items else float("nan")

    @property
    def is_exhausted(self) -> bool:
        """Whether the whole pool is read, so that the mean is known."""
        return self.pool is not None and self.total.size == self.pool

    @cached_property
    def _bets(self) -> _Bets:
        return _Bets(self.total, self.size, self.margin, self.largest, self.pool)

    def log_capital(self, bound: float, *, at_least: bool = False) -> FloatArray:
        """Log of the capital against "D is at most ``bound``", or at least, per cluster, shape (t,)."""
        log, certain = self._bets.against(bound, at_least=at_least)
        found = np.asarray(np.logaddexp.reduce(log, axis=0))
        found[np.maximum.accumulate(certain)] = np.inf
        return found

    def evidence(self, bound: float, *, at_least: bool = False) -> float:
        """Largest log capital so far; at least 0."""
        return float(self.log_capital(bound, at_least=at_least).max(initial=0.0))

    def needed(self, alpha: float) -> int | None:
        """Items after which the capital against "D is at most -margin" is most probably 1 / alpha, if D is 0.

        A stake lambda on a gap m that is there lets the log of capital grow by about
        lambda m - lambda^2 (v + m^2) / 2 per cluster; it has to reach log(1 / alpha) from the part
        that is bet on the gaps nearby. None before anything is read.
        """
        if not self.items:
            return None
        spread = float(self._bets.spread[-1]) if self.total.size else _SPREAD
        typical = self.items / max(self.total.size, 1)
        gap = self.margin * typical / self.largest
        stakes = np.minimum(
            _MULTIPLES * gap / (spread + (_MULTIPLES * gap) ** 2), _MOST / (1.0 - self.margin)
        )
        rate = float((stakes * gap - 0.5 * stakes**2 * (spread + gap**2)).max())
        start = float(_WEIGHT[:2].sum())
        return int(np.ceil(typical * np.log(1.0 / (alpha * start)) / rate))

    def interval(self, alpha: float) -> tuple[float, float]:
        """What has not been rejected: each end is wrong with a probability of at most alpha, ever."""
        if not self.items:  # none has a difference: there is no mean to count from
            return -1.0, 1.0
        if self.is_exhausted:
            return self.mean, self.mean
        low = self._end(alpha, at_least=False)
        high = -self._end(alpha, at_least=True)
        return min(low, high), max(low, high)

    def _end(self, alpha: float, *, at_least: bool) -> float:
        """The largest candidate below which everything looked at is rejected, counted from the other side."""
        aim = float(np.log(1.0 / alpha))
        sign = -1.0 if at_least else 1.0

        def rejected(candidate: float) -> bool:
            return self.evidence(sign * candidate, at_least=at_least) >= aim

        middle = float(np.clip(sign * self.mean, -1.0, 1.0))
        # denser towards the mean
        grid = middle - (1.0 + middle) * np.linspace(1.0, 0.0, _SCANNED) ** 3
        low = -1.0
        for candidate in grid.tolist():
            if not rejected(candidate):
                high = candidate
                break
            low = candidate
        else:
            return low
        for _ in range(_HALVINGS):
            probe = 0.5 * (low + high)
            low, high = (probe, high) if rejected(probe) else (low, probe)
        return low


@dataclass(frozen=True, eq=False)
class UnorderedPairs(PairedDraws):
    """Differences that were all there before the first was looked at.

    Attributes:
        seed: of the orders that are averaged over.
    """

    seed: int = 0

    @cached_property
    def _in_order(self) -> list[_Bets]:
        rng = np.random.default_rng(self.seed)
        orders = np.array([rng.permutation(self.total.size) for _ in range(_ORDERS)])
        parts = np.array_split(orders, min(_ORDERS, -(-orders.size // _AT_ONCE)))
        return [
            _Bets(self.total[order], self.size[order], self.margin, self.largest, self.pool)
            for order in parts
        ]

    def log_capital(self, bound: float, *, at_least: bool = False) -> FloatArray:
        """Log of the mean capital after all clusters, shape (1,); (0,) without any."""
        if not self.total.size:
            return np.zeros(0)
        ends: list[FloatArray] = []
        for bets in self._in_order:
            log, certain = bets.against(bound, at_least=at_least)
            last = np.logaddexp.reduce(log[..., -1], axis=0)
            ends.append(np.where(certain.any(axis=-1), np.inf, last))
        return np.array([np.logaddexp.reduce(np.concatenate(ends)) - np.log(_ORDERS)])


@dataclass(frozen=True, eq=False)
class _Bets:
    """On clusters in an order, or in each of several: arrays have shape (t,), or (orders, t)."""

    total: FloatArray
    size: IntArray
    margin: float
    largest: int
    pool: int | None

    @cached_property
    def spread(self) -> FloatArray:
        """Variance of z before each cluster."""
        total = np.nan_to_num(self.total)
        items = self.size.cumsum(axis=-1)
        running = total.cumsum(axis=-1)
        before = (running - total) / (items - self.size + 1.0)
        after = running / (items + 1.0)
        off = (total - self.size * before) * (total - self.size * after) / self.largest**2
        count = np.arange(self.total.shape[-1])
        return np.asarray((_SPREAD + off.cumsum(axis=-1) - off) / (count + 1.0))

    @cached_property
    def _before(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Before each cluster: clusters, of shape (t,); items, a typical size / s; gaps of each part."""
        n = np.arange(self.total.shape[-1])
        items = self.size.cumsum(axis=-1) - self.size
        typical = (items + 1.0) / (n + 1.0) / self.largest
        grows = np.ones(n.size) if self.pool is None else self.pool / (self.pool - n)
        return n, items, typical, _by_part(_MULTIPLES, typical) * self.margin * grows * typical

    def against(self, bound: float, *, at_least: bool) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Log of the capital of each part, on the first axis, and where nothing can save the bound."""
        sign = -1.0 if at_least else 1.0
        total, bound = sign * np.where(np.isnan(self.total), bound, self.total), sign * bound
        before = total.cumsum(axis=-1) - total
        n, items, typical, nearby = self._before
        null = np.full(n.size, bound) if self.pool is None else (self.pool * bound - before) / (self.pool - n)
        clipped = np.clip(null, -1.0, 1.0)
        z = (total - self.size * clipped) / self.largest
        shown = np.maximum(before / (items + _PSEUDO) - clipped, 0.0)
        gaps = np.concatenate([nearby, shown[None] * typical])
        room = np.maximum(1.0 + clipped, 1e-12)
        stakes = np.minimum(gaps / (self.spread + gaps * gaps), _MOST / room)
        log = np.log1p(stakes * z).cumsum(axis=-1) + np.log(_by_part(_WEIGHT, z))
        if self.pool is None:
            return log, np.zeros(total.shape, dtype=bool)
        # whatever the items left turn out to be
        return log, before + total - (self.pool - n - 1.0) > self.pool * bound + 1e-9


def _by_part(values: FloatArray, of: FloatArray) -> FloatArray:
    """One for each part of the mixture, on an axis before those of the clusters."""
    return values.reshape(-1, *[1] * of.ndim)
