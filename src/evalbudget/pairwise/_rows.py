"""What preferences say, row by row."""

from __future__ import annotations

from dataclasses import dataclass


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

    model: str
    win_rate: float
    low: float
    high: float
    strength: float
    strength_low: float
    strength_high: float
    rank_low: int
    rank_high: int
    opponents: int
    items: int
    judgements: int
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

    first: str
    second: str
    win_rate: float
    low: float
    high: float
    strength: float
    anytime_low: float
    anytime_high: float
    items: int
    judgements: int
    missing: int
    position: str
    unidentified: float
    both_ways: bool
    one_order: tuple[str, ...]
    proved: bool
    disproved: bool
    undecided: bool


@dataclass(frozen=True, slots=True)
class PositionRow:
    """A judge's position bias.

    Attributes:
        judge: name; ``all`` for all judges together.
        bias: mean value for the answer shown first, less 1/2.
        low: of its interval.
        high: of it.
        both_orders: pairs of answers shown in both orders.
        flipped: of these, whose verdict named the first both times, or the second both times.
        correlation: of an item's values in the two orders.
    """

    judge: str
    bias: float
    low: float
    high: float
    both_orders: int
    flipped: int
    correlation: float
