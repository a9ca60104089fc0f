"""Betting sequences that take readings one at a time and are looked at after each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInputError
from evalbudget.statistics import Bounds
from evalbudget.statistics._anytime_betting import BLOCK, BettingSequences
from evalbudget.statistics._bounds import FloatArray, IntArray, error_per_sequence


class WatchedSequences(BettingSequences):
    """The product's sequences, any of which may be read next, at every moment."""

    @property
    def mean(self) -> FloatArray:
        """Sample means, in the units of the scores; nan where nothing was read."""
        unit = np.divide(self._total, self.n, out=np.full(self.n.shape, np.nan), where=self.n > 0)
        return self.scale.from_unit(unit)

    def update(self, sequence_index: ArrayLike, values: ArrayLike) -> None:
        """Take in one reading each for some of the sequences.

        Args:
            sequence_index: which sequences, shape (n_readings,), each at most once per call.
            values: their scores, shape (n_readings,).

        Raises:
            InvalidInputError: an index is unknown or stands twice, or a score is nan or out of bounds.
        """
        index = check_subset(sequence_index, values, self.n.size)
        unit = self.scale.to_unit(values)
        self._check_room(index)
        for start in range(0, index.size, BLOCK):
            part = index[start : start + BLOCK]
            first = int(part[0])
            if part[-1] - first == part.size - 1 and (np.diff(part) == 1).all():
                self._advance(slice(first, first + part.size), unit[start : start + BLOCK])
            else:
                self._advance(part, unit[start : start + BLOCK])

    def intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> Bounds:
        """Bounds that hold each mean at all times with probability ``level``.

        Any number of levels may be asked of the same sequences. Where a mean drifted so much that every
        candidate is rejected, the interval spans the two contradicting ends and the sample mean.

        Args:
            level: of each sequence, or of all together.
            simultaneous: spend (1 - level) / n_sequences on each.

        Returns:
            Bounds of shape (n_sequences,), in the units of the scores.

        Raises:
            InvalidInputError: level is not in (0, 1).
        """
        alpha = error_per_sequence(level, self.n.size, simultaneous=simultaneous)
        return self._bounds(alpha)

    def _check_room(self, index: IntArray) -> None:
        """Raise where a sequence cannot take another reading."""


def check_subset(sequence_index: ArrayLike, values: ArrayLike, n_sequences: int) -> IntArray:
    """Indices of the sequences that get one reading each.

    Raises:
        InvalidInputError: shapes differ, an index is out of range or stands twice.
    """
    index = np.asarray(sequence_index, dtype=np.int64)
    if index.ndim != 1 or index.shape != np.shape(values):
        raise InvalidInputError(
            f"sequence_index has shape {index.shape}, values {np.shape(values)}; give one value per index"
        )
    if index.size and (index.min() < 0 or index.max() >= n_sequences):
        raise InvalidInputError(
            f"sequence_index runs from {index.min()} to {index.max()}; there are {n_sequences} sequences"
        )
    if np.unique(index).size != index.size:
        raise InvalidInputError(
            "a sequence stands twice in one update; give one reading per sequence and call again"
        )
    return index
