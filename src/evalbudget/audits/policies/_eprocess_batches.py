"""Batches of ``audit-eprocess``: what is fixed before they are judged, which coins fall, what labels say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import Audited, pair_evidence
from evalbudget.audits._draw import Coin
from evalbudget.audits._finite_pool import Evidence, Rest, pool_evidence
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True)
class Drawn:
    """The contexts of a batch with their judge scores and coins; all of shape (contexts, arms of the batch).

    Attributes:
        batch: they belong to.
        judge: F, nan where there is none.
        prediction: m.
        propensity: pi.
        wanted: whether the coin asks for a label.
    """

    batch: Batch
    judge: FloatArray
    prediction: FloatArray
    propensity: FloatArray
    wanted: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """Number of contexts."""
        return len(self.judge)

    def z(self, labels: FloatArray) -> Audited:
        """Z of the first contexts, whose labels are given."""
        n = len(labels)
        wanted = self.wanted[:n].astype(np.float64)
        return Audited.of(self.prediction[:n], self.propensity[:n], wanted, labels)


@dataclass(frozen=True)
class Batch(ABC):
    """Contexts whose labels are asked for together.

    Attributes:
        coin: that falls for each answer.
        number: of the batch, from 0.
        first: number of its first context.
        items: drawn, shape (contexts,).
        arms: that take part, increasing, shape (k,).
        leader: the arm that leads.
        rival: of each of these arms, the position in ``arms`` of one thought to be better, shape (k,): see
            :func:`rivals`.
        judged: whether the judge is asked.
        cap: the smallest limit on the bets in force; inf for none.
        uniform: U of each context, shape (contexts,).
        variance: a guess of that of each arm's evidence; of all arms, or of these.
    """

    coin: ClassVar[Coin]
    number: int
    first: int
    items: IntArray
    arms: IntArray
    leader: int
    rival: IntArray
    judged: bool
    cap: float
    uniform: FloatArray
    variance: FloatArray

    @abstractmethod
    def throw(self, judge: FloatArray, rows: slice) -> Drawn:
        """Throw the coins of some contexts, whose scores are given, nan where there is none."""

    @abstractmethod
    def evidence(self, drawn: Drawn, labels: FloatArray, margin: float = 0.0) -> Evidence:
        """What labels of the first contexts prove of each pair: i is better than j by more than -margin."""

    def models(self, position: int) -> IntArray:
        """Arms whose answers to a context are drawn."""
        return self.arms


@dataclass(frozen=True)
class Frozen(Batch):
    """A batch of the first pass: coins whose chances, predictions and bets are fixed.

    Attributes:
        segment: of each context, shape (contexts,).
        calibration: predictions of every arm.
        propensity: pi, shape (arms, cells).
        bets: on every pair, shape (arms, arms, steps).
        below: how far each arm's Z can fall below 0, shape (arms,).
        above: the largest Z can be, shape (arms,).
    """

    coin = Coin.DISJOINT
    segment: IntArray
    calibration: Calibration
    propensity: FloatArray
    bets: FloatArray
    below: FloatArray
    above: FloatArray

    def throw(self, judge: FloatArray, rows: slice) -> Drawn:
        """As of any batch."""
        cell, arms = self.calibration.cells(self.segment[rows], judge), self.arms[None, :]
        m, pi = self.calibration.prediction[arms, cell], self.propensity[arms, cell]
        u = self.uniform[rows, None]
        at = int(np.searchsorted(self.arms, self.leader))
        low, fits = u < pi, pi + pi[:, at : at + 1] <= 1.0
        heads = np.where(fits, u >= 1.0 - pi, low)
        heads[:, at] = low[:, at]
        return Drawn(self, judge, m, pi, heads)

    def evidence(self, drawn: Drawn, labels: FloatArray, margin: float = 0.0) -> Evidence:
        """As of any batch; nothing is certain."""
        log = pair_evidence(drawn.z(labels), self.bets[np.ix_(self.arms, self.arms)], margin)
        return Evidence(log, np.zeros(log.shape[:-1], dtype=bool))


@dataclass(frozen=True)
class SecondBatch(Batch):
    """A batch of the second pass, with no coins.

    Attributes:
        rows: of the pool, shape (contexts,).
        wanted: answers without a label, shape (contexts, k); some on every context.
        prediction: f, shape (contexts, k).
        judge: scores of the first pass, shape (contexts, k).
        rest: the pool before these contexts, these arms; its first rows are the contexts.
    """

    coin = Coin.NONE
    rows: IntArray
    wanted: NDArray[np.bool_]
    prediction: FloatArray
    judge: FloatArray
    rest: Rest

    def models(self, position: int) -> IntArray:
        """Those whose answers have no label."""
        return np.asarray(self.arms[self.wanted[position]], dtype=np.int64)

    def throw(self, judge: FloatArray, rows: slice) -> Drawn:
        """Every answer without a label is wanted; the scores are those of the first pass."""
        wanted = self.wanted[rows]
        return Drawn(self, self.judge[rows], self.prediction[rows], np.ones(wanted.shape), wanted)

    def evidence(self, drawn: Drawn, labels: FloatArray, margin: float = 0.0) -> Evidence:
        """As of any batch; labels are nan where one never came."""
        low, high = np.nan_to_num(labels, nan=0.0), np.nan_to_num(labels, nan=1.0)
        return pool_evidence(self.rest, low, high, self.variance, margin)


@dataclass(frozen=True)
class History:
    """Complete batches; all but ``items`` and ``segment`` of shape (contexts, arms).

    Attributes:
        items: indices of the design's items, in the order drawn.
        segment: of each.
        judge: scores, nan where there is none.
        label: nan where there is none.
        propensity: of a label; 0 where an arm took no part.
        wanted: labels that were asked for, those that never came included.
        seen: whether the arm took part.
    """

    items: IntArray
    segment: IntArray
    judge: FloatArray
    label: FloatArray
    propensity: FloatArray
    wanted: NDArray[np.bool_]
    seen: NDArray[np.bool_]

    @classmethod
    def empty(cls, items: IntArray, segment: IntArray, n_arms: int) -> History:
        """Room for all items, in the order in which they are drawn."""
        shape = (items.size, n_arms)
        nothing, no = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        return cls(items, segment, nothing, nothing.copy(), np.zeros(shape), no, no.copy())

    def until(self, n: int) -> History:
        """The first contexts."""
        return History(*(getattr(self, each.name)[:n] for each in fields(self)))

    def keep(self, begin: int, drawn: Drawn, labels: FloatArray) -> None:
        """Note the first contexts of a batch, whose labels are given."""
        n = len(labels)
        cells = np.ix_(np.arange(begin, begin + n), drawn.batch.arms)
        self.judge[cells], self.propensity[cells] = drawn.judge[:n], drawn.propensity[:n]
        self.wanted[cells], self.seen[cells] = drawn.wanted[:n], True
        self.label[cells] = np.where(drawn.wanted[:n], labels, np.nan)


def rivals(value: FloatArray) -> tuple[int, IntArray]:
    """The position of the leader, and with whom each is compared: the leader, and it with the runner-up."""
    at = int(np.argmax(value))
    found = np.full(value.size, at, dtype=np.int64)
    if value.size > 1:
        found[at] = int(np.argmax(np.where(np.arange(value.size) == at, -np.inf, value)))
    return at, found
