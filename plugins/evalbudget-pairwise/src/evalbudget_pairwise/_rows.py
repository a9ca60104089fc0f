"""What preferences say, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evalbudget.tables import Shown

_NAME = {"overflow": "fold", "min_width": 8}


def _ranks(row: ModelRow) -> str:
    return f"{row.rank_low}" if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"


def _proved(row: PairRow) -> str:
    return "beats" if row.proved else "is beaten by" if row.disproved else ""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model.

    Attributes:
        model: name.
        win_rate: against the average of its opponents, ties half a win.
        low: of its interval.
        high: of it.
        strength: probability of a win against the average opponent by Bradley and Terry.
        strength_low: of its interval.
        strength_high: of it.
        rank_low: smallest rank that the differences of strengths leave; all models' ranks hold at once.
        rank_high: the largest.
        opponents: it met.
        items: it met them on.
        judgements: of it, with a verdict.
        missing: judgements of it without one.
    """

    model: Annotated[str, Shown("model")]
    win_rate: Annotated[float, Shown("win rate", "p")]
    low: Annotated[float, Shown("{level}", "p", to="high")]
    high: float
    strength: Annotated[float, Shown("strength", "p")]
    strength_low: Annotated[float, Shown("{level}", "p", to="strength_high")]
    strength_high: float
    rank_low: Annotated[int, Shown("rank", by=_ranks)]
    rank_high: int
    opponents: int
    items: int
    judgements: Annotated[int, Shown("judged", ",")]
    missing: int


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two models.

    Attributes:
        first: name; of the two, the stronger one.
        second: name of the other one.
        win_rate: of ``first``; nan in all four if they never met.
        low: of its interval.
        high: of it.
        strength: probability that ``first`` wins by Bradley and Terry.
        anytime_low: of the interval of the win rate that may be read at every moment; nan where judgements
            do not stand in the order in which they were asked.
        anytime_high: of it.
        items: they met on.
        judgements: of them, with a verdict.
        missing: judgements of them without one.
        position: what the win rate is free of: ``none``; ``both orders`` (every judge saw each of its items
            in both); ``own``, each judge's effect of position; ``common``, one effect of all judges;
            ``own and common``.
        unidentified: share of the judgements, an item's sharing one, of which nothing tells what position did
            to them; the interval allows for any effect.
        both_ways: whether a judge saw either of them first; else nothing is proved.
        one_order: judges who saw them in one order only; their verdicts prove nothing.
        proved: whether ``first`` is proved to beat ``second``, whatever the missing verdicts had been.
        disproved: whether ``second`` is proved to beat ``first``, whatever they had been.
        undecided: whether one of the two would be proved to beat the other if it were not for the missing
            verdicts.
    """

    first: Annotated[str, Shown("model", more=_NAME)]
    second: Annotated[str, Shown("against", more=_NAME)]
    win_rate: Annotated[float, Shown("win rate", "p")]
    low: Annotated[float, Shown("{level}", "p", to="high")]
    high: float
    strength: float
    anytime_low: float
    anytime_high: float
    items: Annotated[int, Shown("items", ",")]
    judgements: Annotated[int, Shown("judged", ",")]
    missing: int
    position: str
    unidentified: float
    both_ways: bool
    one_order: tuple[str, ...]
    proved: Annotated[bool, Shown("proved", by=_proved, more={"overflow": "fold"})]
    disproved: bool
    undecided: bool
