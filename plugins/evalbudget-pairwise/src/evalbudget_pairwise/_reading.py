"""What preferences say of models, as a sentence, notes, tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalbudget.report import AsJson, table_of
from evalbudget.tables import NotedTable, Tables, names, percent
from evalbudget_pairwise._position import Position
from evalbudget_pairwise._rows import ModelRow, PairRow
from evalbudget_pairwise._win_rates import Taken

_NAMED = 4
_SHOWN = 3
_PLACES = 3
_MOST_PAIRS = 28
_MOST_JUDGES = 12
_NOT_IDENTIFIED = "the effect of position is not identified where each judge saw one order only"
_NO_ORDER = (
    "Which answer was shown first is not known, so no effect of position can be seen: it is part of the win "
    "rates, and nothing is proved. Give columns first and second in the order shown."
)


@dataclass(frozen=True, repr=False)
class PairwiseReading(AsJson):
    """What preferences say.

    Attributes:
        winner: the model that is proved to beat every other one; None if there is none yet.
        level: of the intervals, and 1 - the probability that anything proved is wrong.
        in_order: whether judgements stand in the order in which they were asked, so that what is proved may
            be read at every moment.
        ordered: whether it is known which answer was shown first.
        items: that were compared.
        judgements: with a verdict.
        ties: among them.
        missing: without one.
        repeated: judgements of an item, order and judge that there were before.
        not_read: columns of the table that were not used.
        models: the strongest first.
        pairs: every two of them.
        positions: of every judge.
    """

    winner: str | None
    level: float
    in_order: bool
    ordered: bool
    items: int
    judgements: int
    ties: int
    missing: int
    repeated: int
    not_read: tuple[str, ...]
    models: tuple[ModelRow, ...]
    pairs: tuple[PairRow, ...]
    positions: tuple[Position, ...]

    @property
    def sentence(self) -> str:
        """What is proved."""
        sure = f"with {100.0 * self.level:.10g}% confidence"
        if self.winner is not None:
            others = [row.model for row in self.models if row.model != self.winner]
            whom = others[0] if len(others) == 1 else f"every one of the other {len(others)}"
            return f"{self.winner} beats {whom}, {sure}."
        first = max(self.models, key=lambda row: row.win_rate)
        level = [row.model for row in self.models if math.isclose(row.win_rate, first.win_rate, abs_tol=1e-9)]
        leads = f"{first.model} leads with a win rate of {first.win_rate:.3f}"
        if len(level) > 1:
            every = (
                f"{', '.join(level[:-1])} and {level[-1]}" if len(level) <= _NAMED else f"{len(level)} models"
            )
            leads = f"{every} are level with a win rate of {first.win_rate:.3f}"
        some = [
            f"{row.first} beats {row.second}" if row.proved else f"{row.second} beats {row.first}"
            for row in self.pairs
            if row.proved or row.disproved
        ]
        if not some:
            return f"No winner yet: {leads}, and nothing is proved."
        return f"No winner yet: {leads}. Proved, {sure} in all: {', '.join(some)}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before reading the tables: what position did, what is missing or was not read."""
        return tuple(_notes(self))

    def table(self) -> Tables:
        """Models, pairs where there are more than two models, and judges."""
        parts = [_models(self)]
        if 1 < len(self.pairs) <= _MOST_PAIRS:
            parts.append(table_of(self.pairs, "", "", level=self.level, places=_PLACES))
        if self.positions:
            parts.append(_positions(self.positions, self.level))
        return Tables(tuple(parts))

    def _told(self) -> dict[str, Any]:
        return {"sentence": self.sentence, "notes": self.notes, **asdict(self)}

    def __repr__(self) -> str:
        return f"<PairwiseReading: {self.sentence}>"


def _notes(reading: PairwiseReading) -> Iterator[str]:
    if reading.ordered:
        yield from _position([row for row in reading.pairs if row.judgements])
    else:
        yield _NO_ORDER
    if reading.missing:
        yield from _missing(reading)
    if reading.items == 1:
        yield "One item shows no spread: there are no intervals. Compare on more items."
    if some := [row.model for row in reading.models if 0 < row.opponents < len(reading.models) - 1]:
        yield (
            f"{', '.join(some)}: not compared with every other model, so that win rates are against "
            "different opponents; strengths are comparable."
        )
    if reading.repeated:
        counts = "the first one counts for what is proved" if reading.in_order else "their mean counts"
        verb = "judgement repeats" if reading.repeated == 1 else "judgements repeat"
        yield f"{reading.repeated:,} {verb} an item, order and judge: {counts}."
    if reading.not_read:
        yield f"Not read: {names(reading.not_read, 10)}."


