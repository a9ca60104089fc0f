r"""Which model is proved to beat which: evidence that may be looked at after every judgement.

Against "A's win rate against B is at most 1/2" capital is bet on values in which the position cancels, and
A is proved to beat B once it reaches 1/a (:mod:`evalbudget.statistics._paired_test`, on the mean of
:math:`d = 2y - 1`, where y is the value for A). There are two such values, and a is divided between them:

- *fresh*: items in the order in which the pair first met on them; one on which A was shown first
  and one on which B was, the k-th of each, give a y, the mean of both. The position cancels as long as which
  order an item is first shown in does not depend on the item.
- *swapped*: items shown in both orders, in the order in which the second one was asked; y is the
  mean over the two.

Judges differ in what position does to them, so it cancels within a judge only: two fresh items go together
if the same judges saw them in opposite orders, and an item is swapped for a judge who saw both. No item is in
two values of a proof. Where all verdicts were there before one looked, an item counts by the mean of the
judges who saw the pair in both orders, or by its first judge, whichever leaves more values; otherwise by its
first judge. Which judge sees which item, and in which order, must not depend on verdicts.

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
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evalbudget.statistics import FloatArray, PairedDraws, UnorderedPairs, check_delta

_GAP = 0.1
"""Smallest gap bet on, in 2y - 1: a win rate of 55%. The next ones are 60% and 70%, and what is seen."""
_MOST = 0.75
"""Part of the error that the likelier proof has."""

_Shown = tuple[int, int, bool]
"""Item, judge, and whether A was shown first."""


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
        judge: Sequence[int] | None = None,
        *,
        unordered: bool = False,
    ) -> PairEvidence:
        """From judgements of one pair, in the order in which they were asked.

        Args:
            item: of each.
            a_first: whether A was shown first.
            value: for A, in [0, 1]; of several of one item, judge and order the first one counts, or, if they
                are unordered, their mean.
            judge: who said so; None for one judge.
            unordered: all were there before the first was looked at.
        """
        said: dict[_Shown, list[float]] = {}
        judges = [0] * len(item) if judge is None else judge
        for number, who, order, each in zip(item, judges, a_first, value, strict=True):
            said.setdefault((number, who, order), []).append(each)
        # in order, what was looked at already may not change
        means = {key: sum(each) / len(each) if unordered else each[0] for key, each in said.items()}
        swapped, at_once = _swapped(means, unordered=unordered)
        kind = UnorderedPairs if unordered else PairedDraws
        draws = [
            kind(np.array(d), np.ones(len(d), np.int64), _GAP)
            for d in (_fresh(means, unordered=unordered), swapped)
        ]
        items = len({number for number, _, _ in means})
        return cls(draws[0], draws[1], 1.0 - _MOST if 2 * at_once >= max(items, 1) else _MOST)

    @cached_property
    def both(self) -> tuple[float, float]:
        """Log of what 1/a is compared with: that A beats B, and that B beats A."""
        fresh, swapped = (
            [draws.evidence(0.0, at_least=not for_a) + math.log(share) for for_a in (True, False)]
            for draws, share in ((self.fresh, self.share), (self.swapped, 1.0 - self.share))
        )
        return max(fresh[0], swapped[0], 0.0), max(fresh[1], swapped[1], 0.0)

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


def _swapped(means: Mapping[_Shown, float], *, unordered: bool) -> tuple[list[float], int]:
    """2y - 1 of each item that a judge saw in both orders; and how many were shown in both at once."""
    found: dict[int, list[float]] = {}
    seen: set[_Shown] = set()
    at_once, before = 0, -1
    for (item, judge, order), mean in means.items():
        if (other := (item, judge, not order)) in seen:
            at_once += item not in found and (unordered or item == before)
            found.setdefault(item, []).append(mean + means[other] - 1.0)
        seen.add((item, judge, order))
        before = item
    return [sum(d) / len(d) if unordered else d[0] for d in found.values()], at_once


def _fresh(means: Mapping[_Shown, float], *, unordered: bool) -> list[float]:
    """2y - 1 of each two items that the same judges saw first in opposite orders."""
    first: dict[int, dict[int, tuple[bool, float]]] = {}
    for (item, judge, order), mean in means.items():
        first.setdefault(item, {}).setdefault(judge, (order, mean))
    alone = _opposites([dict([next(iter(shown.items()))]) for shown in first.values()])
    if not unordered:  # what other judges say later may not change what was looked at
        return alone
    orders = {(judge, order) for shown in first.values() for judge, (order, _) in shown.items()}
    both = {judge for judge, order in orders if (judge, not order) in orders}
    panel = _opposites([{j: of for j, of in shown.items() if j in both} for shown in first.values()])
    return panel if len(panel) >= len(alone) else alone  # which of them does not depend on a verdict


def _opposites(items: Sequence[Mapping[int, tuple[bool, float]]]) -> list[float]:
    """2y - 1 of each two items that have the same judges and opposite orders, as the second one comes.

    Args:
        items: of each, by judge, whether A was shown first, and the value for A.
    """
    waiting: defaultdict[frozenset[tuple[int, bool]], deque[float]] = defaultdict(deque)
    found = []
    for shown in items:
        if shown:
            mean = sum(value for _, value in shown.values()) / len(shown)
            opposite = waiting[frozenset((judge, not order) for judge, (order, _) in shown.items())]
            if opposite:
                found.append(mean + opposite.popleft() - 1.0)
            else:
                waiting[frozenset((judge, order) for judge, (order, _) in shown.items())].append(mean)
    return found


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
