"""What every confidence kernel takes and returns: array types, Bounds, levels, scores on a declared range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.errors import InvalidInputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Many intervals at once.

    Attributes:
        low: lower bounds, in the units of the scores.
        high: upper bounds, same shape; nan in both where no interval is defined.
    """

    low: FloatArray
    high: FloatArray

    @property
    def width(self) -> FloatArray:
        """High - low."""
        return self.high - self.low

    def contains(self, target: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval holds its target, ends included; False where the interval is nan."""
        truth = np.asarray(target, dtype=np.float64)
        return (self.low <= truth) & (truth <= self.high)


def check_level(level: float) -> float:
    """Return ``level`` if it is a probability strictly between 0 and 1.

    Raises:
        InvalidInputError: it is not.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInputError(f"level {level:g} must lie strictly between 0 and 1, for example 0.95")
    return level


def error_per_sequence(level: float, n_sequences: int, *, simultaneous: bool) -> float:
    """The error probability each of ``n_sequences`` may spend: 1 - level, divided if simultaneous."""
    alpha = 1.0 - check_level(level)
    return alpha / max(n_sequences, 1) if simultaneous else alpha


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps scores with a declared range onto [0, 1] and back.

    Args:
        low: the smallest possible score.
        high: the largest possible score.

    Raises:
        InvalidInputError: the range is empty, reversed or not finite.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise InvalidInputError(
                f"bounds ({self.low:g}, {self.high:g}) are not a range; "
                "give the smallest and the largest possible score, for example (0, 4)"
            )

    def to_unit(self, values: ArrayLike) -> FloatArray:
        """Scores in [0, 1].

        Raises:
            InvalidInputError: a score is nan or outside the declared range.
        """
        scores = np.asarray(values, dtype=np.float64)
        outside = ~((scores >= self.low) & (scores <= self.high))
        if outside.any():
            first = scores[outside].flat[0]
            remedy = (
                "leave failed readings out"
                if np.isnan(first)
                else "declare the range of the scores, for example bounds=(0, 4)"
            )
            raise InvalidInputError(
                f"score {first:g} is outside bounds ({self.low:g}, {self.high:g}); {remedy}"
            )
        return (scores - self.low) / (self.high - self.low)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Back to the units of the scores."""
        # the upper end must not move by rounding: a score may lie on it
        return np.where(unit == 1.0, self.high, self.low + unit * (self.high - self.low))


def check_lengths(n_values: int, lengths: ArrayLike) -> IntArray:
    """Lengths of ragged sequences laid end to end, as an integer array.

    Raises:
        InvalidInputError: they are negative, not one-dimensional, or do not add up to ``n_values``.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    if counts.ndim != 1 or (counts < 0).any() or counts.sum() != n_values:
        raise InvalidInputError(
            f"lengths of shape {counts.shape} add up to {counts.sum()} for {n_values} values; "
            "give one non-negative length per sequence, values laid end to end"
        )
    return counts
