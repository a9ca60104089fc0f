"""What an audit has proved and who has to do what next: the same facts for the page and the terminal."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from evalbudget.audits.store._record_types import Progress
from evalbudget.exit_codes import ExitCode
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
            "audit only": "the judge is not worth its price: label without it",
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
        lines = [self.headline, *[self.reason] * self.pool_used_up, self.next_step]
        lines = [self.as_sentence(line) for line in lines]
        name = shlex.quote(str(store))
        if self.stage is Stage.LABELS:
            return "\n".join([*lines, f"  evalbudget audit serve {name}", "then the same command again"])
        return "\n".join([*lines, f"  evalbudget audit verdict {name}"])

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
