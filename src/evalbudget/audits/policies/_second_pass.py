"""The second pass: when every item was drawn and nobody has won, the contenders' other answers are labelled.

Items come in a new random order, none twice, and on each the answers of all contenders that have no label
yet get one. What is known by then predicts the rest: a label at a judge's score, plus what the item's known
labels of any system say of the item. Evidence about this pool (:mod:`evalbudget.audits._finite_pool`)
drops contenders on the way; with all labels there the means are exact, so it ends decided.

The evidence of the first pass against a system, or 1 if that is less, is the capital that the second begins
with. A system that is the best both of items like these and of these items is therefore dropped, in either
pass, with no more than the probability that the first alone may spend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import mixture
from evalbudget.audits._finite_pool import GAPS, PoolMeans, Rest, pool_evidence
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._config import AuditConfig
from evalbudget.statistics._bounds import FloatArray, IntArray

FOLLOW = 0.9
"""Share of the capital against an arm that bets on the leader being better; the rest bets on all others."""
PRIOR = 8.0
"""Labels that the common variance of residuals counts as in each arm's."""


@dataclass(frozen=True)
class Pool:
    """Every item once, in the order of the first pass; all but ``items`` and ``segment`` (items, arms).

    Attributes:
        items: indices of the design's items, shape (items,).
        segment: shape (items,).
        judge: scores, nan where there is none.
        label: labels, nan where there is none.
        read: labels that were asked for, those that never came included.
        seen: whether the arm took part.
    """

    items: IntArray
    segment: IntArray
    judge: FloatArray
    label: FloatArray
    read: NDArray[np.bool_]
    seen: NDArray[np.bool_]


@dataclass(frozen=True)
class SecondBatch:
    """Contexts of the second pass whose labels are asked for together; as ``Frozen``, with no coins.

    Attributes:
        number: of the batch.
        first: number of its first context.
        items: drawn, shape (contexts,).
        rows: of the pool, shape (contexts,).
        arms: that can still win, increasing, shape (k,).
        wanted: answers without a label, shape (contexts, k); some on every context.
        prediction: f, shape (contexts, k).
        judge: scores of the first pass, shape (contexts, k).
        leader: the arm with the largest mean, known or predicted.
        rival: of each of these arms, the position in ``arms`` of one thought to be better, shape (k,).
        rest: the pool before these contexts, these arms; its first rows are the contexts.
        variance: of y - f, shape (k,).
    """

    number: int
    first: int
    items: IntArray
    rows: IntArray
    arms: IntArray
    wanted: NDArray[np.bool_]
    prediction: FloatArray
    judge: FloatArray
    leader: int
    rival: IntArray
    rest: Rest
    variance: FloatArray

    @property
    def judged(self) -> bool:
        """The judge was asked in the first pass."""
        return False


@dataclass(frozen=True)
class Weighed:
    """What a first part of a batch proves; arrays of (arms, arms, bets) unless said otherwise.

    Attributes:
        first: the context after which each arm is dropped, shape (arms,); their number if it is not.
        equivalent: the one after which some arm is within the margin of all that remain; likewise.
        near: that arm; None while there is none.
        capital: log capital of the bets on each pair.
        followed: of the bets on whoever led, against each arm, shape (arms, bets).
        close: of the bets on closeness.
        closeness: largest evidence of closeness so far, shape (arms, arms).
    """

    first: IntArray
    equivalent: int
    near: int | None
    capital: FloatArray
    followed: FloatArray
    close: FloatArray
    closeness: FloatArray


@dataclass(frozen=True)
class SecondWeighed(Weighed):
    """Of the second pass.

    Attributes:
        certain: whether an arm is dropped for certain rather than with probability 1 - delta, shape (arms,).
    """

    certain: NDArray[np.bool_]


