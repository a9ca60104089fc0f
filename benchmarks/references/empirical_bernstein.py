r"""Predictable plug-in confidence sequences: closed forms, wider than betting but O(1) per reading.

.. math:: C_t = \frac{\sum_s \lambda_s x_s}{\sum_s \lambda_s} \pm
          \frac{\log(2/\alpha) + \sum_s v_s \psi(\lambda_s)}{\sum_s \lambda_s}

with the running intersection over t, scores in [0, 1], and

- empirical Bernstein: v_s = 4 (x_s - muhat_{s-1})^2, psi(lambda) = (-log(1 - lambda) - lambda)/4,
  lambda_s = min(sqrt(2 log(2/alpha) / (sigmahat^2_{s-1} s log(1 + s))), 1/2) [Theorem 2];
- Hoeffding: v_s = 1, psi(lambda) = lambda^2/8, lambda_s = min(sqrt(8 log(2/alpha) / (s log(1 + s))), 1)
  [Section 3.1].

muhat_t = (1/2 + sum x)/(t + 1), sigmahat^2_t = (1/4 + sum (x_s - muhat_s)^2)/(t + 1).
Without replacement from a pool of N, with S_{s-1} the sum read before reading s, x_s is replaced by
x_s + S_{s-1}/(N - s + 1) in the numerator and every weight in the denominators by
lambda_s (1 + (s - 1)/(N - s + 1)) [Section 5, Theorem 5].

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86,
    arXiv 2010.09686.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import (
    Bounds,
    FloatArray,
    IntArray,
    Scale,
    check_lengths,
    error_per_sequence,
)
from references.sequences import check_subset
from references.without_replacement import check_pools, check_room, tighten

Kind = Literal["bernstein", "hoeffding"]


class EmpiricalBernsteinSequences:
    """Predictable plug-in confidence sequences for the means of many bounded sequences, incremental.

    Args:
        n_sequences: how many.
        level: of each sequence, or of all together if ``simultaneous``; fixed in advance, the bets use it.
        bounds: the smallest and the largest possible score.
        simultaneous: spend (1 - level) / n_sequences on each.
        pool_sizes: read without replacement from pools of these sizes, shape (n_sequences,); None:
            independent readings.
        kind: ``bernstein`` adapts to the variance; ``hoeffding`` does not and is the simplest baseline.

    Attributes:
        n: readings so far, shape (n_sequences,).

    Raises:
        InvalidInputError: level, bounds, kind or pool sizes cannot be used.
    """

    def __init__(
        self,
        n_sequences: int,
        *,
        level: float = 0.95,
        bounds: tuple[float, float] = (0.0, 1.0),
        simultaneous: bool = False,
        pool_sizes: ArrayLike | None = None,
        kind: Kind = "bernstein",
    ) -> None:
        if kind not in ("bernstein", "hoeffding"):
            raise InvalidInputError(f"kind {kind!r} is unknown; choose 'bernstein' or 'hoeffding'")
        self.scale = Scale(float(bounds[0]), float(bounds[1]))
        self.level, self.kind = level, kind
        self._log = float(np.log(2.0 / error_per_sequence(level, n_sequences, simultaneous=simultaneous)))
        self._pools = None if pool_sizes is None else check_pools(pool_sizes)
        self.n: IntArray = np.zeros(n_sequences, dtype=np.int64)
        if self._pools is not None:
            check_room(self.n, self._pools)
        self._total: FloatArray = np.zeros(n_sequences)
        self._squares: FloatArray = np.full(n_sequences, 0.25)
        self._weighted: FloatArray = np.zeros(n_sequences)
        self._weights: FloatArray = np.zeros(n_sequences)
        self._penalty: FloatArray = np.zeros(n_sequences)
        self._low: FloatArray = np.zeros(n_sequences)
        self._high: FloatArray = np.ones(n_sequences)

    def update(self, sequence_index: ArrayLike, values: ArrayLike) -> None:
        """Take in one reading each for some of the sequences.

        Args:
            sequence_index: which sequences, shape (n_readings,), each at most once per call.
            values: their scores, shape (n_readings,).

        Raises:
            InvalidInputError: an index is unknown or stands twice, a score is nan or out of bounds, or a pool
                is read more often than it has items.
        """
        i = check_subset(sequence_index, values, self.n.size)
        x = self.scale.to_unit(values)
        s = self.n[i] + 1
        if self._pools is not None:
            check_room(s, self._pools[i])
        spread = self._log / (s * np.log1p(s))
        if self.kind == "bernstein":
            bet = np.minimum(np.sqrt(2.0 * spread * s / self._squares[i]), 0.5)
            guess = (0.5 + self._total[i]) / s
            self._penalty[i] += (x - guess) ** 2 * (-np.log1p(-bet) - bet)
        else:
            bet = np.minimum(np.sqrt(8.0 * spread), 1.0)
            self._penalty[i] += bet**2 / 8.0
        if self._pools is None:
            self._weighted[i] += bet * x
            self._weights[i] += bet
        else:
            left = self._pools[i] - s + 1
            self._weighted[i] += bet * (x + self._total[i] / left)
            self._weights[i] += bet * (1.0 + (s - 1) / left)
        self.n[i] = s
        self._total[i] += x
        self._squares[i] += (x - (0.5 + self._total[i]) / (s + 1)) ** 2
        centre = self._weighted[i] / self._weights[i]
        margin = (self._log + self._penalty[i]) / self._weights[i]
        self._low[i] = np.maximum(self._low[i], centre - margin)
        self._high[i] = np.minimum(self._high[i], centre + margin)

    def intervals(self) -> Bounds:
        """Bounds that hold each mean at all times with the probability given at construction.

        Returns:
            Bounds of shape (n_sequences,), in the units of the scores; an exhausted pool has its exact mean.
            Where a mean drifted so much that nothing is left, the two contradicting ends and the sample mean.
        """
        low, high = self._low, self._high
        if self._pools is not None:
            low, high = tighten(low, high, self._total, self.n, self._pools)
        mean = self._total / np.maximum(self.n, 1)
        crossed = low > high
        return Bounds(
            self.scale.from_unit(np.where(crossed, np.minimum(high, mean), low)),
            self.scale.from_unit(np.where(crossed, np.maximum(low, mean), high)),
        )


def empirical_bernstein_intervals(
    values: ArrayLike,
    lengths: ArrayLike,
    level: float = 0.95,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    simultaneous: bool = False,
    pool_sizes: ArrayLike | None = None,
    kind: Kind = "bernstein",
) -> Bounds:
    """Predictable plug-in intervals of many sequences of unequal length.

    Equal to feeding :class:`EmpiricalBernsteinSequences` reading by reading; shapes and errors as there and
    as in :func:`~evalbudget.statistics._anytime_betting.betting_intervals`.

    Args:
        values: scores of sequence 0, then of sequence 1 ..., shape (sum of lengths,), each in order of
            reading.
        lengths: readings per sequence, shape (n_sequences,); may be 0.
        level: of each interval, or of all together if ``simultaneous``.
        bounds: the smallest and the largest possible score.
        simultaneous: spend (1 - level) / n_sequences on each.
        pool_sizes: read without replacement from pools of these sizes; None: independent readings.
        kind: ``bernstein`` or ``hoeffding``.

    Returns:
        Bounds of shape (n_sequences,), in the units of the scores.

    Raises:
        InvalidInputError: see :class:`EmpiricalBernsteinSequences`.
    """
    scores = np.asarray(values, dtype=np.float64)
    counts = check_lengths(scores.size, lengths)
    sequences = EmpiricalBernsteinSequences(
        counts.size,
        level=level,
        bounds=bounds,
        simultaneous=simultaneous,
        pool_sizes=pool_sizes,
        kind=kind,
    )
    starts = np.cumsum(counts) - counts
    order = np.argsort(-counts, kind="stable")
    for t in range(int(counts.max(initial=0))):
        reading = order[: int(np.count_nonzero(counts > t))]
        sequences.update(reading, scores[starts[reading] + t])
    return sequences.intervals()
