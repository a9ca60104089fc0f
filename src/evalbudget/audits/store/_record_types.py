"""What goes into an audit store besides draws, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Answer:
    """What a human reads of one draw.

    Attributes:
        prompt: what the system was asked; the same for all draws of a context.
        response: what it answered.
        reason: what the judge gave as its reason; hidden until the draw is labelled.
    """

    prompt: str
    response: str
    reason: str = ""


class LabelKind(StrEnum):
    """What became of a score that a human gave."""

    FIRST = "first"
    """The first one of its draw: it counts."""
    CORRECTION = "correction"
    """Replaces the one that counted; both are kept."""
    AGREES = "agrees"
    """Another labeller gave the same score."""
    CONFLICTS = "conflicts"
    """Contradicts the one that counts; kept and reported, it changes nothing."""
    KNOWN = "known"
    """In the store already, not recorded again."""


@dataclass(frozen=True, slots=True)
class Label:
    """A human's score of one draw.

    Attributes:
        draw: ``AuditDraw.index``.
        score: on the scale of the audit.
        by: who.
        at: when, in seconds since 1970.
        kind: what became of it.
        why: of a correction.
    """

    draw: int
    score: float
    by: str
    at: float
    kind: LabelKind
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a scorer that labels made of an answer.

    Attributes:
        score: that it gave, on the scale of the audit or not; None if it gave none.
        answer: that it read out of the response; empty if it says none.
        explanation: its reasons, in its own words.
        usage: tokens and costs of each model that it asked, by name.
        failure: why there is no label; empty if there is one.
    """

    score: float | None = None
    answer: str = ""
    explanation: str = ""
    usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One time that a scorer was asked for a label; it counts whatever became of it.

    Attributes:
        number: of the attempt.
        draw: ``AuditDraw.index``.
        by: who was asked.
        reply: None while it is under way, and for ever if its process was killed then.
    """

    number: int
    draw: int
    by: str
    reply: Reply | None


@dataclass(frozen=True, slots=True)
class LabelTask:
    """A draw as a labeller sees it: no system, no judge.

    Attributes:
        id: of the task, unique over all stores.
        draw: ``AuditDraw.index``.
        item: name of the item.
        segment: name of its segment.
        prompt: what the system was asked.
        response: what it answered.
    """

    id: str
    draw: int
    item: str
    segment: str
    prompt: str
    response: str

    def as_row(self) -> dict[str, str]:
        """For whoever labels elsewhere, by a script or in a spreadsheet."""
        row = asdict(self) | {"task": self.id}
        return {name: row[name] for name in ("task", "item", "segment", "prompt", "response")}


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the judge said of a draw.

    Attributes:
        score: on the scale of the audit; None if it gave none.
        reason: empty if it gave none.
        model: the system that was judged.
    """

    score: float | None
    reason: str
    model: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far labelling is.

    Attributes:
        drawn: answers judged.
        contexts: items judged, each for several systems.
        wanted: draws whose coin asks for a label.
        labelled: those of them with a label.
        leased: those of the rest that somebody is reading now.
        batch: number of the last batch of labels, from 0; -1 before the first.
        batch_wanted: labels wanted in that batch.
        batch_labelled: those of them with a label.
        conflicts: draws with contradictory labels.
        corrections: labels that were corrected.
        by: labels that count, of each labeller.
    """

    drawn: int
    contexts: int
    wanted: int
    labelled: int
    leased: int
    batch: int
    batch_wanted: int
    batch_labelled: int
    conflicts: int
    corrections: int
    by: dict[str, int]

    @property
    def outstanding(self) -> int:
        """Labels still wanted."""
        return self.wanted - self.labelled