def share_of_delta(config: AuditConfig) -> float:
    """What the second pass may spend of the error that a single system's interval is allowed.

    The two passes make claims about different means, so each has its own part. A pool that could be too small
    for the first pass (scores of 0 or 1, half of each, and no judge) leaves most to the second.
    """
    if config.half_width is None:
        return 0.0
    most = 2.0 * 0.25 * math.log(2.0 / config.delta) / config.half_width**2
    return 0.8 if config.n_items <= most else 0.1


class SecondPass:
    """What is known of the pool, and what is asked next.

    Args:
        config: settings.
        pool: as the first pass left it.
        active: arms that may still win, shape (arms,).
        against: evidence of the first pass against each arm, shape (arms,).
        near: evidence of the first pass that i is within the margin of j or better, shape (arms, arms).
        proved: the largest that this ever was.
        threshold: evidence that drops an arm.
    """

    def __init__(
        self,
        config: AuditConfig,
        pool: Pool,
        active: NDArray[np.bool_],
        against: FloatArray,
        near: FloatArray,
        proved: FloatArray,
        threshold: float,
    ) -> None:
        K = config.n_models
        self.config, self.pool, self.threshold = config, pool, threshold
        self.active = active.copy()
        self.contenders = active.copy()
        """Arms that might still win when it began."""
        self.certain: NDArray[np.bool_] = np.ones(K, dtype=bool)
        """Whether an arm that was dropped since was dropped for certain."""
        self.batches = 0
        self.contexts = 0
        self.labels: IntArray = np.zeros(K, dtype=np.int64)
        self._start = np.minimum(against, 1.0)
        self._near_start = np.minimum(near, 1.0)
        self._near_before = proved
        self._capital: FloatArray = np.zeros((K, K, GAPS.size))
        self._followed: FloatArray = np.zeros((K, GAPS.size))
        self._close: FloatArray = np.zeros((K, K, GAPS.size))
        self._closeness: FloatArray = np.zeros((K, K))
        self._means = PoolMeans(K)
        self._fed: list[tuple[SecondBatch, FloatArray, FloatArray]] = []
        self._order: IntArray = np.random.default_rng((config.seed, 2)).permutation(len(pool.items))
        self._label, self._read = pool.label.copy(), pool.read.copy()
        self._calibrated: tuple[FloatArray, FloatArray] | None = None

    # what is known

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Answers of arms that may still win without a label, shape (items, arms)."""
        return ~self._read & self.active

    @property
    def wanted(self) -> int:
        """Labels that it still needs at most."""
        return int(self.unknown.sum())

    def rest(self) -> Rest:
        """The pool as it is known now; only arms that may still win are meaningful."""
        known = np.where(self._read, np.nan_to_num(self._label, nan=0.0), 0.0)
        never = (self._read & np.isnan(self._label)).sum(axis=0)
        low = known.sum(axis=0)
        return Rest(len(known), low, low + never, self._predict()[0], self.unknown)

    def estimates(self) -> FloatArray:
        """Mean of each arm over the pool, shape (arms,): labels, and predictions where there is none."""
        return self._whole().estimate

    def complete(self, arm: int) -> bool:
        """Whether every answer of an arm has a label."""
        return not np.isnan(self._label[:, arm]).any()

    def interval(self, arm: int) -> tuple[float, float]:
        """Anytime bounds of an arm's mean over the pool; simultaneous over the arms."""
        for batch, lowest, highest in self._fed:
            self._means.update(batch.arms, batch.rest, lowest, highest, batch.variance)
        self._fed = []
        c = self.config
        alpha = c.delta * (share_of_delta(c) if c.n_models == 1 else 1.0) / c.n_models
        low, high = self._means.interval(arm, alpha)
        least, most = (float(ends[arm]) for ends in self._whole().bounds())
        low, high = max(low, least), min(high, most)
        return (low, high) if low <= high else (least, most)

    def _whole(self) -> Rest:
        """As :meth:`rest`, arms that were dropped included."""
        rest = self.rest()
        return Rest(rest.n_items, rest.low, rest.high, rest.prediction, ~self._read)

    def settle(self) -> None:
        """Drop arms that what is known rules out for certain."""
        beaten = (self.rest().certain() & self.active[:, None]).any(axis=0) & self.active
        self.active &= ~beaten

    # batches

    def freeze(self, before: int, aim: int) -> SecondBatch | None:
        """The next contexts, of about ``aim`` labels; None when all labels are there.

        Args:
            before: batches of the first pass.
            aim: how many labels.
        """
        unknown = self.unknown
        left = self._order[unknown[self._order].any(axis=1)]
        if not left.size:
            return None
        needed = np.cumsum(unknown[left].sum(axis=1))
        n = max(1, int(np.searchsorted(needed, aim, side="right")))
        prediction, variance = self._predict()
        arms = np.flatnonzero(self.active)
        whole = self.rest()
        there = np.ix_(left, arms)
        rest = Rest(whole.n_items, whole.low[arms], whole.high[arms], prediction[there], unknown[there])
        value = whole.estimate[arms]
        at = int(np.argmax(value))
        rival = np.full(arms.size, at, dtype=np.int64)
        if arms.size > 1:
            rival[at] = int(np.argmax(np.where(np.arange(arms.size) == at, -np.inf, value)))
        rows = left[:n]
        cells = np.ix_(rows, arms)
        return SecondBatch(
            number=before + self.batches,
            first=len(self.pool.items) + self.contexts,
            items=self.pool.items[rows],
            rows=rows,
            arms=arms,
            wanted=unknown[cells],
            prediction=prediction[cells],
            judge=self.pool.judge[cells],
            leader=int(arms[at]),
            rival=rival,
            rest=rest,
            variance=variance[arms],
        )

    def weigh(self, batch: SecondBatch, labels: FloatArray) -> SecondWeighed:
        """What labels of the batch's first contexts prove, shape (contexts, k), nan where one never came."""
        K, n, arms = self.config.n_models, len(labels), batch.arms
        low, high = np.nan_to_num(labels, nan=0.0), np.nan_to_num(labels, nan=1.0)
        found = pool_evidence(batch.rest, low, high, batch.variance)
        pairs = np.broadcast_to(self._capital, (n, *self._capital.shape)).copy()
        pairs[np.ix_(np.arange(n), arms, arms)] += found.log  # what dropped arms proved stays as it was
        led = np.broadcast_to(self._followed, (n, *self._followed.shape)).copy()
        led[:, arms] += found.log[:, batch.rival, np.arange(arms.size)]
        others = self.contenders[:, None] & ~np.eye(K, dtype=bool)
        # most of the capital bets on whoever leads: predictions name the leader well by now
        spread = np.where(others, mixture(pairs), 0.0).sum(axis=1) / max(int(self.contenders.sum()) - 1, 1)
        against = self._start * ((1.0 - FOLLOW) * spread + FOLLOW * mixture(led))
        certain = np.zeros((n, K), dtype=bool)
        certain[:, arms] = found.certain.any(axis=1)
        first, sure = np.full(K, n), np.zeros(K, dtype=bool)
        for k in np.flatnonzero(self.active) if K > 1 else ():
            over = np.flatnonzero(certain[:, k] | (against[:, k] >= self.threshold))
            if over.size:
                first[k], sure[k] = over[0], certain[over[0], k]
        close, closeness, decided, near = self._close, self._closeness, n, None
        if self.config.margin > 0.0 and K > 1:
            margin = self.config.margin
            both = np.ix_(arms, arms)
            nearly = pool_evidence(batch.rest, low, high, batch.variance, margin)
            logs = nearly.log + self._close[both]
            peaks = np.maximum(np.maximum.accumulate(mixture(logs), axis=0), self._closeness[both])
            fine = nearly.certain | (self._near_start[both] * peaks >= self._near_level)
            fine |= self._near_before[both] >= self._near_level
            decided, near = first_near(fine, first[arms] <= np.arange(n)[:, None], arms, batch.leader)
            if n:
                close, closeness = self._close.copy(), self._closeness.copy()
                close[both], closeness[both] = logs[-1], peaks[-1]
        capital, followed = (pairs[-1], led[-1]) if n else (self._capital, self._followed)
        return SecondWeighed(first, decided, near, capital, followed, close, closeness, sure)

    def learn(self, batch: SecondBatch, labels: FloatArray, found: SecondWeighed) -> None:
        """Take a complete batch in, or a first part of it after which nothing more is asked."""
        n = len(labels)
        self._fed.append((batch, np.nan_to_num(labels, nan=0.0), np.nan_to_num(labels, nan=1.0)))
        cells = np.ix_(batch.rows[:n], batch.arms)
        asked = batch.wanted[:n]
        self._label[cells] = np.where(asked, labels, self._label[cells])
        self._read[cells] |= asked
        self.labels[batch.arms] += (asked & ~np.isnan(labels)).sum(axis=0)
        self._capital, self._followed = found.capital, found.followed
        self._close, self._closeness = found.close, found.closeness
        self.batches += 1
        self.contexts += n
        dropped = self.active & (found.first < n)
        if dropped.sum() == self.active.sum():  # all at once: the one that was dropped last stays
            dropped[int(np.argmax(np.where(self.active, found.first, -1)))] = False
        self.certain &= ~dropped | found.certain
        self.active &= ~dropped
        self._calibrated = None
        # what was dropped by evidence may be out of reach by now
        self.certain |= (self._whole().certain() & self.active[:, None]).any(axis=0)

    @property
    def _near_level(self) -> float:
        """Evidence of closeness that counts: all arms but the best could wrongly be called as good as it."""
        return self.threshold * max(self.config.n_models - 1, 1)

    # predictions

    def _predict(self) -> tuple[FloatArray, FloatArray]:
        """Predictions f of every answer, shape (items, arms), and the variance of y - f, shape (arms,)."""
        if self._calibrated is None:
            c, pool = self.config, self.pool
            calibration = Calibration.of(
                pool.segment, pool.judge, self._label, pool.seen, c.n_segments, c.bins
            )
            m = calibration.prediction[np.arange(c.n_models), calibration.cells(pool.segment, pool.judge)]
            self._calibrated = with_items(m, self._label)
        return self._calibrated


