"""What a race or a gate said of itself when it ended, as its logs keep it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalbudget.budget import cut_off
from evalbudget.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class RaceRow:
    """How one model came out.

    Attributes:
        model: its name among the recorded scores.
        status: best, tie, leads, possible, behind or lost; of a gate ``baseline`` or the verdict.
        estimate: of its mean over the benchmark's items; None where nothing was scored.
        lower: smallest mean that is possible, see :attr:`RaceRecord.claim`; nan where nothing is claimed.
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
    """The verdict of a finished race, or of a gate that asked its candidate itself.

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
        kind: ``race`` or ``gate``.
        lower_is_better: it took lower for better.
        score: that it went by; empty where its logs have but one, or do not say.
    """

    sentence: str
    proof: str
    claim: str
    target: str
    rows: tuple[RaceRow, ...]
    items: int
    notes: tuple[str, ...] = ()
    kind: str = "race"
    lower_is_better: bool = False
    score: str = ""

    @classmethod
    def of(
        cls,
        board: Mapping[str, Any],
        models: Mapping[str, str] | None = None,
        gate: Mapping[str, Any] | None = None,
        score: str = "",
    ) -> RaceRecord:
        """From a leaderboard as the logs of a race keep it, :attr:`evalbudget.races.Leaderboard.as_json`.

        Args:
            board: of the race.
            models: names among the recorded scores of those that the race calls otherwise.
            gate: what the gate found whose models these are, :meth:`evalbudget.comparisons.Gate.to_dict`;
                None for a race.
            score: that it went by.

        Raises:
            KeyError, TypeError: it is none.
        """
        names, lower = models or {}, bool(board["lower_is_better"])
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
        if gate is not None:
            found = cls._of_gate(gate, str(board["interval"]), str(board["target"]), rows, names)
            return replace(found, lower_is_better=lower, score=score)
        wasted = cut_off(float(board["wasted"]), board["paid"], str(board["unit"]))
        return cls(
            sentence=str(board["sentence"]),
            proof=str(board["proof"]),
            claim=str(board["interval"]),
            target=str(board["target"]),
            rows=rows,
            items=int(board["items"]),
            notes=tuple(filter(None, (*map(str, board["notes"]), wasted))),
            lower_is_better=lower,
            score=score,
        )

    def check_score(self, rater: str) -> None:
        """Refuse to tell this verdict of another score than it is of.

        Raises:
            InvalidInputError: it is another.
        """
        if self.score not in ("", rater):
            raise InvalidInputError(
                f"these are the scores of a {self.kind} by {self.score}, and whom it asked what followed "
                f"from that: it says nothing of {rater}; leave --rater out, or give --rater {self.score}"
            )

    @classmethod
    def _of_gate(
        cls,
        gate: Mapping[str, Any],
        claim: str,
        target: str,
        rows: Iterable[RaceRow],
        names: Mapping[str, str],
    ) -> RaceRecord:
        """Intervals are of items that were drawn one by one and answered once.

        A baseline whose scores are all known was looked at on the items of the candidate only.
        """
        repeats, candidate, compared = int(gate["repeats"]), str(gate["candidate"]), int(gate["items"])
        one_by_one = gate["cluster"] is None and repeats == 1
        known = gate["difference"] is not None
        told = "Difference {difference:+.3g} ({lower:+.3g} to {upper:+.3g})".format_map(gate) if known else ""
        verdict = str(gate["verdict"])
        return cls(
            sentence=str(gate["sentence"]),
            proof=told,
            claim=claim if one_by_one else "",
            target=target if one_by_one else "",
            rows=tuple(
                replace(
                    row,
                    status=verdict if row.model == names.get(candidate, candidate) else "baseline",
                    lower=row.lower if one_by_one else math.nan,
                    upper=row.upper if one_by_one else math.nan,
                    read=min(math.ceil(row.read / repeats), compared),
                )
                for row in rows
            ),
            items=int(gate["items_available"]),
            notes=tuple(filter(None, (str(gate["claim"]), gate["spent"], *map(str, gate["notes"])))),
            kind="gate",
        )
