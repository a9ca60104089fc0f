r"""Betting confidence sequence for the mean of a pool from uneven draws: it may be looked at after each draw.

Under the mean m, the :math:`a_t - b_t m` of :mod:`evalbudget.statistics._uneven_draws` have the conditional
mean 0, and none is below :math:`-(m (N - k_t) - L_t)`, k_t being the failures so far and L_t the least that
:math:`a_t` can be given the predictions and propensities of what is left. So the capital

.. math:: K_t(m) = \frac1J \sum_j \prod_{s \le t} \bigl(1 + \lambda_{js}(m) (a_s - b_s m)\bigr), \quad
          \lambda_{js}(m) = \min\Bigl(\frac{g_j}{\kappa_s V_s + g_j^2},\; \frac{0.9}{m (N - k_s) - L_s}\Bigr)

is a non-negative martingale that starts at 1; if the mean is m it ever reaches 2/alpha with probability at
most alpha/2. The upper end is the same test with the signs turned round. g_j are gaps, fixed shares of the
first draw's expected standard deviation; kappa_s is the variance seen before over the variance expected, as
in the interval at a fixed number of draws. Stakes grow as V_s falls, so that the pool's end is used.

The range of a draw is bounded by the largest f/q and (1 - f)/q of what is left: it takes propensities that
are mixed with uniform ones.

K_t(m) does not increase in m (:mod:`evalbudget.statistics._anytime_betting` says why), but for a failed draw,
whose factor may: it counts as the least that the factor is at any possible mean up to m.

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86,
    arXiv 2010.09686. Waudby-Smith, Stark & Ramdas (2021), RiLACS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from evalbudget.statistics._anytime_betting import CAP, RHO
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._uneven_draws import PSEUDO, UnevenDraws

_PARTS = 16
_ROUNDS = 4  # ends are found to 16^-4 of the range


def uneven_betting(draws: UnevenDraws, alpha: float) -> tuple[float, float]:
    """Confidence sequence for the mean of the pool, at its last draw.

    The running intersection over all draws: it holds the mean at every moment with probability 1 - alpha.

    Args:
        draws: in draw order.
        alpha: error probability.

    Returns:
        Lower and upper end, rounded outwards by at most 2^-16; the exact mean twice when all is drawn.
    """
    if draws.exhausted:
        mean = draws.total / draws.count if draws.count else float("nan")
        return mean, mean
    low, high = draws.limits()
    if not draws.value.size:
        return low, high
    below = _last_rejected(_Bets.upwards(draws), 2.0 / alpha)
    above = 1.0 - _last_rejected(_Bets.downwards(draws), 2.0 / alpha)
    low, high = max(low, below), min(high, above)
    return (low, high) if low <= high else (high, low)


@dataclass(frozen=True)
class _Bets:
    """Gaps a - b m of a test that the mean is at most m, m counted from the end that is tested."""

    a: FloatArray
    b: FloatArray
    least: FloatArray
    size: FloatArray
    stakes: FloatArray
    failed: IntArray
    limit: float

    @classmethod
    def upwards(cls, draws: UnevenDraws) -> Self:
        return cls._of(draws, draws.a, draws.known + draws.least, draws.limits()[0])

    @classmethod
    def downwards(cls, draws: UnevenDraws) -> Self:
        # scores 1 - y, predictions 1 - f
        size = draws.pool - draws.failed_before
        return cls._of(draws, draws.b - draws.a, size - draws.known - draws.most, 1.0 - draws.limits()[1])

    @classmethod
    def _of(cls, draws: UnevenDraws, a: FloatArray, least: FloatArray, limit: float) -> Self:
        return cls(
            a=a,
            b=draws.b,
            least=least,
            size=np.asarray(draws.pool - draws.failed_before, dtype=np.float64),
            stakes=_stakes(draws),
            failed=np.flatnonzero(draws.failed),
            limit=limit,
        )

    def peak(self, candidates: FloatArray) -> FloatArray:
        """Largest capital over time against each candidate."""
        # impossible candidates count as the nearest possible one
        m = np.maximum(candidates[:, None], self.least / self.size)
        factors = self._factors(m[:, None, :], slice(None))
        if self.failed.size:
            factors[:, :, self.failed] = self._of_failed(candidates[:, None, None])
        # inf stays inf, far beyond any threshold: no factor is below 1 - CAP, so it never meets a 0
        with np.errstate(over="ignore", under="ignore"):
            np.multiply.accumulate(factors, axis=2, out=factors)
            return np.asarray(factors.mean(axis=1).max(axis=1), dtype=np.float64)

    def _factors(self, m: FloatArray, draw: slice | IntArray) -> FloatArray:
        """What a draw multiplies the capital by, shape (candidates, RHO.size, draws)."""
        room = np.maximum(m * self.size[draw] - self.least[draw], 0.0)
        with np.errstate(divide="ignore"):
            stake = np.minimum(self.stakes[:, draw], CAP / room)
        return np.asarray(1.0 + stake * (self.a[draw] - self.b[draw] * m), dtype=np.float64)

    def _of_failed(self, candidates: FloatArray) -> FloatArray:
        """The least factor at any possible mean up to each candidate, of draws that failed."""
        i = self.failed
        first = np.maximum(self.limit, self.least[i] / self.size[i])
        last = np.maximum(candidates, first)
        # it rises or falls throughout on each side of where the cap sets in
        capped = np.clip((CAP / self.stakes[:, i] + self.least[i]) / self.size[i], first, last)
        parts = (self._factors(m, i) for m in (np.broadcast_to(first, last.shape), capped, last))
        least = np.minimum.reduce([np.broadcast_to(part, capped.shape) for part in parts])
        return np.asarray(least, dtype=np.float64)


def _stakes(draws: UnevenDraws) -> FloatArray:
    """Before the cap, shape (RHO.size, t); each from earlier draws alone."""
    variance = draws.spread
    weight = 1.0 / variance
    size = np.cumsum(weight * draws.b)
    running = np.cumsum(weight * draws.a) / np.where(size > 0.0, size, np.inf)
    surprise = weight * (draws.a - draws.b * np.clip(running, 0.0, 1.0)) ** 2
    earlier = np.arange(variance.size)
    inflation = (PSEUDO + np.cumsum(surprise) - surprise) / (PSEUDO + earlier)
    gap = RHO[:, None] * np.sqrt(variance[0])
    return np.asarray(gap / (inflation * variance + gap * gap), dtype=np.float64)


def _last_rejected(bets: _Bets, threshold: float) -> float:
    """A rejected candidate next to one that stands; 0 if none is rejected."""
    low, high = 0.0, 1.0
    for _ in range(_ROUNDS):
        inner = low + (high - low) * np.arange(1, _PARTS) / _PARTS
        rejected = np.flatnonzero(bets.peak(inner) >= threshold)
        ends = np.concatenate([[low], inner, [high]])
        last = int(rejected[-1]) + 1 if rejected.size else 0
        low, high = float(ends[last]), float(ends[last + 1])
    return low
