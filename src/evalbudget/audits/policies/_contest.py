"""Who is out: the capital of bets on every pair of systems, followed through one pass of an audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import mixture
from evalbudget.audits.policies._config import AuditConfig
from evalbudget.audits.policies._eprocess_batches import Drawn
from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True)
class Capital:
    """Log capital of all bets.

    Attributes:
        pairs: on each pair, shape (arms, arms, bets).
        followed: on whoever led when a batch began, against each arm, shape (arms, bets).
        close: on closeness, shape (arms, arms, bets).
        closeness: largest evidence of it so far, shape (arms, arms).
    """

    pairs: FloatArray
    followed: FloatArray
    close: FloatArray
    closeness: FloatArray

    @classmethod
    def none(cls, n_arms: int, n_bets: int) -> Capital:
        """Before the first bet."""
        pairs = np.zeros((n_arms, n_arms, n_bets))
        return cls(pairs, np.zeros((n_arms, n_bets)), pairs, np.zeros((n_arms, n_arms)))


@dataclass(frozen=True)
class Weighed:
    """What a first part of a batch proves.

    Attributes:
        first: the context after which each arm is dropped, shape (arms,); their number if it is not.
        certain: whether it is dropped for certain rather than with probability 1 - delta, shape (arms,).
        equivalent: the context after which some arm is within the margin of all that remain; their number if
            there is none.
        near: that arm; None while there is none.
        capital: after the last of them.
    """

    first: IntArray
    certain: NDArray[np.bool_]
    equivalent: int
    near: int | None
    capital: Capital


class Contest:
    """One pass: arms that may still win, and the capital of bets against each.

    The evidence of an earlier pass against an arm, or 1 if that is less, is what this one begins with: an arm
    that is the best of both is dropped in either with no more than the probability that one alone may spend.

    Args:
        config: settings.
        active: arms that may still win, shape (arms,).
        n_bets: on each pair.
        follow: share of the capital against an arm that bets on the leader being better; the rest bets on all
            others.
        before: the earlier pass.

    Attributes:
        active: arms that may still win.
        contenders: those that might when it began.
    """

    def __init__(
        self,
        config: AuditConfig,
        active: NDArray[np.bool_],
        n_bets: int,
        follow: float,
        before: Contest | None = None,
    ) -> None:
        K = active.size
        self.active, self.contenders = active.copy(), active.copy()
        self.capital = Capital.none(K, n_bets)
        self.start: FloatArray = np.ones(K)
        self._margin, self._follow, self.threshold = config.margin, follow, config.threshold
        self._near_level = self.threshold * max(K - 1, 1)
        """Evidence of closeness that counts: all arms but the best could wrongly be called as good as it."""
        self._near_start: FloatArray = np.ones((K, K))
        self._near_before: FloatArray = np.zeros((K, K))
        if before is not None:
            self.start = np.minimum(before.against, 1.0)
            self._near_start = np.minimum(mixture(before.capital.close), 1.0)
            self._near_before = before.capital.closeness

    @property
    def against(self) -> FloatArray:
        """Evidence against each arm, shape (arms,)."""
        return self._evidence(self.capital.pairs, self.capital.followed)

    def _evidence(self, pairs: FloatArray, followed: FloatArray) -> FloatArray:
        """Against each arm, from log capital with any axes before; half or most of it bets on whoever led."""
        others = self.contenders[:, None] & ~np.eye(self.active.size, dtype=bool)
        spread = np.where(others, mixture(pairs), 0.0).sum(axis=-2) / max(int(self.contenders.sum()) - 1, 1)
        found = (1.0 - self._follow) * spread + self._follow * mixture(followed)
        return np.asarray(self.start * found, dtype=np.float64)

    def weigh(self, drawn: Drawn, labels: FloatArray) -> Weighed:
        """What the first contexts of a batch prove, without learning from them.

        Args:
            drawn: the batch.
            labels: of its first contexts, complete, shape (contexts, arms of the batch); nan where a label
                was not wanted, or never came.
        """
        batch, n, K = drawn.batch, len(labels), self.active.size
        arms, found = batch.arms, batch.evidence(drawn, labels)
        pairs = np.broadcast_to(self.capital.pairs, (n, *self.capital.pairs.shape)).copy()
        pairs[np.ix_(np.arange(n), arms, arms)] += found.log  # what dropped arms proved stays as it was
        led = np.broadcast_to(self.capital.followed, (n, *self.capital.followed.shape)).copy()
        led[:, arms] += found.log[:, batch.rival, np.arange(arms.size)]
        against = self._evidence(pairs, led)
        certain = np.zeros((n, K), dtype=bool)
        certain[:, arms] = found.certain.any(axis=1)
        first, sure = np.full(K, n), np.zeros(K, dtype=bool)
        for k in np.flatnonzero(self.active):
            over = np.flatnonzero(certain[:, k] | (against[:, k] >= self.threshold))
            if over.size:
                first[k], sure[k] = over[0], certain[over[0], k]
        near, close, closeness = self._near(drawn, labels, first)
        last = Capital(pairs[-1], led[-1], close, closeness) if n else self.capital
        return Weighed(first, sure, *near, last)

    def _near(
        self, drawn: Drawn, labels: FloatArray, first: IntArray
    ) -> tuple[tuple[int, int | None], FloatArray, FloatArray]:
        """When some arm is within the margin of the rest, and which; with the capital that says so."""
        batch, n = drawn.batch, len(labels)
        close, closeness = self.capital.close.copy(), self.capital.closeness.copy()
        if not (self._margin > 0.0 and self.active.size > 1 and n):
            return (n, None), close, closeness
        both = np.ix_(batch.arms, batch.arms)
        found = batch.evidence(drawn, labels, self._margin)
        logs = found.log + close[both]
        peaks = np.maximum(np.maximum.accumulate(mixture(logs), axis=0), closeness[both])
        fine = found.certain | (self._near_start[both] * peaks >= self._near_level)
        fine |= self._near_before[both] >= self._near_level
        out = first[batch.arms] <= np.arange(n)[:, None]
        close[both], closeness[both] = logs[-1], peaks[-1]
        return first_near(fine, out, batch.arms, batch.leader), close, closeness

    def take(self, found: Weighed, n: int) -> NDArray[np.bool_]:
        """Go on from what a batch proved that ended after n contexts; which arms are dropped."""
        self.capital = found.capital
        dropped = self.active & (found.first < n)
        if dropped.sum() == self.active.sum():  # all at once: the one that was dropped last stays
            dropped[int(np.argmax(np.where(self.active, found.first, -1)))] = False
        self.active &= ~dropped
        return dropped


def first_near(
    fine: NDArray[np.bool_], out: NDArray[np.bool_], arms: IntArray, leader: int
) -> tuple[int, int | None]:
    """The first context after which some arm is as good as any left, up to the margin, and which.

    Args:
        fine: whether an arm (row) is proved as good as another (column), shape (contexts, arms, arms).
        out: whether an arm is dropped by then, shape (contexts, arms).
        arms: which ones these are.
        leader: the one to name if it is among several.

    Returns:
        The number of contexts and None if there is none.
    """
    near = (fine | out[:, None, :] | np.eye(arms.size, dtype=bool)).all(axis=2) & ~out
    near &= (~out).sum(axis=1, keepdims=True) > 1
    when = np.flatnonzero(near.any(axis=1))
    if not when.size:
        return len(fine), None
    t = int(when[0])
    chosen = arms[near[t]]
    return t, leader if leader in chosen else int(chosen[0])
