"""What every audit policy does: contexts to judge, coins for labels, labels in any order, a verdict."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.policies._config import PolicyConfig
from evalbudget.audits.policies._verdict import AuditOutcome, ModelEstimate, Verdict
from evalbudget.errors import InvalidInputError, ReplayError, did_you_mean
from evalbudget.statistics._bounds import FloatArray


@dataclass(frozen=True, slots=True)
class Context:
    """One item, judged for every system still in.

    Attributes:
        number: of the context.
        item: drawn.
        models: judged on it; in the second pass those whose answers are labelled.
        judged: whether the judge is asked.
        again: the second pass: these answers were drawn before, and have no label.
    """

    number: int
    item: int
    models: tuple[int, ...]
    judged: bool
    again: bool = False


class AuditPolicy(ABC):
    """Decides which answers are judged, which of them a human labels, and what that proves.

    Whoever runs an audit (a host through a store, a replay of recorded scores) has the :attr:`contexts`
    judged, hands the scores to :meth:`judge`, which throws the coins, has the :attr:`wanted` draws labelled
    and hands the labels to :meth:`label`, until no context is left. Scores and labels come in any order, on
    the human scale rescaled to [0, 1]; decisions must not depend on the order. A policy is pure and
    deterministic given its config, the scores and the labels, so that a store can be replayed.

    Most policies are a :class:`~evalbudget.audits.policies.BatchPolicy`, which leaves an author four methods.

    Args:
        config: settings, of the class ``config_type``.

    Attributes:
        name: as registered.
        config_type: what holds its options.
        asks_judge: False for a policy that never asks a judge.
        learns_prices: True for a policy that weighs labels by what the judge turns out to cost.
        draws: in the order in which their contexts were judged.
        scores_received: of the judge, failed ones left out.
        labels_received: those that never came left out.
    """

    name: ClassVar[str]
    config_type: ClassVar[type[PolicyConfig]] = PolicyConfig
    asks_judge: ClassVar[bool] = True
    learns_prices: ClassVar[bool] = False
    config: PolicyConfig

    def __init__(self, config: PolicyConfig) -> None:
        self.config = config
        self.draws: list[AuditDraw] = []
        self.scores_received = 0
        self.labels_received = 0

    @classmethod
    def options(cls) -> frozenset[str]:
        """Names of all settings."""
        return frozenset(f.name for f in fields(cls.config_type))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """A fresh policy with these settings, as typed or as ``config.to_json()`` gave them.

        Raises:
            InvalidInputError: a setting that does not exist, or a value that cannot be used.
        """
        known = cls.options()
        for name in settings:
            if name not in known:
                raise InvalidInputError(f"{cls.name} has no setting {name!r}.{did_you_mean(name, known)}")
        try:
            return cls(cls.config_type(**settings))
        except TypeError as ex:
            raise InvalidInputError(f"{cls.name} refuses its settings: {ex}") from ex

    # what whoever runs an audit calls

    @property
    @abstractmethod
    def contexts(self) -> tuple[Context, ...]:
        """The batch under way, judged or not, in draw order; () when nothing more is asked of anybody.

        Numbers of contexts increase from batch to batch. A context with ``judged`` false makes its draws
        itself.
        """

    @property
    @abstractmethod
    def wanted(self) -> tuple[int, ...]:
        """Indices of the draws whose label is missing, in draw order."""

    @abstractmethod
    def judge(self, context: Context, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Take the judge's scores of one context; its coins fall.

        Args:
            context: of the batch under way.
            scores: in [0, 1], nan where the judge failed for good, shape (models of the context,).

        Returns:
            One draw for each system of the context, which says with what probability a label is wanted and
            whether it is; () if the context was judged before or is not to be judged, or its batch has ended.

        Raises:
            InvalidInputError: a score outside [0, 1].
        """

    @abstractmethod
    def label(self, index: int, value: float) -> None:
        """Take the human label of a draw; one that was wanted and is not needed any more changes nothing.

        Args:
            index: of the draw.
            value: in [0, 1], nan for a label that never came.

        Raises:
            InvalidInputError: no coin asked for it, or it is outside [0, 1].
        """

    @abstractmethod
    def verdict(self) -> Verdict:
        """What has been proved so far; never changes what is asked."""

    @property
    def judge_price(self) -> float:
        """Of one score of the judge, as far as it is known."""
        return self.config.judge_price

    def take_prices(self, prices: Mapping[int, float]) -> None:  # noqa: B027  (most have no use for them)
        """Take what scores of the judge cost, before the first draw; nothing for most policies.

        Args:
            prices: means until a batch was drawn, by its number. A batch may be chosen only by those of
                earlier ones, so that it can be replayed.
        """

    @property
    def over(self) -> bool:
        """Nothing more is asked."""
        return not self.contexts

    def paid_besides(self, draws: Iterable[AuditDraw], labels: Mapping[int, float]) -> None:
        """Count what was paid and came after the decision fell; it proves nothing, but it has its price."""
        made = {draw.index for draw in self.draws}
        more = [draw for draw in draws if draw.index not in made]
        self.draws += more
        self.scores_received += sum(not math.isnan(d.judge) for d in more if d.coin is not Coin.NONE)
        self.labels_received = sum(not math.isnan(value) for value in labels.values())

    # for authors

    def _check_scores(self, context: Context, scores: FloatArray) -> None:
        outside = ~(np.isnan(scores) | ((scores >= 0.0) & (scores <= 1.0)))
        if outside.any():
            raise InvalidInputError(
                f"judge score {scores[outside][0]:g} of item {context.item} is outside [0, 1]; rescale judge "
                "scores and labels by the same declared range"
            )

    def _is_new(self, index: int, value: float, *, wanted: bool, before: float | None) -> bool:
        """Whether a label may be taken; False if it is the one that was given before."""
        if not wanted:
            raise InvalidInputError(
                f"draw {index} was never to be labelled; labels that no coin asked for would bias the verdict"
            )
        if not (math.isnan(value) or 0.0 <= value <= 1.0):
            raise InvalidInputError(
                f"label {value:g} of draw {index} is outside [0, 1]; rescale labels by the declared range"
            )
        if before is None or value == before:
            return before is None
        raise InvalidInputError(
            f"draw {index} has the label {before:g} already, and now {value:g}; settle contradicting labels "
            "before they are learned from"
        )

    def _judge_means(self) -> list[float]:
        """Mean score of the judge of each system, which proves nothing; nan without any."""
        scores: list[list[float]] = [[] for _ in range(self.config.n_models)]
        for draw in sorted(self.draws, key=lambda draw: draw.index):  # sums must not depend on the order
            if not math.isnan(draw.judge) and draw.coin is not Coin.NONE:
                scores[draw.model].append(draw.judge)
        return [float(np.mean(each)) if each else math.nan for each in scores]

    def _verdict(
        self,
        outcome: AuditOutcome,
        reason: str,
        estimates: Sequence[ModelEstimate],
        intervals: str,
        *,
        winner: int | None = None,
        **more: Any,
    ) -> Verdict:
        """A verdict with what can be told of every policy: leader, the judge's choice, what was paid.

        Args:
            outcome: how it ended, or ``undecided``.
            reason: one sentence.
            estimates: one per system.
            intervals: what their intervals are, in a sentence.
            winner: if there is one.
            more: further fields of :class:`Verdict`.
        """
        known = [e for e in estimates if e.active and not math.isnan(e.value)]
        scored = [e for e in estimates if not math.isnan(e.judge_mean)]
        judged, labels = self.scores_received, self.labels_received
        return Verdict(
            outcome=outcome,
            finished=self.over,
            winner=winner,
            leader=max(known, key=lambda e: e.value).model if known else None,
            estimates=tuple(estimates),
            intervals=intervals,
            labels_wanted=self.wanted,
            judge_verdict=max(scored, key=lambda e: e.judge_mean).model if scored else None,
            judged=judged,
            labels=labels,
            cost=self.judge_price * judged + self.config.label_price * labels,
            reason=reason,
            **more,
        )


