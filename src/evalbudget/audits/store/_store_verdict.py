"""What an audit has proved and who has to do what next: the same facts for page and terminal."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from evalbudget.audits.policies import AuditOutcome, AuditPolicy, ModelEstimate, Verdict, rebuild
from evalbudget.audits.store._design import Scale
from evalbudget.audits.store._record_types import Progress
from evalbudget.audits.store._store import AuditStore
from evalbudget.errors import (
    AuditStoreError,
    EvalbudgetError,
    InvalidInputError,
    ReplayError,
    UnknownNameError,
)
from evalbudget.exit_codes import ExitCode
from evalbudget.hooks._plugins import plugins
from evalbudget.store import Address


class Stage(StrEnum):
    """What happens next."""

    VERDICT = "verdict"
    """Nothing: the question is answered."""
    OVER = "over"
    """Nothing: items or budget are used up without an answer."""
    LABELS = "labels wanted"
    """Humans label."""
    DRAW = "next batch"
    """The run draws and judges the next batch."""

    @property
    def exit_code(self) -> ExitCode:
        """Of commands that say it."""
        done = {Stage.VERDICT: ExitCode.DONE, Stage.OVER: ExitCode.NO}
        return done.get(self, ExitCode.UNDECIDED)


@dataclass(frozen=True, slots=True)
class ModelStanding:
    """What is known of one system, on the scale of the audit.

    Attributes:
        model: its name.
        value: estimated mean label; None before the first.
        low: lower end of its interval; None if there is none.
        high: upper end.
        racing: whether it can still be the best.
        labels: of its answers, so far.
    """

    model: str
    value: float | None
    low: float | None
    high: float | None
    racing: bool = True
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What an audit has proved so far.

    Attributes:
        stage: what happens next.
        outcome: as ``evalbudget.audits.policies.AuditOutcome``.
        winner: name of the best system, if there is one.
        leader: name of the one that is ahead, which proves nothing.
        reason: why, in a sentence.
        models: every system, in the order of the design.
        interval: what the intervals are: level, anytime or not.
        judge_says: name of the system that the judge alone would call the best.
        cost: of judge calls and labels so far, in the audit's prices.
        wanted: draws whose label is waited for, in draw order.
        progress: how far labelling is.
        command: what draws the next batch.
        pool_used_up: every item was drawn without a verdict; what was decided since is about these items.
        exact: decided by labels alone, without any probability.
        second_pass_labels: that the second pass still needs at most; 0 if none is due.
        second_pass_cost: their price, in the audit's prices.
        without_judge: it turned out not to be worth its price, and everything is labelled since.
    """

    stage: Stage
    outcome: str
    winner: str | None
    leader: str | None
    reason: str
    models: tuple[ModelStanding, ...]
    interval: str
    judge_says: str | None
    cost: float
    wanted: tuple[int, ...]
    progress: Progress
    command: str = ""
    pool_used_up: bool = False
    exact: bool = False
    second_pass_labels: int = 0
    second_pass_cost: float = 0.0
    without_judge: bool = False

    @property
    def headline(self) -> str:
        """The outcome as a sentence."""
        unfinished = "ended without a verdict" if self.stage is Stage.OVER else "no verdict yet"
        if self.pool_used_up:
            unfinished = "undecided, the pool is used up"
        ahead = f": {self.leader} is ahead" if self.leader is not None and len(self.models) > 1 else ""
        return {
            "best": f"{self.winner} is the best" + " on these items" * self.pool_used_up,
            "tie": "a tie: systems are exactly equal on these items",
            "equivalent": f"equivalent within the margin{ahead}",
            "estimated": "the mean is known as well as wanted",
            "undecided": unfinished + ahead,
        }.get(self.outcome, self.outcome)

    @property
    def next_step(self) -> str:
        """What somebody has to do now."""
        wanted = len(self.wanted)
        return {
            Stage.VERDICT: "nothing more is needed",
            Stage.OVER: "nothing more is asked"
            if self.second_pass_labels
            else "nothing is left to draw or to label",
            Stage.LABELS: f"{wanted} label{'s' * (wanted != 1)} wanted" + self._second_pass(),
            Stage.DRAW: "all labels are in; run "
            + (self.command or "the command that began this audit")
            + (" again for the next batch" if not self.command else " for the next batch"),
        }[self.stage]

    def as_sentence(self, text: str) -> str:
        """With a capital, unless a model's name begins it."""
        if self.winner is not None and text.startswith(f"{self.winner} "):
            return text
        return f"{text[:1].upper()}{text[1:]}"

    def told(self, store: Address) -> str:
        """What a run says at its end: the outcome, and what to type next.

        Args:
            store: of the audit.
        """
        lines = [self.headline, *self.of_judge, *[self.reason] * self.pool_used_up, self.next_step]
        lines = [self.as_sentence(line) for line in lines]
        name = shlex.quote(str(store))
        if self.stage is Stage.LABELS:
            return "\n".join([*lines, f"  evalbudget audit serve {name}", "then the same command again"])
        return "\n".join([*lines, f"  evalbudget audit verdict {name}"])

    @property
    def of_judge(self) -> tuple[str, ...]:
        """That the judge is not worth its price, where it is not."""
        said = "the judge is not worth its price here: everything is labelled from now on"
        return (said,) * self.without_judge

    def _second_pass(self) -> str:
        more = self.second_pass_labels
        return f", of at most {more:,} that decide it" if more else ""

    def as_json(self) -> dict[str, Any]:
        """Plain values, sentences included."""
        return asdict(self) | {
            "wanted": len(self.wanted),
            "stage": self.stage.value,
            "headline": self.headline,
            "next_step": self.next_step,
            "progress": asdict(self.progress) | {"outstanding": self.progress.outstanding},
        }