def first_near(
    fine: NDArray[np.bool_], out: NDArray[np.bool_], arms: IntArray, leader: int | None
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
    return t, leader if leader is not None and leader in chosen else int(chosen[0])


def with_items(prediction: FloatArray, label: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Correct predictions by what the other labels of an item say of the item.

    An item's residuals share an effect, whose variance b is the mean product of two residuals of one item.
    The effect is estimated by the sum of the item's residuals over (their number + (s - b)/b), with s the
    variance of a residual.

    Args:
        prediction: m, shape (items, arms).
        label: shape (items, arms), nan where there is none.

    Returns:
        Predictions in [0, 1], and for each arm the mean square of y less what the other arms' labels predict
        for it, shape (arms,).
    """
    there = ~np.isnan(label)
    r = np.where(there, label - prediction, 0.0)
    n, total = there.sum(axis=1, keepdims=True), r.sum(axis=1, keepdims=True)
    products = float((total**2).sum() - (r**2).sum())
    s = float((r**2).sum()) / max(int(there.sum()), 1)
    b = products / max(float((n * (n - 1)).sum()), 1.0)
    if b > 0.0 and s > 0.0:
        kappa = max(s - b, 0.0) / b
        effect, without = total / np.maximum(n + kappa, 1e-9), (total - r) / np.maximum(n - 1 + kappa, 1e-9)
    else:
        effect, without = np.zeros_like(total), np.zeros_like(r)
    off = np.where(there, label - np.clip(prediction + without, 0.0, 1.0), 0.0) ** 2
    common = (float(off.sum()) + 0.05) / (int(there.sum()) + 1.0)
    each = (off.sum(axis=0) + PRIOR * common) / (there.sum(axis=0) + PRIOR)
    return np.clip(prediction + effect, 0.0, 1.0), np.asarray(each, dtype=np.float64)
