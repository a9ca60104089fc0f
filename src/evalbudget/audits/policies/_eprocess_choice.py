"""The cheapest way on of ``audit-eprocess``: with the judge or without it, and at which rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._config import AuditConfig
from evalbudget.audits.policies._eprocess_batches import History
from evalbudget.audits.policies._label_rates import (
    LEAST,
    Pool,
    Rates,
    Task,
    audits_only,
    best_rates,
    expected_pass_labels,
    pool_cost,
    residual_variance,
    single_audits_only,
    single_needed,
    single_pool_cost,
    single_rates,
    skipping_cost,
)
from evalbudget.audits.policies._second_pass import share_of_delta
from evalbudget.statistics._bounds import FloatArray, IntArray

PAIRS = 30
"""Labels of both arms from which on their correlation is trusted."""
WORTH = 0.75
"""The rest of the first pass is skipped for the second if that is expected to cost less than this share."""
FIRST_SPREAD = 0.1
"""Variance of a difference of predictions supposed before anything was judged."""


@dataclass(frozen=True)
class Choice:
    """How to go on.

    Attributes:
        propensity: shape (arms, cells).
        contexts: expected until it is decided.
        judged: whether the judge is asked.
        skips: the pool is not expected to suffice; the rest of it is one batch, for the second pass.
    """

    propensity: FloatArray
    contexts: float
    judged: bool
    skips: bool = False


@dataclass(frozen=True)
class Outlook:
    """What the choice of the next batch rests on, besides the past.

    Attributes:
        config: settings.
        asks_judge: False once the judge was not worth its price.
        contexts: drawn so far.
        judged: scores of the judge so far.
        labels: so far.
    """

    config: AuditConfig
    asks_judge: bool
    contexts: int
    judged: int
    labels: int

    def choose(
        self,
        calibration: Calibration,
        spread: FloatArray,
        value: FloatArray,
        arms: IntArray,
        past: History,
        n_seen: IntArray,
    ) -> Choice:
        """The cheapest way on that is known."""
        c = self.config
        enough = bool(past.wanted.sum() >= c.pilot / 2)
        of_labels = spread_of_labels(past)
        noise = (calibration.share * calibration.square).sum(axis=1)
        if arms.size == 1:
            return self._alone(calibration, float(spread[0, 0]), float(of_labels[0, 0]), noise, enough)
        leader = int(arms[np.argmax(value[arms])])
        rivals = arms[arms != leader]
        G = residual_variance(calibration, np.full(calibration.prediction.shape, 0.2))
        error = np.sqrt((spread[leader, rivals] + G[leader] + G[rivals]) / n_seen[rivals])
        gap = np.maximum(value[leader] - value[rivals], np.maximum(0.5 * error, 0.03))
        task = Task(
            leader,
            rivals,
            gap + c.margin,  # with a margin it is enough that no rival is better by it
            spread[leader, rivals],
            float(np.log(c.threshold * (c.n_models - 1)) + 1.0),
            c.judge_price,
            c.label_price,
        )

        def pool(variance: FloatArray) -> Pool:
            needed = expected_pass_labels(c.n_items, task.gap, variance, task.log_threshold)
            return Pool(c.n_items - self.contexts, needed)

        labelled = of_labels[leader, rivals]
        alone = audits_only(calibration, task, labelled)
        rates = alone if not self.asks_judge else best_rates(calibration, task)
        rates, first = self._without_skipping(alone, rates, enough)
        if not (enough and self._may_skip(first)):
            return first
        with_judge, without = pool(noise[leader] + noise[rivals]), pool(labelled)
        rest = with_judge if first.judged else without
        stay = pool_cost(calibration, rates, task, rest, judged=first.judged)
        unjudged = skipping_cost(task, without, judged=False)
        return self._cheapest(
            calibration, first, stay, unjudged, skipping_cost(task, with_judge, judged=True)
        )

    def _alone(
        self, calibration: Calibration, spread: float, of_labels: float, noise: FloatArray, enough: bool
    ) -> Choice:
        """For a single system; spreads are twice the variance of its predictions and of its labels."""
        c = self.config
        assert c.half_width is not None
        h, prices, share = c.half_width, (c.judge_price, c.label_price), share_of_delta(c)

        def pool(variance: float) -> Pool:
            needed = single_needed(c.n_items, variance, h, c.delta * share)
            return Pool(c.n_items - self.contexts, needed)

        alone = single_audits_only(calibration, of_labels / 2.0, h, c.delta, c.label_price)
        rates = alone if not self.asks_judge else single_rates(calibration, spread / 2.0, h, c.delta, prices)
        rates, first = self._without_skipping(alone, rates, enough)
        if not (enough and self._may_skip(first)):
            return first
        with_judge, without = pool(float(noise[0])), pool(of_labels / 2.0)
        rest = with_judge if first.judged else without
        stay = single_pool_cost(calibration, rates, rest, prices, judged=first.judged)
        unjudged = float(without.needed[0]) * c.label_price
        judging = c.judge_price * with_judge.left
        judged = judging + float(with_judge.needed[0]) * c.label_price
        return self._cheapest(calibration, first, stay, unjudged, judged)

    def _without_skipping(self, alone: Rates, rates: Rates, enough: bool) -> tuple[Rates, Choice]:
        """Labels alone or the judge as well, whichever is cheaper once there are labels to tell by."""
        judged = rates is not alone and not (enough and alone.cost < rates.cost)
        chosen = rates if judged else alone
        return chosen, Choice(chosen.propensity, chosen.contexts, judged)

    def _cheapest(
        self, calibration: Calibration, first: Choice, stay: float, unjudged: float, judged: float
    ) -> Choice:
        """To stay with the first pass, or to skip it: without the judge, or with it if it is asked."""
        ways = [(WORTH * stay, first), (unjudged, self._skip(calibration, False))]
        if self.asks_judge:
            ways.append((judged, self._skip(calibration, True)))
        return min(ways, key=lambda way: way[0])[1]

    def _may_skip(self, first: Choice) -> bool:
        """Whether to consider the second pass at once: the pool is not expected to suffice for the first.

        Early guesses of how far systems are apart are poor, so it is not considered before four times as much
        was spent as judging the whole pool costs; nor where labels may run out, because the first pass needs
        fewer to prove something.
        """
        c = self.config
        left = c.n_items - self.contexts
        spent = c.judge_price * self.judged + c.label_price * self.labels
        small = 4.0 * c.judge_price * c.n_models * c.n_items <= spent
        return c.second_pass and c.max_labels is None and first.contexts > left and small

    def _skip(self, calibration: Calibration, judged: bool) -> Choice:
        """Draw the rest of the pool at once; the coins still fall, very rarely."""
        return Choice(np.full(calibration.prediction.shape, LEAST), np.inf, judged, skips=True)


def spread_of_predictions(m: FloatArray, seen: NDArray[np.bool_]) -> FloatArray:
    """Var(m_i - m_j) where both took part; on the diagonal twice Var(m)."""
    K = m.shape[1]
    found = np.empty((K, K))
    for i in range(K):
        for j in range(i, K):
            both = seen[:, i] & seen[:, j]
            x = m[both, i] - m[both, j] if i != j else m[both, i] * np.sqrt(2.0)
            found[i, j] = found[j, i] = max(float(x.var()) if x.size else FIRST_SPREAD, 1e-5)
    return found


def spread_of_labels(past: History) -> FloatArray:
    """Var(Y_i - Y_j) from contexts with both labels, or Var(Y_i) + Var(Y_j) where these are few."""
    K = past.label.shape[1]
    each = np.array([_variance(past.label[:, k][~np.isnan(past.label[:, k])]) for k in range(K)])
    found = each[:, None] + each[None, :]
    for i in range(K):
        for j in range(K):
            both = past.label[:, i] - past.label[:, j]
            both = both[~np.isnan(both)]
            if i != j and both.size >= PAIRS:
                found[i, j] = _variance(both)
    return np.asarray(found, dtype=np.float64)


def _variance(y: FloatArray) -> float:
    # two pseudo-labels with the variance of a fair coin
    return float((y.var() * y.size + 0.1) / (y.size + 2.0)) if y.size else 0.25
