"""Records of ``audit-eprocess``: a frozen batch, what was drawn of it, what it proves, and the past."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._second_pass import SecondBatch, Weighed
from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True)
class Frozen:
    """Everything fixed at the start of a batch.

    Attributes:
        number: of the batch, from 0.
        first: number of its first context.
        items: drawn, shape (contexts,).
        arms: that take part, increasing, shape (k,).
        judged: whether the judge is asked.
        leader: the arm that leads; None when nobody does.
        rival: of each arm, the one thought to be better: the leader, and of the leader the runner-up.
        calibration: predictions of every arm.
        propensity: pi, shape (arms, cells).
        bets: on every pair, shape (arms, arms, steps).
        cap: the smallest limit on them in force.
        below: how far each arm's Z can fall below 0, shape (arms,).
        above: the largest Z can be, shape (arms,).
        uniform: U, shape (contexts, arms); the same along a row unless coins are independent.
        variance: V of each arm's Z, shape (arms,), guessed.
    """

    number: int
    first: int
    items: IntArray
    arms: IntArray
    judged: bool
    leader: int | None
    rival: IntArray
    calibration: Calibration
    propensity: FloatArray
    bets: FloatArray
    cap: float
    below: FloatArray
    above: FloatArray
    uniform: FloatArray
    variance: FloatArray


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

    batch: Frozen | SecondBatch
    judge: FloatArray
    prediction: FloatArray
    propensity: FloatArray
    wanted: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """Number of contexts."""
        return len(self.judge)


@dataclass(frozen=True)
class FirstWeighed(Weighed):
    """Of the first pass.

    Attributes:
        evidence: E of each pair, shape (arms, arms).
        against: evidence against each arm, after the last of these contexts, shape (arms,).
    """

    evidence: FloatArray
    against: FloatArray


@dataclass(frozen=True)
class History:
    """Complete batches; all but ``segment`` of shape (contexts, arms)."""

    segment: IntArray
    judge: FloatArray
    label: FloatArray
    propensity: FloatArray
    wanted: FloatArray
    seen: FloatArray

    @classmethod
    def empty(cls, n_arms: int) -> History:
        """Nothing yet."""
        nothing = np.zeros((0, n_arms))
        return cls(np.zeros(0, dtype=np.int64), nothing, nothing, nothing, nothing, nothing)

    def and_then(self, segment: IntArray, *more: FloatArray) -> History:
        """These contexts, and others after them."""
        mine = (self.judge, self.label, self.propensity, self.wanted, self.seen)
        joined = (np.concatenate(pair) for pair in zip(mine, more, strict=True))
        return History(np.concatenate([self.segment, segment]), *joined)
