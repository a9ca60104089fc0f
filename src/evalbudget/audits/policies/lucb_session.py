"""PP-LUCB over a finite pool: one pull of the leader and one of the challenger per step."""

from __future__ import annotations

import math

import numpy as np

from evalbudget.audits.draw import AuditDraw, Coin
from evalbudget.audits.policies.lucb import LucbState
from evalbudget.audits.policies.session import Context
from evalbudget.audits.policies.verdict import AuditOutcome, ModelEstimate, Verdict
from evalbudget.errors import InvalidInputError
from evalbudget.statistics.bounds import FloatArray, IntArray

FAILED = 0.5
"""What a judge's score that failed for good counts as."""


class LucbSession:
    """As :class:`~evalbudget.audits.policies.session.AuditSession`, deciding like the paper.

    Args:
        state: of the algorithm.
        n_arms: how many systems.
        n_items: of the pool; each arm goes through it in the same random order.
        prices: of a judge's score and of a label.
        pulls: stop after this many in all and name the leader, as the paper's tables do; None: at separation.
        max_labels: stop before asking for more; None for no limit.
        seed: of the order of items and of the coins.

    A score that failed for good counts as the middle of the scale: any number fixed beforehand will do, and
    leaving the item out would not.

    Raises:
        InvalidInputError: fewer than one pull or label.
    """

    def __init__(
        self,
        state: LucbState,
        n_arms: int,
        n_items: int,
        *,
        prices: tuple[float, float] = (1.0, 20.0),
        pulls: int | None = None,
        max_labels: int | None = None,
        seed: int = 0,
    ) -> None:
        for name, most in (("pulls", pulls), ("max_labels", max_labels)):
            if most is not None and most < 1:
                raise InvalidInputError(f"{name} is {most}; give 1 or more, or none")
        self.state, self.prices, self.pulls, self.max_labels = state, prices, pulls, max_labels
        self.n_items = n_items
        self.draws: list[AuditDraw] = []
        self.labels_received = 0
        self.scores_received = 0
        self._order: IntArray = np.random.default_rng((seed, 0)).permutation(n_items)
        self._coins = np.random.default_rng((seed, 1))
        self._position = [0] * n_arms
        self._judged: list[tuple[float, int]] = [(0.0, 0)] * n_arms
        self._labels = [0] * n_arms
        self._asked = 0
        self._pulled = [0] * n_arms
        self._step = 0
        self._first = 0
        self._ended = ""
        self._parted = False
        self._contexts: tuple[Context, ...] = ()
        self._open()

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The pulls of the step under way; empty when it is over."""
        return self._contexts

    @property
    def over(self) -> bool:
        """Nothing more is asked."""
        return not self._contexts

    @property
    def limit(self) -> int | None:
        """All pulls of a step may be labelled; it stops before one that may not."""
        return None

    @property
    def wanted(self) -> tuple[int, ...]:
        """Indices of draws whose label is missing."""
        return tuple(d.index for d in self._row if d is not None and d.wanted and d.index not in self._label)

    def judge(self, position: int, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Take the judge's score of one pull; its coin falls.

        Raises:
            InvalidInputError: the score is outside [0, 1].
        """
        if self._row[position] is not None:
            return ()
        context, score = self._contexts[position], float(scores[0])
        if not (math.isnan(score) or 0.0 <= score <= 1.0):
            raise InvalidInputError(
                f"judge score {score:g} of item {context.item} is outside [0, 1]; rescale judge scores and "
                "labels by the same declared range"
            )
        model = context.models[0]
        known = FAILED if math.isnan(score) else score
        pi = self.state.propensity(model, known)
        wanted = self._uniform[position] < pi
        self.scores_received += not math.isnan(score)
        draw = AuditDraw(
            index=self._first + position,
            context=context.number,
            model=model,
            item=context.item,
            segment=0,
            judge=score,
            prediction=known,
            propensity=pi,
            uniform=float(self._uniform[position]),
            coin=Coin.INDEPENDENT,
            leader=self._contexts[0].models[0],
            cap=math.inf,
            policy=self._step,
            wanted=bool(wanted),
        )
        self._row[position] = draw
        self.draws.append(draw)
        self._advance()
        return (draw,)

    def label(self, index: int, value: float) -> None:
        """Take the label of a draw; nan for one that never came.

        Raises:
            InvalidInputError: it is not wanted, or outside [0, 1].
        """
        if index not in self.wanted:
            raise InvalidInputError(
                f"draw {index} was never to be labelled; labels that no coin asked for would bias the verdict"
            )
        if not (math.isnan(value) or 0.0 <= value <= 1.0):
            raise InvalidInputError(
                f"label {value:g} of draw {index} is outside [0, 1]; rescale labels by the declared range"
            )
        self._label[index] = value
        self.labels_received += not math.isnan(value)
        self._advance()

    def _advance(self) -> None:
        if any(draw is None for draw in self._row) or self.wanted:
            return
        for draw in self._row:
            assert draw is not None
            label = self._label.get(draw.index)
            self.state.learn(draw.model, draw.prediction, draw.propensity, label)
            total, n = self._judged[draw.model]
            if not math.isnan(draw.judge):
                self._judged[draw.model] = (total + draw.judge, n + 1)
            self._pulled[draw.model] += 1
            self._asked += draw.wanted
            self._labels[draw.model] += label is not None and not math.isnan(label)
        self._first += len(self._row)
        self._step += 1
        self._open()

    def _open(self) -> None:
        leader, challenger, self._parted = self.state.duel()
        arms = [leader] if leader == challenger else [leader, challenger]
        if self._parted:
            self._ended = "leader and challenger have parted"
        elif self.pulls is not None and self.state.pulls >= self.pulls:
            self._ended = f"stopped after {self.pulls} pulls: the leader is named, nothing is proved"
        elif any(self._position[k] >= self.n_items for k in arms):
            self._ended = f"all {self.n_items:,} items are drawn: leader and challenger have not parted"
        elif self.max_labels is not None and self._asked + len(arms) > self.max_labels:
            self._ended = (
                f"{self._asked} of the {self.max_labels} labels allowed are used up, and the next step could "
                "need more than are left"
            )
        self._row: list[AuditDraw | None] = []
        self._label: dict[int, float] = {}
        if self._ended:
            self._contexts = ()
            return
        if self.pulls is not None:
            arms = arms[: self.pulls - self.state.pulls]
        found: list[Context] = []
        for k in arms:
            found.append(Context(self._first + len(found), int(self._order[self._position[k]]), (k,), True))
            self._position[k] += 1
        self._contexts = tuple(found)
        self._row = [None] * len(found)
        self._uniform = self._coins.random(2).tolist()

    def verdict(self) -> Verdict:
        """What the paper would conclude."""
        means, widths = self.state.means(), self.state.widths()
        estimates = tuple(
            ModelEstimate(
                model=k,
                value=mean,
                low=min(max(0.0, mean - w), 1.0) if pulled else 0.0,
                high=max(min(1.0, mean + w), 0.0) if pulled else 1.0,
                judged=pulled,
                labels=self._labels[k],
                judge_mean=total / n if n else math.nan,
                active=True,
            )
            for k, (mean, w, pulled, (total, n)) in enumerate(
                zip(means, widths, self._pulled, self._judged, strict=True)
            )
        )
        known = [e for e in estimates if e.judged]
        scored = [e for e in estimates if not math.isnan(e.judge_mean)]
        leader = max(known, key=lambda e: e.value).model if known else None
        outcome, winner = AuditOutcome.UNDECIDED, None
        if self._parted:
            outcome, winner = AuditOutcome.BEST, leader
        return Verdict(
            outcome=outcome,
            finished=self.over,
            winner=winner,
            leader=leader,
            estimates=estimates,
            labels_wanted=self.wanted,
            judge_verdict=max(scored, key=lambda e: e.judge_mean).model if scored else None,
            judged=self.scores_received,
            labels=self.labels_received,
            cost=self.prices[0] * self.scores_received + self.prices[1] * self.labels_received,
            no_go=None,
            reason=self._ended or f"{len(self.wanted)} labels wanted",
        )
