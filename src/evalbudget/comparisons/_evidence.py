"""What paired scores say of a candidate, in the units of the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
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
class Differences:
    """Of items, one score less the other, on the scale on which scores span [0, 1].

    A score that is missing is worth the worst for what is claimed: against "not worse" the lowest of the
    candidate and the highest of the baseline, for "worse" the other way round.

    Attributes:
        known: of items that both have a score on; nan elsewhere, shape (n,).
        lowest: of all items, missing scores at the worst for the first; nan where neither says anything.
        highest: the same at the best.
    """

    known: FloatArray
    lowest: FloatArray
    highest: FloatArray

    @classmethod
    def of(
        cls, candidate: FloatArray, baseline: FloatArray, *, missing: Missing = Missing.WORST
    ) -> Differences:
        """Of scores in [0, 1], 1 the best; nan where one is missing, shapes (n,)."""
        if missing is Missing.ZERO:
            candidate, baseline = np.nan_to_num(candidate), np.nan_to_num(baseline)
        known = candidate - baseline
        if missing is Missing.DROP:
            return cls(known, known, known)
        return cls(
            known,
            np.nan_to_num(candidate, nan=0.0) - np.nan_to_num(baseline, nan=1.0),
            np.nan_to_num(candidate, nan=1.0) - np.nan_to_num(baseline, nan=0.0),
        )

    @classmethod
    def between(
        cls,
        first: tuple[FloatArray, FloatArray, FloatArray],
        second: tuple[FloatArray, FloatArray, FloatArray],
    ) -> Differences:
        """Of scores as far as they are known, with what is missing the worst, and the best."""
        return cls(first[0] - second[0], first[1] - second[2], first[2] - second[1])


@dataclass(frozen=True)
class GateEvidence:
    """Differences of one candidate from the baseline.

    Attributes:
        draws: of items that both have a score on, on the scale on which scores span [0, 1].
        at_worst: of all items, missing scores at the worst for the candidate.
        at_best: the same at the best.
        alpha: probability of each of the two wrong verdicts, and of each wrong end of the interval.
        span: range of the scores.
        failed: items that one of the two has no score on, or not all of its scores, and that count.
    """

    draws: PairedDraws
    at_worst: PairedDraws
    at_best: PairedDraws
    alpha: float
    span: float
    failed: int

    @classmethod
    def of(
        cls,
        differences: Differences,
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
            differences: candidate less baseline, of n items.
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

        open_ones = differences.highest - differences.lowest > _ROUNDING
        known = draws(differences.known)
        at_worst = at_best = known
        if open_ones.any():
            at_worst, at_best = draws(differences.lowest), draws(differences.highest)
        return cls(known, at_worst, at_best, alpha, span, int(open_ones.sum()))

    @cached_property
    def verdict(self) -> Verdict | None:
        """What is proved, whatever the missing scores would have been; None: nothing is yet."""
        return self._verdict(self.at_worst, self.at_best)

    @cached_property
    def if_dropped(self) -> Verdict | None:
        """What would be proved, had chance picked the missing scores."""
        return self._verdict(self.draws, self.draws)

    def _verdict(self, at_worst: PairedDraws, at_best: PairedDraws) -> Verdict | None:
        margin = self.draws.margin
        if at_worst.is_exhausted:
            if at_worst.mean > -margin + _ROUNDING:
                return Verdict.NOT_WORSE
            return Verdict.WORSE if at_best.mean <= -margin + _ROUNDING else None
        aim = math.log(1.0 / self.alpha)
        not_worse, worse = (found >= aim for found in self._evidence(at_worst, at_best))
        if not_worse and worse:  # a drop between nothing and the margin: what it is nearer to
            not_worse = 0.5 * (at_worst.mean + at_best.mean) > -0.5 * margin
        return Verdict.NOT_WORSE if not_worse else Verdict.WORSE if worse else None

    def _evidence(self, at_worst: PairedDraws, at_best: PairedDraws) -> tuple[float, float]:
        """For "not worse" and for "worse"."""
        return at_worst.evidence(-self.draws.margin), at_best.evidence(0.0, at_least=True)

    def lacking(self) -> float:
        """About so many items more would decide it, did evidence go on as it grew; infinite if it did not."""
        grown = max(self._evidence(self.at_worst, self.at_best))
        return self.items * (math.log(1.0 / self.alpha) / grown - 1.0) if grown > 0.0 else math.inf

    @property
    def is_anytime(self) -> bool:
        """Whether it may be looked at whenever one likes; otherwise once."""
        return not isinstance(self.draws, UnorderedPairs)

    @property
    def difference(self) -> float:
        """Mean of candidate less baseline, in the units of the scores; nan before the first item."""
        return self.draws.mean * self.span

    @property
    def ends(self) -> tuple[float, float]:
        """What that mean would be with the missing scores at the worst and at the best for the candidate."""
        return self.at_worst.mean * self.span, self.at_best.mean * self.span

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Of the difference, in the units of the scores; either end is ever wrong with alpha at most."""
        low, high = self.at_worst.interval(self.alpha)[0], self.at_best.interval(self.alpha)[1]
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
