r"""Evidence from judged and randomly audited scores: pairwise e-processes and anytime means.

An arm k judged on context t has a prediction m of its human score, frozen before the draw, and is audited
with a propensity pi > 0, frozen too. With A = 1 where audited,

.. math:: Z_k = m_k + \frac{A_k}{\pi_k} (Y_k - m_k), \quad E[Z_k \mid \text{past}] = \theta_k

whatever the predictions are worth, when contexts are drawn independently of the past. So for bets lambda
that are frozen before the draw,

.. math:: E_{ij} = \frac1L \sum_l \prod_t \bigl[1 + \lambda_l (Z_i - Z_j + \epsilon)\bigr]

is a non-negative supermartingale whenever :math:`\theta_i + \epsilon \le \theta_j`, as long as no bet exceeds
:math:`\gamma / W_{ij}` with :math:`W_{ij} \ge Z_j - Z_i - \epsilon`. Ville's inequality makes
:math:`E_{ij} \ge 1/\alpha` evidence that i is better than j (by more than -epsilon) at every moment.

A label that was asked for and never came enters with the score that weakens the evidence most, 0 for i and 1
for j: the inequality then holds whatever it would have been.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics._anytime_betting import RHO
from evalbudget.statistics._bounds import FloatArray

GAMMA = 0.95
"""No bet risks more than this share of the capital."""
STEPS = np.array([0.025, 0.05, 0.1, 0.2, 0.4])
"""Differences the bets are made for: the best bet on a difference d with variance V is d / (V + d^2)."""


@dataclass(frozen=True, slots=True)
class Audited:
    """Z of each context and arm, as low and as high as missing labels allow.

    Attributes:
        low: Z with 0 for labels that never came, shape (contexts, arms).
        high: Z with 1 for them, shape (contexts, arms); equal to ``low`` where nothing is missing.
    """

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(
        cls, prediction: FloatArray, propensity: FloatArray, wanted: FloatArray, label: FloatArray
    ) -> Audited:
        """Compute Z.

        Args:
            prediction: m in [0, 1], shape (contexts, arms).
            propensity: pi in (0, 1], same shape.
            wanted: A, 0 or 1, same shape.
            label: Y in [0, 1], same shape; read where wanted, nan there where the label never came.
        """
        weight = wanted / propensity
        low = prediction + weight * (np.where(wanted > 0, np.nan_to_num(label, nan=0.0), 0.0) - prediction)
        high = low + weight * np.where((wanted > 0) & np.isnan(label), 1.0, 0.0)
        return cls(low, high)


def reach(prediction: FloatArray, propensity: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far Z can go below 0 and up: a >= -Z and b >= Z, over every cell of the frozen policy.

    Args:
        prediction: m of each arm and cell, shape (arms, cells), cells never seen included.
        propensity: pi, same shape.

    Returns:
        a and b, shape (arms,); a >= 0, b >= 1.
    """
    a = (prediction * (1.0 / propensity - 1.0)).max(axis=1)
    b = (prediction + (1.0 - prediction) / propensity).max(axis=1)
    return a, b


def pair_range(a: FloatArray, b: FloatArray, disjoint: NDArray[np.bool_]) -> FloatArray:
    """W_ij, the most that Z_j - Z_i can be, shape (arms, arms).

    Args:
        a: from :func:`reach`.
        b: from :func:`reach`.
        disjoint: where the two are never both audited, shape (arms, arms), boolean: then one of Z_i, Z_j is a
            prediction in [0, 1].
    """
    one = np.maximum(a[:, None] + 1.0, b[None, :])
    return np.asarray(np.where(disjoint, one, a[:, None] + b[None, :]), dtype=np.float64)


def pair_bets(variance: FloatArray, width: FloatArray) -> FloatArray:
    """Bets lambda_l on each pair, shape (arms, arms, steps).

    Args:
        variance: V_ij, a guess of the variance of Z_i - Z_j; only efficiency depends on it.
        width: W_ij; validity depends on it.
    """
    wanted = STEPS / (variance[..., None] + STEPS**2)
    return np.asarray(np.minimum(wanted, GAMMA / width[..., None]), dtype=np.float64)


