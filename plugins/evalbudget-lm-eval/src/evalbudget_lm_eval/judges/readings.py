"""What judges said of one document: kept beside the number that the host's tables and files see."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalbudget.statistics import known_mean
from evalbudget.untrusted import parsed_json

ENTRY = "evalbudget_judge"
"""Key of the judge's name in ``filtered_resps`` of a ``samples_*.jsonl``."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One judge's call.

    Attributes:
        judge: its name.
        epoch: ordinal of the answer among those of the document, from 0.
        score: on the scale; None if the call failed or the reply has no score.
        reply: in full; empty if the call failed.
        error: of a call that failed.
    """

    judge: str
    epoch: int
    score: float | None
    reply: str = ""
    error: str | None = None

    def __str__(self) -> str:
        # the host writes str() of what filters return into samples_*.jsonl
        told = asdict(self)
        return json.dumps({ENTRY: told.pop("judge"), **told}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: object) -> Reading | None:
        """What :meth:`__str__` wrote; None if it is something else."""
        if not isinstance(text, str) or not text.startswith(f'{{"{ENTRY}"'):
            return None
        try:
            told: dict[str, Any] = parsed_json(text)
            score = told.get("score")
            return cls(
                str(told[ENTRY]),
                int(told["epoch"]),
                None if score is None else float(score),
                str(told.get("reply", "")),
                told.get("error"),
            )
        except (ValueError, KeyError, TypeError):
            return None


class Readings(list[Reading]):
    """All readings of one document.

    Args:
        readings: in the order of the epochs.
        judges: the panel.
        weighs_judges: every judge weighs the same in the estimate.
        scale: the smallest and the largest score; None if unknown.
    """

    def __init__(
        self,
        readings: Iterable[Reading] = (),
        *,
        judges: Sequence[str] = (),
        weighs_judges: bool = True,
        scale: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(readings)
        self.scale = scale
        self.judges = tuple(judges)
        self.weighs_judges = weighs_judges

    @property
    def mean(self) -> float:
        """Of the scores; nan without any."""
        return known_mean(reading.score for reading in self)


def why_missing(answers: Iterable[object]) -> str | None:
    """Why judges gave no score, of the first who gave none; None if no judge was asked.

    Args:
        answers: a document's filtered responses.
    """
    for answer in answers:
        for reading in answer if isinstance(answer, Readings) else ():
            if reading.score is None:
                return f"judge {reading.judge}: {reading.error or 'a reply without a number on the scale'}"
    return None


class Judged(float):
    """A document's number in a row of the host's table, with the readings that the row's total needs.

    Args:
        about: which row.
        readings: of the document.
    """

    about: str
    readings: Readings

    def __new__(cls, about: str, readings: Readings) -> Judged:
        """The row's number for this document."""
        self = super().__new__(cls, _number(about, readings))
        self.about = about
        self.readings = readings
        return self

    def __reduce__(self) -> tuple[type[Judged], tuple[str, Readings]]:
        return type(self), (self.about, self.readings)

    def merged(self, others: Sequence[Judged]) -> Judged:
        """The same document's number after these repeats, this one among them."""
        mine = self.readings
        every = Readings(
            (reading for other in others for reading in other.readings),
            judges=mine.judges,
            weighs_judges=mine.weighs_judges,
            scale=mine.scale,
        )
        return Judged(self.about, every)


def _number(about: str, readings: Readings) -> float:
    what, _, judge = about.partition(" ")
    if what == "missing":
        return float(sum(reading.score is None for reading in readings))
    if what == "bias":  # of a single document: what this judge said
        return Readings(reading for reading in readings if reading.judge == judge).mean
    return readings.mean if what == "estimate" else math.nan
