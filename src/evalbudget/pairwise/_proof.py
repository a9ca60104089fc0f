r"""Which model is proved to beat which: evidence that may be looked at after every judgement.

Against "A's win rate against B is at most 1/2" capital is bet on values in which the position cancels, and
A is proved to beat B once it reaches 1/a (:mod:`evalbudget.statistics._paired_test`, on the mean of
:math:`d = 2y - 1`, where y is the value for A). There are two such values, and a is divided between them:

- *fresh*: items in the order in which the pair first met on them; one on which A was shown first
  and one on which B was, the k-th of each, give a y, the mean of both. The position cancels as long as which
  order an item is first shown in does not depend on the item.
- *swapped*: items shown in both orders, in the order in which the second one was asked; y is the
  mean over the two.

Fresh has 3/4 of a, unless half of the items or more are shown in both orders at once, which no verdict
decides; then swapped has.

Of k models there are k (k - 1) statements "A beats B", and each has delta / (k (k - 1)): the probability
that any of those made is wrong is at most delta, at whatever moment one looks and however it was decided
which pair is asked next, as long as that decides how far a pair gets along its items and not which come
first. A model that is proved to beat every other one is the winner. There need not be one: three models may
beat each other in a circle.

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evalbudget.statistics._best_proof import check_delta
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._paired_test import PairedDraws, UnorderedPairs

_GAP = 0.1
"""Smallest gap bet on, in 2y - 1: a win rate of 55%. The next ones are 60% and 70%, and what is seen."""
_MOST = 0.75
"""Part of the error that the likelier proof has."""


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """What two models' judgements prove, A being the first of them.

    Attributes:
        fresh: 2y - 1 of each two items, see above.
        swapped: of each item in both orders.
        share: part of the error that ``fresh`` has; ``swapped`` has the rest.
    """

    fresh: PairedDraws
    swapped: PairedDraws
    share: float = _MOST

    @classmethod
    def of(
        cls,
        item: Sequence[int],
        a_first: Sequence[bool],
        value: Sequence[float],
        *,
        unordered: bool = False,
    ) -> PairEvidence:
        """From judgements of one pair, in the order in which they were asked.

        Args:
            item: of each.
            a_first: whether A was shown first.
            value: for A, in [0, 1]; several of one item and order count as their mean, at their first place.
            unordered: all were there before the first was looked at.
        """
        sums: dict[tuple[int, bool], list[float]] = {}
        at_once, before = 0, -1
        for each in zip(item, a_first, value, strict=True):
            sums.setdefault(each[:2], []).append(each[2])
        means = {key: sum(values) / len(values) for key, values in sums.items()}
        first: dict[int, bool] = {}
        queues: tuple[list[float], list[float]] = ([], [])
        swapped: list[float] = []
        for (number, order), mean in means.items():
            if number in first:
                at_once += unordered or number == before
                swapped.append(mean + means[number, not order] - 1.0)
            else:
                first[number] = order
                queues[order].append(mean)
            before = number
        fresh = [one + other - 1.0 for one, other in zip(*queues, strict=False)]
        kind = UnorderedPairs if unordered else PairedDraws
        draws = [kind(np.array(d), np.ones(len(d), np.int64), _GAP) for d in (fresh, swapped)]
        return cls(draws[0], draws[1], 1.0 - _MOST if 2 * at_once >= max(len(first), 1) else _MOST)

    def log_evidence(self, *, for_a: bool) -> float:
        """Log of what 1/a is compared with, that A beats B, or the other way."""
        fresh = self.fresh.evidence(0.0, at_least=not for_a) + math.log(self.share)
        swapped = self.swapped.evidence(0.0, at_least=not for_a) + math.log1p(-self.share)
        return max(fresh, swapped, 0.0)

    @cached_property
    def both(self) -> tuple[float, float]:
        """Log evidence that A beats B, and that B beats A."""
        return self.log_evidence(for_a=True), self.log_evidence(for_a=False)

    def interval(self, level: float) -> tuple[float, float]:
        """Of A's win rate, valid at every moment; each pair for itself."""
        alpha = (1.0 - level) / 2.0
        ends = [
            self.fresh.interval(self.share * alpha),
            self.swapped.interval((1.0 - self.share) * alpha),
        ]
        low, high = max(low for low, _ in ends), min(high for _, high in ends)
        if low > high:  # the two contradict each other, as both may with little probability
            low, high = high, low
        return 0.5 * (1.0 + low), 0.5 * (1.0 + high)


def beats(log_evidence: FloatArray, delta: float) -> FloatArray:
    """Which model is proved to beat which.

    Args:
        log_evidence: that one beats another, shape (n_models, n_models).
        delta: probability that any statement is wrong.

    Returns:
        1 where the row's model is proved to beat the column's, else 0, same shape.
    """
    k = log_evidence.shape[0]
    aim = math.log(k * (k - 1) / check_delta(delta))
    return np.where(log_evidence >= aim, 1.0, 0.0)


def winner(proved: FloatArray) -> int | None:
    """The model that is proved to beat every other one."""
    won = np.flatnonzero(proved.sum(axis=1) == proved.shape[0] - 1)
    return int(won[0]) if won.size else None