def pair_evidence(z: Audited, bets: FloatArray, margin: float = 0.0) -> FloatArray:
    """Log of what each bet on each pair was multiplied by, up to and including each context.

    Args:
        z: of the contexts in draw order, shape (contexts, arms).
        bets: shape (arms, arms, steps), frozen before these contexts; at most gamma over the range of
            Z_j - Z_i - margin, which the caller sees to.
        margin: epsilon.

    Returns:
        Shape (contexts, arms, arms, steps).
    """
    gap = z.low[:, :, None] - z.high[:, None, :] + margin
    log = np.log1p(bets[None] * gap[..., None])
    return np.asarray(np.cumsum(log, axis=0, out=log), dtype=np.float64)


def mixture(log: FloatArray) -> FloatArray:
    """Mean capital over the steps, the last axis."""
    return np.asarray(np.exp(np.minimum(log, 600.0)).mean(axis=-1), dtype=np.float64)


class AuditedMeans:
    r"""Anytime confidence sequences for the means of audited arms, by betting on a grid of candidates.

    As :mod:`evalbudget.statistics._anytime_betting`, with Z in place of the score: Z + a is not negative and
    b - Z is not either, so the bets lambda = min(rho / sigma, gamma / (a + m)) on Z - m and min(rho / sigma,
    gamma / (b - m)) on m - Z keep the capital positive, and its monotone shape in m. a, b and sigma are
    those of the frozen policy and may differ from batch to batch.

    Args:
        n_arms: how many.
        grid: candidates in [0, 1]; ends are rounded outward by at most one step.
    """

    def __init__(self, n_arms: int, grid: int = 513) -> None:
        self._candidates: FloatArray = np.arange(grid) / (grid - 1)
        self._capital: FloatArray = np.ones((n_arms, 2, RHO.size, grid))
        self._peak: FloatArray = np.ones((n_arms, 2, grid))

    def update(
        self, arm: int, low: FloatArray, high: FloatArray, variance: float, a: float, b: float
    ) -> None:
        """Take contexts of one arm in, in draw order.

        Args:
            arm: which.
            low: Z with 0 for labels that never came, shape (contexts,).
            high: Z with 1 for them.
            variance: a guess of that of Z; only the width depends on it.
            a: at least -Z, whatever the cell and label.
            b: at least Z.
        """
        bets = (RHO / np.sqrt(max(variance, 1e-6)))[:, None]
        m = self._candidates
        with np.errstate(divide="ignore"):
            caps = GAMMA / (a + m), GAMMA / np.maximum(b - m, 0.0)
        for side, (z, sign) in enumerate(((low, 1.0), (high, -1.0))):
            stake = np.minimum(bets, caps[side])
            # blocks that stay in the cache
            for start in range(0, len(z), 32):
                gap = sign * (z[start : start + 32, None] - m)
                factors = 1.0 + stake[None] * gap[:, None, :]
                factors[0] *= self._capital[arm, side]
                path = np.clip(np.cumprod(factors, axis=0), 1e-30, 1e30)
                self._capital[arm, side] = path[-1]
                self._peak[arm, side] = np.maximum(self._peak[arm, side], path.mean(axis=1).max(axis=0))

    def interval(self, arm: int, alpha: float) -> tuple[float, float]:
        """Bounds that hold the arm's mean at every moment with probability 1 - alpha."""
        rejected = self._peak[arm] >= 2.0 / alpha
        grid = self._candidates
        low = float(grid[np.flatnonzero(rejected[0])[-1]]) if rejected[0].any() else 0.0
        high = float(grid[np.flatnonzero(rejected[1])[0]]) if rejected[1].any() else 1.0
        return (low, high) if low <= high else (high, low)