def _position(pairs: Sequence[PairRow]) -> Iterator[str]:
    if told := _those(pairs, lambda row: row.position == Taken.NOTHING.value):
        yield (
            f"{told} were only ever shown in one order: {_NOT_IDENTIFIED}. It is part of the win rate, and "
            "nothing is proved. Show them the other way round, too."
        )
    if told := _those(pairs, lambda row: row.position == Taken.COMMON.value and not row.both_ways):
        yield (
            f"{told} were shown in one order by each judge, and {_NOT_IDENTIFIED}. One effect of all judges "
            f"is taken away, which is right if chance decided who saw which order{_allowed(pairs)}. Nothing "
            "is proved. Have each judge see both orders."
        )
    if told := _those(pairs, lambda row: _shares(row) and not row.unidentified and row.both_ways):
        yield (
            f"Some judges saw {told} in one order only. They share one effect of position, which is right if "
            "chance decided who saw which order."
        )
    some = [row for row in pairs if row.both_ways and row.one_order and row.unidentified]
    if some:
        judges = names(dict.fromkeys(name for row in some for name in row.one_order), _SHOWN)
        those = _those(some, lambda _: True)
        whom = those if len(some) == 1 else f"one pair or more of these ({those})"
        yield (
            f"{judges} saw {whom} in one order only, which says nothing of who wins. "
            f"The effect of position of the others is taken away{_allowed(some)}. Show them the other way "
            "round, too."
        )


def _shares(row: PairRow) -> bool:
    return row.position in (Taken.COMMON.value, Taken.BOTH.value)


def _allowed(pairs: Iterable[PairRow]) -> str:
    most = max((row.unidentified for row in pairs), default=0.0)
    return f"; intervals allow for any effect on {100.0 * most:.0f}% of the votes" if most else ""


def _those(pairs: Iterable[PairRow], kind: Callable[[PairRow], bool]) -> str:
    found = [f"{row.first} and {row.second}" for row in pairs if kind(row)]
    return "; ".join(found[:_SHOWN]) + (f"; and {len(found) - _SHOWN} more pairs" if found[_SHOWN:] else "")


def _missing(reading: PairwiseReading) -> Iterator[str]:
    whom = ", ".join(f"{row.missing:,} of {row.model}" for row in reading.models if row.missing)
    verb = "verdict is" if reading.missing == 1 else "verdicts are"
    yield (
        f"{reading.missing:,} {verb} missing ({whom}). Rates and strengths are of the others; what is "
        "proved, and ranks, hold whatever the missing ones had been."
    )
    if told := _those(reading.pairs, lambda row: row.undecided):
        yield f"Undecided because of them: {told}. Without them one would be proved to beat the other."


def _taken(reading: PairwiseReading) -> str:
    """What win rates are free of."""
    found = {Taken(row.position) for row in reading.pairs if row.judgements}
    if not reading.ordered:
        return "as shown, in an order that is not known"
    if Taken.NOTHING in found:
        return "as shown, with whatever position did"
    if found & {Taken.COMMON, Taken.BOTH}:
        return "less one effect of position that the judges share who saw one order each"
    return "both orders weighing alike"


def _models(reading: PairwiseReading) -> NotedTable:
    rows, level = reading.models, reading.level
    note = (
        "Win rate: of all judges, against the average of the others, ties half a win, "
        f"{_taken(reading)}. Strength: win probability against the average opponent (Bradley-Terry). Each "
        f"{percent(level)} interval for itself; random: items (sampled, independent); fixed-n, asymptotic."
    )
    if any(row.rank_high - row.rank_low < len(rows) - 1 for row in rows):
        proved = any(row.proved or row.disproved for row in reading.pairs)
        held = "hold all at once" if proved else "are by all differences at once, which is no proof"
        note += f" Ranks {held}."
    columns = ["model", "rank_low", "win_rate", "low", "strength", "strength_low", "judgements"]
    return table_of(rows, "", note, level=level, places=_PLACES, only=columns)


def _positions(rows: Sequence[Position], level: float) -> NotedTable:
    note = (
        "Position bias: mean value for the answer shown first, less 1/2. Flipped: the first was better both "
        "times, or the second."
    )
    shown = rows
    if len(rows) > _MOST_JUDGES:
        shown = (*rows[: _MOST_JUDGES - 1], rows[-1])
        note = f"{len(rows) - len(shown)} more judges are in the JSON. {note}"
    return table_of(shown, "", note, level=level, places=_PLACES)
