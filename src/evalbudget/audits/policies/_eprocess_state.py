"""The arrays behind ``audit-eprocess``: what to judge, which coins fall, and what has been proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import (
    GAMMA,
    STEPS,
    AuditedMeans,
    pair_bets,
    pair_range,
    reach,
)
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._config import AuditConfig
from evalbudget.audits.policies._contest import Contest, Weighed
from evalbudget.audits.policies._eprocess_batches import Batch, Drawn, Frozen, History, rivals
from evalbudget.audits.policies._eprocess_choice import (
    FIRST_SPREAD,
    Outlook,
    spread_of_labels,
    spread_of_predictions,
)
from evalbudget.audits.policies._label_rates import fits_disjoint, residual_variance
from evalbudget.audits.policies._second_pass import SecondPass, share_of_delta
from evalbudget.statistics._bounds import FloatArray

WARM_UP = 8
"""Labels of each arm before its propensities may fall below WARM_RATE."""
WARM_RATE = 0.5
FOLLOW = 0.5
"""Share of the capital against an arm that bets on whoever led when a batch began; the rest bets on all."""


class EProcess:
    """Draws batches, learns from complete ones; pure and deterministic given config, scores and labels.

    ``batch`` is what to judge next; :meth:`throw` takes the judge's scores and throws the coins;
    :meth:`learn` takes the labels of the whole batch. :meth:`weigh` says what a first part of them proves.

    Args:
        config: settings.
    """

    def __init__(self, config: AuditConfig) -> None:
        self.config = config
        self.prices: dict[int, float] = {}
        """What scores of the judge cost on average until a batch was drawn, by its number."""
        K = config.n_models
        self.first = Contest(config, np.ones(K, dtype=bool), STEPS.size, FOLLOW)
        self.second: SecondPass | None = None
        """Begun when every item was drawn without a verdict."""
        self.no_go: int | None = None if config.use_judge else 0
        """Number of the batch from which on the judge was not worth its price; None while it is."""
        self.labels = 0
        self.judged = 0
        self.out_of_labels = False
        self.past: list[tuple[Drawn, FloatArray]] = []
        self.narrow = False
        self.near: int | None = None
        """An arm that is within the margin of the best."""
        self._means: AuditedMeans | None = None
        self._counted = 0
        order = np.random.default_rng((config.seed, 0)).permutation(config.n_items)
        segments = np.zeros(config.n_items) if config.segments is None else np.array(config.segments)
        self._history = History.empty(order, segments[order].astype(np.int64), K)
        self._contexts = 0
        self.batch: Batch | None = self._freeze()

    @property
    def contest(self) -> Contest:
        """The pass under way."""
        return self.first if self.second is None else self.second.contest

    @property
    def active(self) -> NDArray[np.bool_]:
        """Arms that may still win, shape (arms,)."""
        return self.contest.active

    @property
    def judge_price(self) -> float:
        """Of a score, as it was known when the batch under way was chosen."""
        known = [batch for batch in self.prices if batch < len(self.past)]
        return self.prices[max(known)] if known else self.config.judge_price

    # one batch

    def throw(self, judge: FloatArray, *, start: int = 0) -> Drawn:
        """Throw the coins of the batch, or of some of its contexts.

        Args:
            judge: scores in [0, 1], nan where there is none, shape (contexts, arms of the batch).
            start: position of the first of these contexts in the batch.
        """
        assert self.batch is not None
        return self.batch.throw(judge, slice(start, start + len(judge)))

    def affordable(self, drawn: Drawn) -> int:
        """How many of the contexts can have all the labels their coins ask for."""
        if self.config.max_labels is None:
            return drawn.n
        needed = np.cumsum(drawn.wanted.sum(axis=1))
        return int(np.searchsorted(needed, self.config.max_labels - self.labels, side="right"))

    def weigh(self, drawn: Drawn, labels: FloatArray) -> Weighed:
        """What the first contexts prove, whose labels are given; nothing is learned from them."""
        return self.contest.weigh(drawn, labels)

    def learn(self, drawn: Drawn, labels: FloatArray) -> None:
        """Take a complete batch in and freeze the next one; it ends short when labels run out."""
        found, n = self.weigh(drawn, labels), len(labels)
        self.labels += int(drawn.wanted[:n].sum())
        if self.second is not None:
            self.second.learn(drawn, labels, found)
        else:
            self.first.take(found, n)
            self._history.keep(self._contexts, drawn, labels)
            self.judged += n * drawn.batch.arms.size if drawn.batch.judged else 0
            self._contexts += n
            self.past.append((drawn, labels))
        if found.equivalent < n:
            self.near = found.near
        most = self.config.max_labels
        self.out_of_labels = n < drawn.n or (most is not None and self.labels >= most)
        if self.config.half_width is not None:
            low, high = self.interval(0)
            self.narrow = (high - low) / 2.0 <= self.config.half_width
        self.batch = None if self._is_won or self.near is not None or self.narrow else self._freeze()

    @property
    def _is_won(self) -> bool:
        return bool(self.active.sum() == 1) and self.config.n_models > 1

    def interval(self, arm: int) -> tuple[float, float]:
        """Anytime bounds of the arm's mean; simultaneous over the arms, from complete batches.

        About items like these; of arms that the second pass labels about this pool.
        """
        if self.second is not None and self.second.contenders[arm]:
            return self.second.interval(arm)
        if self._means is None:
            self._means = AuditedMeans(self.config.n_models)
        for drawn, labels in self.past[self._counted :]:
            f = drawn.batch
            assert isinstance(f, Frozen)
            z = drawn.z(labels)
            for column, k in enumerate(f.arms.tolist()):
                self._means.update(
                    k, z.low[:, column], z.high[:, column], f.variance[k], f.below[k], f.above[k]
                )
        self._counted = len(self.past)
        K = self.config.n_models
        return self._means.interval(arm, self.config.delta * (1.0 - share_of_delta(self.config)) / K)

    def _aim(self) -> int:
        """Labels to expect of the next batch."""
        c = self.config
        aim = c.batch_after(self.labels) if self.past else c.pilot
        return aim if c.max_labels is None else min(aim, max(1, c.max_labels - self.labels))

    def _freeze(self) -> Batch | None:
        left = self.config.n_items - self._contexts
        if left <= 0:
            return self._freeze_second()
        if self.out_of_labels:
            return None
        c = self.config
        K, arms = c.n_models, np.flatnonzero(self.active)
        past = self._history.until(self._contexts)
        skips = False
        if not past.segment.size:
            calibration = Calibration.before(K, c.n_segments)
            judged = c.use_judge
            propensity = np.full(calibration.prediction.shape, WARM_RATE if judged else 1.0)
            spread, contexts = np.full((K, K), FIRST_SPREAD), np.inf
            value = -np.arange(K, dtype=np.float64)
        else:
            calibration = Calibration.of(past.segment, past.judge, past.label, past.seen, c.n_segments)
            m = calibration.predicted(past.segment, past.judge)
            spread = spread_of_predictions(m, past.seen)
            # IPW residuals about today's predictions; only the choice of leader and rates rests on them
            gain = np.where(past.wanted, np.nan_to_num(past.label - m), 0.0) / np.where(
                past.seen, past.propensity, 1.0
            )
            n_seen = np.maximum(past.seen.sum(axis=0), 1)
            value = ((m + gain) * past.seen).sum(axis=0) / n_seen
            choice = self._outlook.choose(calibration, spread, value, arms, past, n_seen)
            judged, propensity, contexts = choice.judged, choice.propensity.copy(), choice.contexts
            skips = choice.skips
            if not judged and self.no_go is None:
                self.no_go = len(self.past)
            young = past.wanted.sum(axis=0) < WARM_UP
            if not skips:
                propensity[young] = np.maximum(propensity[young], WARM_RATE)
        at, rival = rivals(value[arms])
        leader = int(arms[at])
        expected = float((calibration.share * propensity).sum(axis=1)[arms].sum())
        n = int(np.clip(round(self._aim() / max(expected, 1e-9)), 1, max(10.0, min(contexts, 1e9))))
        n = left if skips else min(n, left)
        G = residual_variance(calibration, propensity)
        if not judged:
            spread = spread_of_labels(past) if self.past else spread
            G = np.zeros(K)
        a, b = reach(calibration.prediction, propensity)
        width = pair_range(a, b, fits_disjoint(propensity, leader))
        pairs = width[np.ix_(arms, arms)][~np.eye(arms.size, dtype=bool)]
        rows = slice(self._contexts, self._contexts + n)
        return Frozen(
            number=len(self.past),
            first=self._contexts,
            items=self._history.items[rows],
            arms=arms,
            leader=leader,
            rival=rival,
            judged=judged,
            cap=GAMMA / float(pairs.max()) if pairs.size else GAMMA / float((a + b)[arms].max()),
            uniform=np.random.default_rng((c.seed, 1, len(self.past))).random(n),
            variance=np.diag(spread) / 2.0 + G,
            segment=self._history.segment[rows],
            calibration=calibration,
            propensity=propensity,
            bets=pair_bets(spread + G[:, None] + G[None, :], width),
            below=a,
            above=b,
        )

    @property
    def _outlook(self) -> Outlook:
        config = replace(self.config, judge_price=self.judge_price)
        return Outlook(config, self.no_go is None, self._contexts, self.judged, self.labels)

    def _freeze_second(self) -> Batch | None:
        """All items are drawn: label what the contenders have no label of."""
        if self.second is None:
            self.second = SecondPass(self.config, self._history, self.first)
        if self._is_won or self.out_of_labels or not self.config.second_pass:
            return None
        return self.second.freeze(len(self.past), self._aim())
