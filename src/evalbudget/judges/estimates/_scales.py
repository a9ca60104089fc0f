"""Judges on different scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInferenceError
from evalbudget.judges.estimates._scores import JudgeScores
from evalbudget.statistics._bounds import FloatArray

_RATIO = 2.0  # of ranges
_SPREAD = 1.75  # of standard deviations
_SIZE = 1.5  # of root mean squares
_CHANCE = 0.05
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class ScaleDiagnosis:
    """What the judges' scores span.

    Attributes:
        judges: names.
        low: smallest score of each, nan without scores.
        high: largest.
        odd: judges whose range does not fit that of the widest one; empty if all fit.
    """

    judges: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    odd: tuple[str, ...]

    @property
    def one_scale(self) -> bool:
        """Whether all judges may be using the same scale."""
        return not self.odd

    def __str__(self) -> str:
        spans = ", ".join(
            f"{name} {low:g} to {high:g}"
            for name, low, high in zip(self.judges, self.low, self.high, strict=True)
        )
        if self.one_scale:
            return f"one scale: {spans}"
        return f"different scales: {spans}; {', '.join(self.odd)} does not fit the widest"


def diagnose_scales(scores: JudgeScores) -> ScaleDiagnosis:
    """Compare the spread and the size of the judges' scores.

    A judge with 10 or more scores is odd if, against the judge whose scores spread most, all of this holds:
    its scores span less than half as much; their standard deviation is smaller by a factor of 1.75, and their
    root mean square by one of 1.5, both beyond what sampling explains (5%, over all pairs of judges). So
    mere bias, a lenient judge near the top of the scale and a range that is narrow by chance are not odd. A
    judge that gives one and the same score everywhere is odd only outside the widest judge's range.

    A harsh judge that uses less than half of the scale looks the same as one on another scale: leave the
    check out then.
    """
    K = scores.n_judges
    low, high = np.full(K, np.nan), np.full(K, np.nan)
    if scores.value.size:
        low, high = np.full(K, np.inf), np.full(K, -np.inf)
        np.minimum.at(low, scores.judge, scores.value)
        np.maximum.at(high, scores.judge, scores.value)
        low[scores.counts == 0] = high[scores.counts == 0] = np.nan
    span = high - low
    enough = scores.counts >= _FEWEST
    odd: list[str] = []
    if enough.any() and np.nanmax(span[enough]) > 0:
        spread = _Spread.of(scores)
        widest = int(np.argmax(np.where(enough, spread.deviation, -1.0)))
        smaller = spread.smaller_than(widest)
        for j in np.flatnonzero(enough).tolist():
            outside = low[j] > high[widest] or high[j] < low[widest]
            narrow = span[j] > 0 and span[j] * _RATIO < span[widest]
            if (narrow and smaller[j]) or (outside and span[j] == 0):
                odd.append(scores.judges[j])
    return ScaleDiagnosis(scores.judges, low, high, tuple(odd))


@dataclass(frozen=True, slots=True)
class _Spread:
    """Standard deviation and root mean square of each judge's scores, and the errors of their logarithms."""

    n: FloatArray
    deviation: FloatArray
    size: FloatArray
    size_error: FloatArray

    @classmethod
    def of(cls, scores: JudgeScores) -> _Spread:
        K, n = scores.n_judges, np.maximum(scores.counts, 1).astype(np.float64)
        mean = np.bincount(scores.judge, scores.value, K) / n
        centred = scores.value - mean[scores.judge]
        deviation = np.sqrt(np.bincount(scores.judge, centred**2, K) / np.maximum(n - 1, 1))
        square = np.bincount(scores.judge, scores.value**2, K) / n
        left = scores.value**2 - square[scores.judge]
        error = np.sqrt(np.bincount(scores.judge, left**2, K) / np.maximum(n - 1, 1) / n)
        relative = np.divide(error, 2.0 * square, out=np.zeros(K), where=square > 0)
        return cls(n, deviation, np.sqrt(square), relative)

    def smaller_than(self, widest: int) -> NDArray[np.bool_]:
        """Which judges' scores are smaller in spread and in size, beyond chance."""
        from scipy.special import ndtri

        z = float(ndtri(1.0 - _CHANCE / self.n.size**2))
        with np.errstate(divide="ignore"):
            spread = np.log(self.deviation[widest]) - np.log(self.deviation)
            size = np.log(self.size[widest]) - np.log(self.size)
        spread_error = np.sqrt(0.5 / np.maximum(self.n - 1, 1) + 0.5 / (self.n[widest] - 1))
        size_error = np.hypot(self.size_error, self.size_error[widest])
        found = (spread > np.maximum(np.log(_SPREAD), z * spread_error)) & (
            size > np.maximum(np.log(_SIZE), z * size_error)
        )
        return np.asarray(found)


def require_one_scale(scores: JudgeScores) -> None:
    """Refuse scores on different scales.

    Raises:
        InvalidInferenceError: naming the judges, their ranges and the remedy.
    """
    found = diagnose_scales(scores)
    if not found.one_scale:
        raise InvalidInferenceError(
            f"the judges seem to score on {found}. A panel mean needs one scale: rescale them, or drop "
            "the judge"
        )
