"""The arrays behind ``audit-eprocess``: what to judge, which coins fall, and what has been proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._always_valid_evidence import (
    GAMMA,
    STEPS,
    Audited,
    AuditedMeans,
    mixture,
    pair_bets,
    pair_evidence,
    pair_range,
    reach,
)
from evalbudget.audits._draw import Coin
from evalbudget.audits.policies._calibration import Calibration
from evalbudget.audits.policies._config import AuditConfig, NoGo
from evalbudget.audits.policies._eprocess_batches import Drawn, FirstWeighed, Frozen, History
from evalbudget.audits.policies._eprocess_choice import (
    FIRST_SPREAD,
    Outlook,
    spread_of_labels,
    spread_of_predictions,
)
from evalbudget.audits.policies._label_rates import fits_disjoint, residual_variance
from evalbudget.audits.policies._second_pass import (
    Pool,
    SecondBatch,
    SecondPass,
    Weighed,
    first_near,
    share_of_delta,
)
from evalbudget.statistics._bounds import FloatArray, IntArray

WARM_UP = 8
"""Labels of each arm before its propensities may fall below WARM_RATE."""
WARM_RATE = 0.5


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
        self.active: NDArray[np.bool_] = np.ones(K, dtype=bool)
        self.no_go: int | None = None if config.use_judge else 0
        """Number of the batch from which on the judge was not worth its price; None while it is."""
        self.labels = 0
        self.judged = 0
        self.out_of_labels = False
        self._capital: FloatArray = np.zeros((K, K, STEPS.size))
        self._followed: FloatArray = np.zeros((K, STEPS.size))
        self._close: FloatArray = np.zeros((K, K, STEPS.size))
        self._evidence: FloatArray = np.ones((K, K))
        self._against: FloatArray = np.ones(K)
        self._closeness: FloatArray = np.zeros((K, K))
        self.past: list[tuple[Drawn, FloatArray]] = []
        self.narrow = False
        self.stopped_by_judge = False
        self.near: int | None = None
        """An arm that is within the margin of the best."""
        self._means: AuditedMeans | None = None
        self._counted = 0
        self._history = History.empty(K)
        self._remembered = 0
        order = np.random.default_rng((config.seed, 0)).permutation(config.n_items)
        self._order: IntArray = np.asarray(order, dtype=np.int64)
        self._segment: IntArray = np.asarray(
            config.segments if config.segments is not None else np.zeros(config.n_items), dtype=np.int64
        )
        self._contexts = 0
        self.second: SecondPass | None = None
        """Begun when every item was drawn without a verdict."""
        self.batch: Frozen | SecondBatch | None = self._freeze()

    @property
    def judge_price(self) -> float:
        """Of a score, as it was known when the batch under way was chosen."""
        known = [batch for batch in self.prices if batch < len(self.past)]
        return self.prices[max(known)] if known else self.config.judge_price

    @property
    def threshold(self) -> float:
        """Evidence that drops an arm.

        Twice 1/delta: half of delta is spent on dropping the best arm, so that a tie of two is not broken
        either way with more than delta, and the other half on calling an arm nearly best that is not.
        """
        return 2.0 / self.config.delta

    # one batch

    def throw(self, judge: FloatArray, *, start: int = 0) -> Drawn:
        """Throw the coins of the batch, or of some of its contexts.

        Args:
            judge: scores in [0, 1], nan where there is none, shape (contexts, arms of the batch).
            start: position of the first of these contexts in the batch.
        """
        f = self.batch
        assert f is not None
        rows = slice(start, start + len(judge))
        if isinstance(f, SecondBatch):
            wanted = f.wanted[rows]
            return Drawn(f, f.judge[rows], f.prediction[rows], np.ones(wanted.shape), wanted)
        cell = f.calibration.cells(self._segment[f.items[rows]], judge)
        arms = f.arms[None, :]
        m, pi = f.calibration.prediction[arms, cell], f.propensity[arms, cell]
        u = f.uniform[rows][:, f.arms]
        heads = u < pi
        if f.leader is not None and self.config.coin is Coin.DISJOINT:
            at = int(np.searchsorted(f.arms, f.leader))
            fits = pi + pi[:, at : at + 1] <= 1.0
            other = np.where(fits, u >= 1.0 - pi, heads)
            other[:, at] = heads[:, at]
            heads = other
        return Drawn(f, judge, m, pi, heads)

    def affordable(self, drawn: Drawn) -> int:
        """How many of the contexts can have all the labels their coins ask for."""
        if self.config.max_labels is None:
            return drawn.n
        needed = np.cumsum(drawn.wanted.sum(axis=1))
        return int(np.searchsorted(needed, self.config.max_labels - self.labels, side="right"))

    def weigh(self, drawn: Drawn, labels: FloatArray) -> Weighed:
        """What the first contexts of the batch prove, without learning from them.

        Args:
            drawn: the batch.
            labels: of its first contexts, complete, shape (contexts, arms of the batch); nan where a label
                was not wanted, or never came.
        """
        f = drawn.batch
        if isinstance(f, SecondBatch):
            assert self.second is not None
            return self.second.weigh(f, labels)
        return self._weigh(f, drawn, labels)

    def _weigh(self, f: Frozen, drawn: Drawn, labels: FloatArray) -> FirstWeighed:
        n = len(labels)
        z = Audited.of(
            drawn.prediction[:n], drawn.propensity[:n], drawn.wanted[:n].astype(np.float64), labels
        )
        K = self.config.n_models
        pairs = np.ix_(f.arms, f.arms)
        log = pair_evidence(z, f.bets[pairs])
        everything = np.broadcast_to(self._evidence, (n, K, K)).copy()
        everything[np.ix_(np.arange(n), f.arms, f.arms)] = mixture(log + self._capital[pairs])
        against = np.where(np.eye(K, dtype=bool), 0.0, everything).sum(axis=1) / max(K - 1, 1)
        last = self._against
        capital, followed = self._capital.copy(), self._followed.copy()
        evidence = self._evidence.copy()
        if f.arms.size > 1:
            # half of the capital always bets on the arm that led when the batch began
            at = np.searchsorted(f.arms, f.rival[f.arms])
            led = log[:, at, np.arange(f.arms.size)] + self._followed[f.arms]
            against[:, f.arms] = (against[:, f.arms] + mixture(led)) / 2.0
            if n:
                capital[pairs] += log[-1]
                followed[f.arms] = led[-1]
                evidence = everything[-1]
                last = against[-1]
        first = np.full(K, n)
        for k in np.flatnonzero(self.active):
            over = np.flatnonzero(against[:, k] >= self.threshold)
            first[k] = over[0] if over.size else n
        close, closeness = self._close, self._closeness
        decided, near_arm = n, None
        if self.config.margin > 0.0 and K > 1:
            near = pair_evidence(z, f.bets[pairs], self.config.margin) + self._close[pairs]
            close, closeness = self._close.copy(), self._closeness.copy()
            peaks = np.maximum(np.maximum.accumulate(mixture(near), axis=0), self._closeness[pairs])
            if n:
                close[pairs], closeness[pairs] = near[-1], peaks[-1]
            out = ~self.active[f.arms] | (first[f.arms] <= np.arange(n)[:, None])
            # K - 1 arms could wrongly be called as good as the best one
            fine = peaks >= self.threshold * max(K - 1, 1)
            decided, near_arm = first_near(fine, out, f.arms, f.leader)
        return FirstWeighed(first, decided, near_arm, capital, followed, close, closeness, evidence, last)

    def learn(self, drawn: Drawn, labels: FloatArray) -> None:
        """Take a complete batch in and freeze the next one; it ends short when labels run out."""
        if isinstance(drawn.batch, SecondBatch):
            self._learn_second(drawn.batch, drawn, labels)
            return
        found = self._weigh(drawn.batch, drawn, labels)
        n = len(labels)
        self._capital, self._followed, self._evidence = found.capital, found.followed, found.evidence
        self._against, self._close, self._closeness = found.against, found.close, found.closeness
        self.labels += int(drawn.wanted[:n].sum())
        self.judged += n * drawn.batch.arms.size if drawn.batch.judged else 0
        self._contexts += n
        self.past.append((drawn, labels))
        dropped = found.first < n
        if dropped[self.active].all():  # all at once: the one with the least evidence against it stays
            dropped[int(np.argmax(np.where(self.active, found.first, -1)))] = False
        self.active &= ~dropped
        if found.equivalent < n:
            self.near = found.near
        self._go_on(drawn, n)

    def _learn_second(self, f: SecondBatch, drawn: Drawn, labels: FloatArray) -> None:
        assert self.second is not None
        found = self.second.weigh(f, labels)
        n = len(labels)
        self.second.learn(f, labels, found)
        self.labels += int(drawn.wanted[:n].sum())
        self.active = self.second.active.copy()
        if found.equivalent < n:
            self.near = found.near
        self._go_on(drawn, n)

    def _go_on(self, drawn: Drawn, n: int) -> None:
        """Freeze the next batch unless it is over; n contexts of the last one are complete."""
        self.out_of_labels = n < drawn.n or (
            self.config.max_labels is not None and self.labels >= self.config.max_labels
        )
        if self.config.half_width is not None:
            low, high = self.interval(0)
            self.narrow = (high - low) / 2.0 <= self.config.half_width
        over = self.active.sum() == 1 and self.config.n_models > 1
        over |= self.near is not None or self.narrow
        self.batch = None if over else self._freeze()

    def interval(self, arm: int) -> tuple[float, float]:
        """Anytime bounds of the arm's mean; simultaneous over the arms, from complete batches.

        About items like these; of arms that the second pass labels about this pool.
        """
        if self.second is not None and self.second.contenders[arm]:
            return self.second.interval(arm)
        if self._means is None:
            self._means = AuditedMeans(self.config.n_models)
        for drawn, labels in self.past[self._counted :]:
            f, n = drawn.batch, len(labels)
            assert isinstance(f, Frozen)
            z = Audited.of(
                drawn.prediction[:n], drawn.propensity[:n], drawn.wanted[:n].astype(np.float64), labels
            )
            for column, k in enumerate(f.arms.tolist()):
                self._means.update(
                    k, z.low[:, column], z.high[:, column], f.variance[k], f.below[k], f.above[k]
                )
        self._counted = len(self.past)
        K = self.config.n_models
        return self._means.interval(arm, self.config.delta * (1.0 - share_of_delta(self.config)) / K)

    # the past as arrays, nan or 0 where an arm took no part

    def history(self) -> History:
        """All complete batches."""
        K = self.config.n_models
        for drawn, labels in self.past[self._remembered :]:
            n, arms = len(labels), drawn.batch.arms
            columns = [
                (drawn.judge[:n], np.nan),
                (np.where(drawn.wanted[:n], labels, np.nan), np.nan),
                (drawn.propensity[:n], 0.0),
                (drawn.wanted[:n], 0.0),
                (np.ones((n, arms.size)), 0.0),
            ]
            wide = [np.full((n, K), empty) for _, empty in columns]
            for array, (values, _) in zip(wide, columns, strict=True):
                array[:, arms] = values
            self._history = self._history.and_then(self._segment[drawn.batch.items[:n]], *wide)
        self._remembered = len(self.past)
        return self._history

    def _freeze(self) -> Frozen | SecondBatch | None:
        left = self.config.n_items - self._contexts
        if left <= 0:
            return self._freeze_second()
        if self.out_of_labels:
            return None
        c = self.config
        K, arms = c.n_models, np.flatnonzero(self.active)
        past = self.history()
        skips = False
        if not past.segment.size:
            calibration = Calibration.before(K, c.n_segments, c.bins)
            judged = c.use_judge
            propensity = np.full(calibration.prediction.shape, WARM_RATE if judged else 1.0)
            spread, leader, contexts = np.full((K, K), FIRST_SPREAD), int(arms[0]), np.inf
            value = -np.arange(K, dtype=np.float64)
        else:
            calibration = Calibration.of(
                past.segment, past.judge, past.label, past.seen > 0, c.n_segments, c.bins
            )
            m = calibration.prediction[np.arange(K)[None, :], calibration.cells(past.segment, past.judge)]
            spread = spread_of_predictions(m, past.seen > 0)
            # IPW residuals about today's predictions; only the choice of leader and rates rests on them
            gain = np.where(past.wanted > 0, np.nan_to_num(past.label - m), 0.0) / np.where(
                past.seen > 0, past.propensity, 1.0
            )
            n_seen = np.maximum(past.seen.sum(axis=0), 1)
            value = ((m + gain) * past.seen).sum(axis=0) / n_seen
            leader = int(arms[np.argmax(value[arms])])
            choice = self._outlook.choose(calibration, spread, value, leader, arms, past, n_seen)
            judged, propensity, contexts = choice.judged, choice.propensity.copy(), choice.contexts
            skips = choice.skips
            if not judged and self.no_go is None:
                self.no_go = len(self.past)
                if c.no_go is NoGo.STOP:
                    self.stopped_by_judge = True
                    return None
            young = past.wanted.sum(axis=0) < WARM_UP
            if not skips:
                propensity[young] = np.maximum(propensity[young], WARM_RATE)
        expected = float((calibration.share * propensity).sum(axis=1)[arms].sum())
        aim = c.pilot if not self.past else c.batch_after(self.labels)
        if c.max_labels is not None:
            aim = min(aim, max(1, c.max_labels - self.labels))
        n = int(np.clip(round(aim / max(expected, 1e-9)), 1, max(10.0, min(contexts, 1e9))))
        n = left if skips else min(n, left)
        G = residual_variance(calibration, propensity)
        if not judged:
            spread = spread_of_labels(past) if self.past else spread
            G = np.zeros(K)
        a, b = reach(calibration.prediction, propensity)
        disjoint = fits_disjoint(propensity, leader, c.coin is Coin.DISJOINT)
        width = pair_range(a, b, disjoint)
        bets = pair_bets(spread + G[:, None] + G[None, :], width)
        pairs = width[np.ix_(arms, arms)]
        pairs = pairs[~np.eye(arms.size, dtype=bool)]
        rival = np.full(K, leader, dtype=np.int64)
        if arms.size > 1:
            others = arms[arms != leader]
            rival[leader] = others[np.argmax(value[others])]
        rng = np.random.default_rng((c.seed, 1, len(self.past)))
        shape = (n, K) if c.coin is Coin.INDEPENDENT else (n, 1)
        return Frozen(
            number=len(self.past),
            first=self._contexts,
            items=self._order[self._contexts : self._contexts + n],
            arms=arms,
            judged=judged,
            leader=leader,
            rival=rival,
            calibration=calibration,
            propensity=propensity,
            bets=bets,
            cap=GAMMA / float(pairs.max()) if pairs.size else GAMMA / float((a + b)[arms].max()),
            below=a,
            above=b,
            uniform=np.broadcast_to(rng.random(shape), (n, K)),
            variance=np.diag(spread) / 2.0 + G,
        )

    @property
    def _outlook(self) -> Outlook:
        config = replace(self.config, judge_price=self.judge_price)
        return Outlook(config, self.threshold, self.no_go is None, self._contexts, self.judged, self.labels)

    def _freeze_second(self) -> SecondBatch | None:
        """All items are drawn: label what the contenders have no label of."""
        if self.second is None:
            self.second = self._begin_second()
            self.second.settle()
            self.active = self.second.active.copy()
        c = self.config
        over = self.active.sum() == 1 and c.n_models > 1
        if over or self.out_of_labels or not c.second_pass:
            return None
        aim = c.batch_after(self.labels)
        if c.max_labels is not None:
            aim = min(aim, max(1, c.max_labels - self.labels))
        return self.second.freeze(len(self.past), aim)

    def _begin_second(self) -> SecondPass:
        past = self.history()
        pool = Pool(
            items=self._order[: self._contexts],
            segment=past.segment,
            judge=past.judge,
            label=past.label,
            read=past.wanted > 0,
            seen=past.seen > 0,
        )
        near, proved = mixture(self._close), self._closeness
        return SecondPass(self.config, pool, self.active, self._against, near, proved, self.threshold)
