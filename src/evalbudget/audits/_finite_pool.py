r"""Evidence about a finite pool of which part is known and the rest is read in random order, none twice.

Arm k has a score in [0, 1] on each of N items. Some are known; every other one has a prediction f that was
fixed before the next item is drawn. The next item is drawn evenly from the items left, R of them. For arms
i and j let d = (y_i - f_i) - (y_j - f_j), a term being 0 where that arm's score is known already. What is
known and predicted adds up to S = sum of known or predicted y_i - y_j over the pool, so "i's total exceeds
j's by at most c" says that the next d has mean at most

.. math:: m = (c - S) / R

whatever the predictions are worth, and they may be changed before every draw. Hence, with bets fixed before
the draw,

.. math:: E_{ij} = \frac1L \sum_l \prod \bigl[1 + \lambda_l (d - m)\bigr], \quad
          \lambda_l = \min\Bigl(\frac{g_l}{v + g_l^2}, \frac{0.95}{m + W_{ij}}\Bigr), \quad
          g_l = \mathrm{gap}_l \frac NR

is a non-negative supermartingale under it: W_ij is the most that -d can be on any item left, v a guess of
the variance of d. The bets grow as the pool empties: if the means differ by a gap, all of it must come from
the R items left. A single arm's mean is the same with the other arm's terms 0.

A score that was asked for and never came enters as 0 for i and as 1 for j, so the evidence holds whatever it
is. What is known can settle the matter without any evidence: i is ahead for certain once even zeros for i and
ones for j on all unknown items leave it ahead.

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, Section 5.1
    (without replacement), arXiv 2010.09686.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import GAMMA
from evalbudget.statistics._bounds import FloatArray, IntArray

GAPS = np.array([0.0125, 0.025, 0.05, 0.1, 0.2, 0.4])
"""Differences of means the bets are made for."""
LEAST_VARIANCE = 1e-4


@dataclass(frozen=True)
class Rest:
    """What is known of a pool before its next items are drawn.

    Attributes:
        n_items: N.
        low: sum of each arm's known scores, 0 for those that never came, shape (arms,).
        high: the same with 1 for them.
        prediction: f of every item left, shape (left, arms); read where unknown.
        unknown: scores that can still be asked for, shape (left, arms), boolean. Items without any may stand
            among them.
    """

    n_items: int
    low: FloatArray
    high: FloatArray
    prediction: FloatArray
    unknown: NDArray[np.bool_]

    @property
    def missing(self) -> IntArray:
        """How many scores of each arm are unknown, shape (arms,)."""
        return np.asarray(self.unknown.sum(axis=0), dtype=np.int64)

    @property
    def predicted(self) -> FloatArray:
        """Sum of each arm's predictions where unknown, shape (arms,)."""
        return np.asarray((self.prediction * self.unknown).sum(axis=0), dtype=np.float64)

    @property
    def estimate(self) -> FloatArray:
        """Mean of each arm over the pool with predictions where unknown, shape (arms,)."""
        return np.asarray(((self.low + self.high) / 2.0 + self.predicted) / self.n_items, dtype=np.float64)

    def certain(self, margin: float = 0.0) -> NDArray[np.bool_]:
        """Whether i's total is certain to exceed j's less ``margin * n_items``, shape (arms, arms)."""
        least, most = self.low, self.high + self.missing
        return np.asarray(least[:, None] - most[None, :] > _slack(self.n_items) - margin * self.n_items)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest mean each arm can have, shape (arms,)."""
        return self.low / self.n_items, (self.high + self.missing) / self.n_items


@dataclass(frozen=True)
class Evidence:
    """What items drawn from a pool prove of each pair, up to and including each item.

    Attributes:
        log: log capital of each bet, shape (items, arms, arms, gaps).
        certain: see :meth:`Rest.certain`, shape (items, arms, arms).
    """

    log: FloatArray
    certain: NDArray[np.bool_]


def pool_bets(variance: FloatArray, reach: FloatArray, room: FloatArray) -> FloatArray:
    """Bets for each gap, along a last axis.

    Args:
        variance: v, guessed.
        reach: N / R, by how much a gap of the means is magnified on the items left.
        room: m + W, the most that m - d can be; where it is not positive d cannot fall below m.
    """
    gap = GAPS * reach[..., None]
    wanted = gap / (np.maximum(variance, LEAST_VARIANCE)[..., None] + gap**2)
    most = GAMMA / np.maximum(room, 1e-12)[..., None]
    return np.asarray(np.minimum(wanted, most), dtype=np.float64)


def pool_evidence(
    rest: Rest, low: FloatArray, high: FloatArray, variance: FloatArray, margin: float = 0.0
) -> Evidence:
    """Follow the items drawn, against "i's mean exceeds j's by at most -margin".

    Args:
        rest: before the first of them; they are its first rows, in the order drawn.
        low: scores read there, 0 where one never came, shape (items, arms); read where unknown.
        high: the same with 1.
        variance: of each arm's y - f, guessed, shape (arms,).
        margin: share of the scale.
    """
    unknown, f = rest.unknown, np.where(rest.unknown, rest.prediction, 0.0)
    n, arms = len(low), rest.low.size
    against = np.where(unknown, 1.0 - rest.prediction, 0.0)
    most = (f[:, :, None] + against[:, None, :]).max(axis=0) if len(f) else np.zeros((arms, arms))
    either = unknown[:, :, None] | unknown[:, None, :]
    left = either.sum(axis=0).astype(np.float64)
    known_low, known_high = rest.low + rest.predicted, rest.high + rest.predicted
    sure_low, sure_high = rest.low.copy(), rest.high + rest.missing
    missing = rest.missing
    log = np.zeros((n + 1, arms, arms, GAPS.size))
    certain = np.zeros((n, arms, arms), dtype=bool)
    target = -margin * rest.n_items
    for t in range(n):
        asked = unknown[t]
        below, above = (np.where(asked, y[t] - f[t], 0.0) for y in (low, high))
        size = np.maximum(left, 1.0)
        m = (target - (known_low[:, None] - known_high[None, :])) / size
        share = missing[:, None] / size
        bets = pool_bets(
            share * variance[:, None] + share.T * variance[None, :], rest.n_items / size, m + most
        )
        d = below[:, None] - above[None, :]
        factor = 1.0 + bets * (d - m)[..., None]
        step = np.where(either[t][..., None], np.log(np.maximum(factor, 1e-12)), 0.0)
        log[t + 1] = log[t] + step
        left -= either[t]
        missing = missing - asked
        known_low += below
        known_high += above
        sure_low += np.where(asked, low[t], 0.0)
        sure_high += np.where(asked, high[t] - 1.0, 0.0)
        certain[t] = sure_low[:, None] - sure_high[None, :] > _slack(rest.n_items) + target
    return Evidence(log[1:], certain)


class PoolMeans:
    """Anytime intervals for the means of arms over a pool, read in random order without replacement.

    As :class:`~evalbudget.audits._always_valid_evidence.AuditedMeans`: a grid of candidates, both sides, the
    running peak of the capital. Capital does not increase in the candidate: an end is the last one rejected.

    Args:
        n_arms: how many.
        grid: candidates in [0, 1]; ends are rounded outward by at most one step.
    """

    def __init__(self, n_arms: int, grid: int = 513) -> None:
        self._candidates: FloatArray = np.arange(grid) / (grid - 1)
        self._log: FloatArray = np.zeros((n_arms, 2, GAPS.size, grid))
        self._peak: FloatArray = np.zeros((n_arms, 2, grid))

    def update(
        self, arms: IntArray, rest: Rest, low: FloatArray, high: FloatArray, variance: FloatArray
    ) -> None:
        """Take items of some arms in; the other arguments as of :func:`pool_evidence`."""
        N = rest.n_items
        for k, arm in enumerate(arms.tolist()):
            column = rest.unknown[:, k]
            rows = np.flatnonzero(column[: len(low)])
            if not rows.size:
                continue
            f = rest.prediction[:, k]
            v = np.array(variance[k])
            for side in (0, 1):  # the upper end is the lower end of 1 - y
                y = low[rows, k] if side == 0 else 1.0 - high[rows, k]
                p = f if side == 0 else 1.0 - f
                known = rest.low[k] if side == 0 else float(N - rest.missing[k]) - rest.high[k]
                known += float(p[column].sum())
                left, most = int(column.sum()), float(p[column].max())
                for value, row in zip(y, rows, strict=True):
                    m = (self._candidates * N - known) / left
                    bets = pool_bets(np.broadcast_to(v, m.shape), np.full(m.shape, N / left), m + most)
                    d = value - p[row]
                    factor = 1.0 + bets * (d - m)[:, None]
                    self._log[arm, side] += np.log(np.maximum(factor, 1e-12)).T
                    self._peak[arm, side] = np.maximum(self._peak[arm, side], _log_mean(self._log[arm, side]))
                    known += d
                    left -= 1

    def interval(self, arm: int, alpha: float) -> tuple[float, float]:
        """Bounds that hold the arm's mean over the pool at every moment with probability 1 - alpha."""
        rejected = self._peak[arm] >= np.log(2.0 / alpha)
        grid = self._candidates
        low = float(grid[np.flatnonzero(rejected[0])[-1]]) if rejected[0].any() else 0.0
        high = 1.0 - float(grid[np.flatnonzero(rejected[1])[-1]]) if rejected[1].any() else 1.0
        return (low, high) if low <= high else (high, low)


def _log_mean(log: FloatArray) -> FloatArray:
    top = log.max(axis=0)
    return np.asarray(top + np.log(np.exp(log - top).mean(axis=0)), dtype=np.float64)


def _slack(n_items: int) -> float:
    """Sums of as many floating-point numbers are not told apart below this."""
    return 1e-9 + 1e-12 * n_items
