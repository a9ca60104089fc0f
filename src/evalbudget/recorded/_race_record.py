"""What a race said of itself when it ended, as its logs keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RaceRow:
    """How one model came out.

    Attributes:
        model: its name among the recorded scores.
        status: best, tie, leads, possible, behind or lost.
        estimate: of its mean over the benchmark's items; None where nothing was scored.
        lower: smallest mean that is possible, see :attr:`RaceRecord.claim`.
        upper: largest.
        read: items it was scored on.
    """

    model: str
    status: str
    estimate: float | None
    lower: float
    upper: float
    read: int


@dataclass(frozen=True, slots=True)
class RaceRecord:
    """The verdict of a finished race.

    How many items a model was asked followed from its scores, so that nothing but the race itself can say
    what they prove.

    Attributes:
        sentence: what came out.
        proof: what that rests on; empty where nothing is decided.
        claim: which intervals ``lower`` and ``upper`` are, for example "anytime, simultaneous".
        target: what they are of.
        rows: of the models, best first.
        items: of the benchmark.
        notes: what to know besides.
    """

    sentence: str
    proof: str
    claim: str
    target: str
    rows: tuple[RaceRow, ...]
    items: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, board: Mapping[str, Any], models: Mapping[str, str] | None = None) -> RaceRecord:
        """From a leaderboard as the logs of a race keep it, :attr:`evalbudget.races.Leaderboard.as_json`.

        Args:
            board: of the race.
            models: names among the recorded scores of those that the race calls otherwise.

        Raises:
            KeyError, TypeError: it is none.
        """
        names = models or {}
        rows = tuple(
            RaceRow(
                model=names.get(standing["name"], standing["name"]),
                status=str(standing["status"]),
                estimate=standing["estimate"],
                lower=float(standing["all_lower"]),
                upper=float(standing["all_upper"]),
                read=int(standing["readings"]),
            )
            for standing in board["standings"]
        )
        return cls(
            sentence=str(board["sentence"]),
            proof=str(board["proof"]),
            claim=str(board["interval"]),
            target=str(board["target"]),
            rows=rows,
            items=int(board["items"]),
            notes=tuple(map(str, board["notes"])),
        )
