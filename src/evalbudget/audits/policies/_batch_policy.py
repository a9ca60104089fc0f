"""Audit policies that go on when all labels of a batch are in: an author writes four methods."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.policies._config import PolicyConfig
from evalbudget.audits.policies._policy import AuditPolicy, Context
from evalbudget.audits.policies._verdict import ModelEstimate
from evalbudget.statistics._bounds import FloatArray

MIDDLE = 0.5
"""What a judge's score that failed for good counts as: any number fixed beforehand will do, and leaving the
item out would not."""


class BatchPolicy(AuditPolicy):
    """Judges batches of answers, throws a coin of its own for each, and learns once the labels are there.

    An author writes :meth:`_next` (what to judge next), :meth:`_propensity` (the chance of a label),
    :meth:`_learn` (take a complete batch in) and ``verdict``. The rest, with all that makes an audit
    replayable, is here.

    Args:
        config: settings.

    Attributes:
        leader: the system that leads, for the record; None if the policy knows none.
        labels_asked: in complete batches; with what the next batch may ask for at most they must stay within
            ``max_labels``.
        labelled: labels of each system that came, in complete batches.
    """

    leader: int | None = None

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__(config)
        n = config.n_models
        self._coins = np.random.default_rng((config.seed, 1))
        self._batch = 0
        self._first = 0
        self._judged = [0] * n
        self.labelled = [0] * n
        self.labels_asked = 0
        self._batch_contexts: tuple[Context, ...] | None = None
        self._drawn: dict[int, AuditDraw] = {}
        self._labels: dict[int, float] = {}
        self._learned_from: set[int] = set()  # labelled draws of batches that were learned from
        self._uniform: list[FloatArray] = []
        self._missing = 0

    # what an author writes

    @abstractmethod
    def _next(self) -> Sequence[tuple[int, Sequence[int]]]:
        """What to judge next: items, each with the systems whose answers are judged; empty to end."""

    @abstractmethod
    def _propensity(self, model: int, item: int, judge: float) -> float:
        """The chance of a label, in (0, 1], of an answer with this score; from complete batches only."""

    @abstractmethod
    def _learn(self, draws: Sequence[AuditDraw], labels: Mapping[int, float]) -> None:
        """Take a complete batch in.

        Args:
            draws: in draw order.
            labels: by index, of all draws that were wanted; nan for a label that never came.
        """

    def _estimates(
        self, values: Sequence[float], lower: Sequence[float], upper: Sequence[float]
    ) -> list[ModelEstimate]:
        """One estimate per system, with what was judged and labelled of it; bounds are cut to [0, 1]."""
        numbers = zip(values, lower, upper, self._judge_means(), strict=True)
        return [
            ModelEstimate(
                model=k,
                value=value,
                low=min(max(low, 0.0), 1.0),
                high=max(min(high, 1.0), 0.0),
                judged=self._judged[k],
                labels=self.labelled[k],
                judge_mean=judge_mean,
                active=True,
            )
            for k, (value, low, high, judge_mean) in enumerate(numbers)
        ]

    # what whoever runs an audit calls

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The batch under way; () when it is over."""
        if self._batch_contexts is None:
            self._batch_contexts = self._open()
        return self._batch_contexts

    @property
    def wanted(self) -> tuple[int, ...]:
        """Indices of draws whose label is missing."""
        return tuple(i for i, draw in sorted(self._drawn.items()) if draw.wanted and i not in self._labels)

    def judge(self, context: Context, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Take the judge's scores of one context; arguments and errors as in AuditPolicy."""
        position = context.number - self._first
        indices = [context.number * self.config.n_models + model for model in context.models]
        if not 0 <= position < len(self.contexts) or indices[0] in self._drawn:
            return ()
        self._check_scores(context, scores)
        draws = []
        known = np.where(np.isnan(scores), MIDDLE, scores).tolist()
        throws = zip(
            indices, context.models, scores.tolist(), known, self._uniform[position].tolist(), strict=True
        )
        for index, model, score, prediction, uniform in throws:
            propensity = self._propensity(model, context.item, prediction)
            draws.append(
                AuditDraw(
                    index=index,
                    context=context.number,
                    model=model,
                    item=context.item,
                    segment=self.config.segment_of(context.item),
                    judge=score,
                    prediction=prediction,
                    propensity=propensity,
                    uniform=uniform,
                    coin=Coin.INDEPENDENT,
                    leader=self.leader,
                    cap=math.inf,
                    policy=self._batch,
                    wanted=uniform < propensity,
                )
            )
        self.draws += draws
        self.scores_received += int(np.isfinite(scores).sum())
        self._drawn |= {draw.index: draw for draw in draws}
        self._missing += sum(draw.wanted for draw in draws) - len(draws)
        self._advance()
        return tuple(draws)

    def label(self, index: int, value: float) -> None:
        """Take the label of a draw; arguments and errors as in AuditPolicy."""
        if index in self._learned_from:  # its batch was learned from: nothing changes any more
            return
        draw = self._drawn.get(index)
        wanted = draw is not None and draw.wanted
        if self._is_new(index, value, wanted=wanted, before=self._labels.get(index)):
            self._labels[index] = value
            self.labels_received += not math.isnan(value)
            self._missing -= 1
            self._advance()

    def _advance(self) -> None:
        if self._missing:
            return
        draws = [self._drawn[index] for index in sorted(self._drawn)]
        for draw in draws:
            self._judged[draw.model] += 1
            self.labelled[draw.model] += not math.isnan(self._labels.get(draw.index, math.nan))
        self.labels_asked += len(self._labels)
        self._learn(draws, self._labels)
        self._learned_from |= self._labels.keys()
        self._first += len(self.contexts)
        self._batch += 1
        self._batch_contexts = None

    def _open(self) -> tuple[Context, ...]:
        found = enumerate(self._next(), start=self._first)
        contexts = tuple(Context(number, item, tuple(models), True) for number, (item, models) in found)
        self._drawn, self._labels = {}, {}
        self._uniform = [self._coins.random(len(c.models)) for c in contexts]
        self._missing = sum(len(c.models) for c in contexts)
        return contexts