def policy_of(store: AuditStore) -> AuditPolicy:
    """The policy that a store was begun with, before its first draw.

    Raises:
        AuditStoreError: no installed plugin has it, another version wrote its settings, or they do not fit
            the names.
    """
    design = store.design
    try:
        known = plugins().audit_policy(design.policy)
    except UnknownNameError as ex:
        raise AuditStoreError(
            f"{store.address} was drawn by {design.policy!r}, which cannot be replayed: no installed plugin "
            "has it (see: evalbudget plugins); install the one that does"
        ) from ex
    try:
        policy = known.of(design.config)
    except EvalbudgetError as ex:
        raise AuditStoreError(f"{store.address} has settings this version cannot read: {ex}") from ex
    policy.take_prices(store.judge_prices.all())
    config = policy.config
    sizes = (config.n_models, config.n_items)
    if sizes != (len(design.models), len(design.items)) or config.n_segments > len(design.segments):
        raise AuditStoreError(
            f"{store.address} names {len(design.models)} systems, {len(design.items)} items and "
            f"{len(design.segments)} segments, but its settings are for {config.n_models}, {config.n_items} "
            f"and {config.n_segments}"
        )
    return policy


def labels_of(store: AuditStore) -> dict[int, float]:
    """The labels that count, rescaled to [0, 1], by draw."""
    to_unit = store.design.scale.to_unit
    return {draw: to_unit(label.score) for draw, label in store.labels.counting().items()}


def weigh(store: AuditStore) -> Standing:
    """Replay an audit: its verdict, on the scale of its labels, and what happens next.

    Raises:
        AuditStoreError: the store's settings, or a draw of it, cannot be read.
        ReplayError: its draws are not those that settings and labels lead to.
    """
    scale = store.design.scale
    with store.snapshot():
        draws, labels, progress = store.draws.all(), labels_of(store), store.progress()
    policy = policy_of(store)  # with the prices by which these were drawn, at least
    try:
        found = rebuild(policy, draws, labels).verdict()
    except ReplayError as ex:
        raise ReplayError(f"{store.address}: {ex}") from ex
    except InvalidInputError as ex:
        raise AuditStoreError(f"{store.address}: {ex}") from ex
    names = store.design.models
    there = {draw.index for draw in draws}
    wanted = tuple(index for index in found.labels_wanted if index in there)
    return Standing(
        stage=_stage(found, wanted),
        outcome=found.outcome.value,
        winner=None if found.winner is None else names[found.winner],
        leader=None if found.leader is None else names[found.leader],
        reason=found.reason,
        models=tuple(_model(names[e.model], e, scale) for e in found.estimates),
        interval=found.intervals,
        judge_says=None if found.judge_verdict is None else names[found.judge_verdict],
        cost=found.cost,
        wanted=wanted,
        progress=progress,
        command=store.command,
        pool_used_up=found.pool_used_up,
        exact=found.exact,
        second_pass_labels=found.second_pass_labels,
        second_pass_cost=found.second_pass_cost,
        without_judge=found.no_go is not None,
    )


def _model(name: str, found: ModelEstimate, scale: Scale) -> ModelStanding:
    if not found.judged:  # of complete batches
        return ModelStanding(name, None, None, None, found.active, 0)
    ends = (found.high, found.low) if scale.lower_is_better else (found.low, found.high)
    value, low, high = (scale.from_unit(x) for x in (found.value, *ends))
    return ModelStanding(name, value, low, high, found.active, found.labels)


def _stage(found: Verdict, wanted: tuple[int, ...]) -> Stage:
    if found.finished:
        return Stage.OVER if found.outcome is AuditOutcome.UNDECIDED else Stage.VERDICT
    return Stage.LABELS if wanted else Stage.DRAW
