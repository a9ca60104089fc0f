"""Preferences as tables."""

from __future__ import annotations

from evalbudget._fields import percent
from evalbudget.pairwise._rows import PositionRow, Read
from evalbudget.pairwise._win_rates import Taken
from evalbudget.report._numbers import table_of
from evalbudget.tables import NotedTable, Tables

_PLACES = 3
_MOST_PAIRS = 28
_MOST_JUDGES = 12


def tables(reading: Read) -> Tables:
    """Models, pairs where there are more than two models, and judges."""
    parts = [_models(reading)]
    if 1 < len(reading.pairs) <= _MOST_PAIRS:
        parts.append(table_of(reading.pairs, "", "", level=reading.level, places=_PLACES))
    if reading.positions:
        parts.append(_positions(list(reading.positions), reading.level))
    return Tables(tuple(parts))


def _taken(reading: Read) -> str:
    """What win rates are free of."""
    found = {Taken(row.position) for row in reading.pairs if row.judgements}
    if not reading.ordered:
        return "as shown, in an order that is not known"
    if Taken.NOTHING in found:
        return "as shown, with whatever position did"
    if found & {Taken.COMMON, Taken.BOTH}:
        return "less one effect of position that the judges share who saw one order each"
    return "both orders weighing alike"


def _models(reading: Read) -> NotedTable:
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


def _positions(rows: list[PositionRow], level: float) -> NotedTable:
    note = (
        "Position bias: mean value for the answer shown first, less 1/2. Flipped: the first was better both "
        "times, or the second."
    )
    shown = rows
    if len(rows) > _MOST_JUDGES:
        shown = rows[: _MOST_JUDGES - 1] + rows[-1:]
        note = f"{len(rows) - len(shown)} more judges are in the JSON. {note}"
    return table_of(shown, "", note, level=level, places=_PLACES)
