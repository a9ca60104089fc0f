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

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._finite_pool import GAPS, PoolMeans, Rest
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._config import AuditConfig
from evalbudget.audits.policies._contest import Contest, Weighed
from evalbudget.audits.policies._eprocess_batches import Drawn, History, SecondBatch, rivals
from evalbudget.statistics._bounds import FloatArray, IntArray

FOLLOW = 0.9
"""Share of the capital against an arm that bets on the leader being better; the rest bets on all others."""
PRIOR = 8.0
"""Labels that the common variance of residuals counts as in each arm's."""


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
        past: the first pass, which drew every item.
        first: what that proved.

    Attributes:
        contest: arms that may still win, and the evidence against each.
        certain: whether an arm that was dropped since was dropped for certain.
        contexts: labelled so far.
        labels: of each arm, shape (arms,).
    """

    def __init__(self, config: AuditConfig, past: History, first: Contest) -> None:
        K = config.n_models
        self.config, self.past = config, past
        self.contest = Contest(config, first.active, GAPS.size, FOLLOW, first)
        self.certain: NDArray[np.bool_] = np.ones(K, dtype=bool)
        self.batches = 0
        self.contexts = 0
        self.labels: IntArray = np.zeros(K, dtype=np.int64)
        self._means = PoolMeans(K)
        self._fed: list[tuple[SecondBatch, FloatArray]] = []
        self._order: IntArray = np.random.default_rng((config.seed, 2)).permutation(past.items.size)
        self._label, self._read = past.label.copy(), past.wanted.copy()
        self._calibrated: tuple[FloatArray, FloatArray] | None = None
        beaten = (self.rest().certain() & self.contest.active[:, None]).any(axis=0)
        self.contest.active &= ~beaten

    @property
    def contenders(self) -> NDArray[np.bool_]:
        """Arms that might still win when it began."""
        return self.contest.contenders

    # what is known

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Answers of arms that may still win without a label, shape (items, arms)."""
        return ~self._read & self.contest.active

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
        for batch, labels in self._fed:
            low, high = np.nan_to_num(labels, nan=0.0), np.nan_to_num(labels, nan=1.0)
            self._means.update(batch.arms, batch.rest, low, high, batch.variance)
        self._fed = []
        c = self.config
        alpha = c.delta * (share_of_delta(c) if c.n_models == 1 else 1.0) / c.n_models
        lower, upper = self._means.interval(arm, alpha)
        least, most = (float(ends[arm]) for ends in self._whole().bounds())
        lower, upper = max(lower, least), min(upper, most)
        return (lower, upper) if lower <= upper else (least, most)

    def _whole(self) -> Rest:
        """As :meth:`rest`, arms that were dropped included."""
        rest = self.rest()
        return Rest(rest.n_items, rest.low, rest.high, rest.prediction, ~self._read)

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
        arms, whole = np.flatnonzero(self.contest.active), self.rest()
        there = np.ix_(left, arms)
        rest = Rest(whole.n_items, whole.low[arms], whole.high[arms], prediction[there], unknown[there])
        at, rival = rivals(whole.estimate[arms])
        rows = left[:n]
        cells = np.ix_(rows, arms)
        return SecondBatch(
            number=before + self.batches,
            first=self.past.items.size + self.contexts,
            items=self.past.items[rows],
            arms=arms,
            leader=int(arms[at]),
            rival=rival,
            judged=False,
            cap=math.inf,
            uniform=np.zeros(n),
            variance=variance[arms],
            rows=rows,
            wanted=unknown[cells],
            prediction=prediction[cells],
            judge=self.past.judge[cells],
            rest=rest,
        )

    def learn(self, drawn: Drawn, labels: FloatArray, found: Weighed) -> None:
        """Take a complete batch in, or a first part of it after which nothing more is asked."""
        batch, n = drawn.batch, len(labels)
        assert isinstance(batch, SecondBatch)
        self._fed.append((batch, labels))
        cells = np.ix_(batch.rows[:n], batch.arms)
        asked = batch.wanted[:n]
        self._label[cells] = np.where(asked, labels, self._label[cells])
        self._read[cells] |= asked
        self.labels[batch.arms] += (asked & ~np.isnan(labels)).sum(axis=0)
        self.batches += 1
        self.contexts += n
        dropped = self.contest.take(found, n)
        self.certain &= ~dropped | found.certain
        self._calibrated = None
        # what was dropped by evidence may be out of reach by now
        self.certain |= (self._whole().certain() & self.contest.active[:, None]).any(axis=0)

    # predictions

    def _predict(self) -> tuple[FloatArray, FloatArray]:
        """Predictions f of every answer, shape (items, arms), and the variance of y - f, shape (arms,)."""
        if self._calibrated is None:
            c, past = self.config, self.past
            calibration = Calibration.of(past.segment, past.judge, self._label, past.seen, c.n_segments)
            predicted = calibration.predicted(past.segment, past.judge)
            self._calibrated = with_items(predicted, self._label)
        return self._calibrated


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
