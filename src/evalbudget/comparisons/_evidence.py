"""What paired scores say of a candidate, in the units of the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._paired_test import PairedDraws, UnorderedPairs


class Verdict(StrEnum):
    """On a candidate."""

    WORSE = "worse"
    """Its mean score is below the baseline's."""
    NOT_WORSE = "not worse"
    """Its mean score is not below the baseline's by the margin or more."""


def check_margin(margin: float, bounds: tuple[float, float]) -> float:
    """Return the margin if it is above 0 and below the range of the scores.

    Raises:
        InvalidInputError: it is not.
    """
    span = bounds[1] - bounds[0]
    if not (math.isfinite(margin) and 0.0 < margin < span):
        raise InvalidInputError(
            f"--margin {margin:g}: give what a candidate may be worse by, above 0 and below {span:g}, the "
            "range of the scores; for example 0.01"
        )
    return margin


@dataclass(frozen=True)
class GateEvidence:
    """Differences of one candidate from the baseline.

    Attributes:
        draws: on the scale on which scores span [0, 1].
        alpha: probability of each of the two wrong verdicts, and of each wrong end of the interval.
        span: range of the scores.
        failed: items that one of the two has no score on; they are left out.
    """

    draws: PairedDraws
    alpha: float
    span: float
    failed: int

    @classmethod
    def of(
        cls,
        difference: FloatArray,
        cluster: IntArray,
        *,
        margin: float,
        alpha: float,
        largest: int,
        pool: int | None,
        span: float,
        unordered: bool = False,
    ) -> GateEvidence:
        """From differences in the order drawn.

        Args:
            difference: candidate less baseline on each item, scores spanning [0, 1]; nan where one failed,
                shape (n,).
            cluster: number of each item's cluster, the items of one in a row, shape (n,).
            margin: in the units of the scores.
            alpha: see GateEvidence.
            largest: items of the largest cluster of all.
            pool: items, where the claim is about these only; clusters play no part then.
            span: range of the scores.
            unordered: all were there before the first was looked at.
        """
        kind = UnorderedPairs if unordered else PairedDraws
        known = ~np.isnan(difference)
        failed = int((~known).sum())
        if pool is not None:
            one = np.ones(difference.size, dtype=np.int64)
            return cls(kind(difference, one, margin / span, pool=pool), alpha, span, failed)
        change = np.flatnonzero(np.diff(cluster[known], prepend=-1))
        return cls(
            kind(
                np.add.reduceat(difference[known], change) if change.size else np.zeros(0),
                np.diff(change, append=int(known.sum())).astype(np.int64),
                margin / span,
                largest,
            ),
            alpha,
            span,
            failed,
        )

    @cached_property
    def verdict(self) -> Verdict | None:
        """What was proved first; None: nothing is yet."""
        if self.draws.is_exhausted:
            return Verdict.WORSE if self.draws.mean <= -self.draws.margin else Verdict.NOT_WORSE
        aim = math.log(1.0 / self.alpha)
        not_worse = self._first(self.draws.log_capital(-self.draws.margin), aim)
        worse = self._first(self.draws.log_capital(0.0, at_least=True), aim)
        if not_worse == worse == math.inf:
            return None
        return Verdict.NOT_WORSE if not_worse <= worse else Verdict.WORSE

    @staticmethod
    def _first(log: FloatArray, aim: float) -> float:
        reached = np.flatnonzero(log >= aim)
        return float(reached[0]) if reached.size else math.inf

    @property
    def is_anytime(self) -> bool:
        """Whether it may be looked at whenever one likes; otherwise once."""
        return not isinstance(self.draws, UnorderedPairs)

    @property
    def difference(self) -> float:
        """Mean of candidate less baseline, in the units of the scores; nan before the first item."""
        return self.draws.mean * self.span

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Of the difference, in the units of the scores; either end is ever wrong with alpha at most."""
        low, high = self.draws.interval(self.alpha)
        return low * self.span, high * self.span

    @property
    def items(self) -> int:
        """Compared."""
        return self.draws.items

    @property
    def clusters(self) -> int:
        """Of items, compared."""
        return int(self.draws.total.size)

    def items_needed(self) -> int | None:
        """About so many items in all would decide it, were the truth no difference; None if it is decided.

        With no difference, capital grows by about m^2 / (2 v) per cluster; v is the variance so far.
        """
        if self.verdict is not None or self.draws.total.size < 2:
            return None
        return self.draws.needed(self.alpha)