P = TypeVar("P", bound=AuditPolicy)


def rebuild(policy: P, draws: Iterable[AuditDraw], labels: Mapping[int, float]) -> P:
    """The policy as it was after these draws and labels, ready to go on.

    Args:
        policy: a fresh one, with the settings of the store.
        draws: all of them, in any order; of the last batch perhaps only some contexts.
        labels: by index of the draw, in [0, 1]; nan for one that will never come.

    Returns:
        The policy given.

    Raises:
        ReplayError: settings, seed and labels lead to other draws than these.
        InvalidInputError: a label of a draw that no coin asked for, or outside [0, 1].
    """
    kept = {draw.index: draw for draw in draws}
    for index in labels:
        draw = kept.get(index)
        if draw is None or not draw.wanted:
            raise InvalidInputError(
                f"draw {index} was never to be labelled; labels that no coin asked for would bias the verdict"
            )
    by_context: dict[int, list[AuditDraw]] = {}
    for index in sorted(kept):
        by_context.setdefault(kept[index].context, []).append(kept[index])
    checked = 0
    while not policy.over:
        contexts = policy.contexts
        for context in contexts:
            found = by_context.get(context.number)
            if found is None or policy.over:
                continue
            if tuple(d.model for d in found) != context.models or found[0].item != context.item:
                raise _other(found[0])
            if context.judged:
                policy.judge(context, np.array([d.judge for d in found]))
        for draw in policy.draws[checked:]:
            _compare(kept.get(draw.index), draw)
        checked = len(policy.draws)
        for index in policy.wanted:
            if index in labels:
                policy.label(index, labels[index])
        if policy.contexts[:1] == contexts[:1]:
            break  # the rest has not been judged or labelled yet
    if policy.over:
        policy.paid_besides(kept.values(), labels)
    return policy


def _compare(kept: AuditDraw | None, made: AuditDraw) -> None:
    if kept is None:
        return  # human-only batches draw themselves; a store may not have all of them yet
    same = all(
        getattr(kept, name) == getattr(made, name)
        for name in ("context", "model", "item", "wanted", "policy", "leader")
    )
    close = all(
        math.isclose(getattr(kept, name), getattr(made, name), rel_tol=1e-9, abs_tol=1e-12)
        for name in ("prediction", "propensity", "uniform")
    )
    if not (same and close):
        raise _other(kept)


def _other(draw: AuditDraw) -> ReplayError:
    return ReplayError(
        f"draw {draw.index} (item {draw.item}, system {draw.model}) is not the one that these settings, seed "
        "and labels lead to; the store belongs to another audit, or a label was changed after it was learned "
        "from"
    )
