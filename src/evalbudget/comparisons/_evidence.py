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

_FEWEST = 2
_ROUNDING = 1e-9


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

    An item that one of the two failed on proves nothing for the candidate: against "not worse" a failure of
    the candidate counts as the lowest score and one of the baseline as the highest, and both are left out
    against "worse".

    Attributes:
        draws: of items that both have a score on, on the scale on which scores span [0, 1].
        at_worst: the same with the candidate's failures as lowest scores, the baseline's as highest.
        alpha: probability of each of the two wrong verdicts, and of each wrong end of the interval.
        span: range of the scores.
        failed: items that one of the two has no score on.
    """

    draws: PairedDraws
    at_worst: PairedDraws
    alpha: float
    span: float
    failed: int

    @classmethod
    def of(
        cls,
        baseline: FloatArray,
        candidate: FloatArray,
        cluster: IntArray,
        *,
        margin: float,
        alpha: float,
        largest: int,
        pool: int | None,
        span: float,
        unordered: bool = False,
    ) -> GateEvidence:
        """From scores in the order drawn.

        Args:
            baseline: score of each item, scores spanning [0, 1]; nan where it failed, shape (n,).
            candidate: likewise.
            cluster: number of each item's cluster, the items of one in a row, shape (n,).
            margin: in the units of the scores.
            alpha: see GateEvidence.
            largest: items of the largest cluster of all.
            pool: items, where the claim is about these only; clusters play no part then.
            span: range of the scores.
            unordered: all were there before the first was looked at.
        """
        kind = UnorderedPairs if unordered else PairedDraws

        def draws(difference: FloatArray) -> PairedDraws:
            if pool is not None:
                one = np.ones(difference.size, dtype=np.int64)
                return kind(difference, one, margin / span, pool=pool)
            known = ~np.isnan(difference)
            if largest == 1:
                return kind(difference[known], np.ones(int(known.sum()), dtype=np.int64), margin / span)
            change = np.flatnonzero(np.diff(cluster[known], prepend=-1))
            return kind(
                np.add.reduceat(difference[known], change) if change.size else np.zeros(0),
                np.diff(change, append=int(known.sum())).astype(np.int64),
                margin / span,
                largest,
            )

        difference = candidate - baseline
        failed = int(np.isnan(difference).sum())
        left_out = at_worst = draws(difference)
        if failed:
            at_worst = draws(np.nan_to_num(candidate, nan=0.0) - np.nan_to_num(baseline, nan=1.0))
        return cls(left_out, at_worst, alpha, span, failed)

    @cached_property
    def verdict(self) -> Verdict | None:
        """What is proved; None: nothing is yet."""
        if self.draws.is_exhausted:
            if self.at_worst.mean > -self.draws.margin + _ROUNDING:
                return Verdict.NOT_WORSE
            return Verdict.WORSE if self.draws.mean <= -self.draws.margin + _ROUNDING else None
        aim = math.log(1.0 / self.alpha)
        not_worse = self.at_worst.evidence(-self.draws.margin) >= aim
        worse = self.draws.evidence(0.0, at_least=True) >= aim
        if not_worse and worse:  # a drop between nothing and the margin: what it is nearer to
            not_worse = self.draws.mean > -0.5 * self.draws.margin
        return Verdict.NOT_WORSE if not_worse else Verdict.WORSE if worse else None

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
        low, high = self.at_worst.interval(self.alpha)[0], self.draws.interval(self.alpha)[1]
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

        With a pool, at most all of it. None where more than these were read: chance has been against it.
        """
        if self.verdict is not None or self.items < _FEWEST:
            return None
        needed = self.draws.needed(self.alpha)
        if needed is not None and self.draws.pool is not None:
            needed = min(needed, self.draws.pool)
        return needed if needed is not None and needed > self.items + self.failed else None
