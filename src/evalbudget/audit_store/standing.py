"""What an audit has proved and who has to do what next: the same facts for the page and the terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from evalbudget.audit_store.records import Progress


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


@dataclass(frozen=True, slots=True)
class ModelStanding:
    """What is known of one system, on the scale of the audit.

    Attributes:
        model: its name.
        value: estimated mean label; None before the first.
        low: lower end of its interval; None if there is none.
        high: upper end.
        racing: whether it can still be the best.
    """

    model: str
    value: float | None
    low: float | None
    high: float | None
    racing: bool = True


@dataclass(frozen=True, slots=True)
class Standing:
    """What an audit has proved so far.

    Attributes:
        stage: what happens next.
        outcome: ``best``, ``tie``, ``equivalent``, ``undecided``, ``audit only``, ...
        winner: name of the best system, if there is one.
        reason: why, in a sentence.
        models: every system, in the order of the design.
        interval: what the intervals are: level, anytime or not.
        cost: of judge calls and labels so far, in the audit's prices.
        progress: how far labelling is.
        command: what draws the next batch.
    """

    stage: Stage
    outcome: str
    winner: str | None
    reason: str
    models: tuple[ModelStanding, ...]
    interval: str
    cost: float
    progress: Progress
    command: str = ""

    @property
    def headline(self) -> str:
        """The outcome as a sentence."""
        if self.winner is not None:
            return f"{self.winner} is the best"
        return {
            "tie": "a tie: nobody is shown to be the best",
            "equivalent": "equivalent within the margin",
            "audit only": "the judge is not worth its price: label without it",
            "undecided": "no verdict yet" if self.stage is not Stage.OVER else "ended without a verdict",
        }.get(self.outcome, self.outcome)

    @property
    def next_step(self) -> str:
        """What somebody has to do now."""
        wanted = self.progress.outstanding
        return {
            Stage.VERDICT: "nothing more is needed",
            Stage.OVER: "nothing is left to draw or to label",
            Stage.LABELS: f"{wanted} label{'s' * (wanted != 1)} wanted",
            Stage.DRAW: "all labels are in; run "
            + (self.command or "the command that began this audit")
            + (" again for the next batch" if not self.command else " for the next batch"),
        }[self.stage]

    def as_json(self) -> dict[str, Any]:
        """Plain values, sentences included."""
        return asdict(self) | {
            "stage": self.stage.value,
            "headline": self.headline,
            "next_step": self.next_step,
            "progress": asdict(self.progress) | {"outstanding": self.progress.outstanding},
        }
