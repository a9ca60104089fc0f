"""Preferences as tables."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget.pairwise._rows import ModelRow, PairRow, PositionRow
from evalbudget.pairwise._win_rates import Taken
from evalbudget.report._numbers import MISSING, name_cell, new_table, number, span
from evalbudget.tables import NotedTable, Tables

_PLACES = 3
_MOST_PAIRS = 28
_MOST_JUDGES = 12


def tables(
    models: Sequence[ModelRow],
    pairs: Sequence[PairRow],
    judges: Sequence[PositionRow],
    level: float,
    *,
    ordered: bool,
) -> Tables:
    """Models, pairs where there are more than two models, and judges.

    Args:
        models: the strongest first.
        pairs: every two of them.
        judges: their position bias.
        level: of the intervals.
        ordered: whether it is known which answer was shown first.
    """
    percent = f"{100.0 * level:.10g}%"
    proved = any(row.proved or row.disproved for row in pairs)
    parts = [_models(models, _taken(pairs, ordered=ordered), percent, proved=proved)]
    if 1 < len(pairs) <= _MOST_PAIRS:
        parts.append(_pairs(pairs, percent))
    if judges:
        parts.append(_positions(list(judges), percent))
    return Tables(tuple(parts))


def _taken(pairs: Sequence[PairRow], *, ordered: bool) -> str:
    """What win rates are free of."""
    found = {Taken(row.position) for row in pairs if row.judgements}
    if not ordered:
        return "as shown, in an order that is not known"
    if Taken.NOTHING in found:
        return "as shown, with whatever position did"
    if found & {Taken.COMMON, Taken.BOTH}:
        return "less one effect of position that the judges share who saw one order each"
    return "both orders weighing alike"


def _models(rows: Sequence[ModelRow], taken: str, percent: str, *, proved: bool) -> NotedTable:
    note = (
        f"Win rate: of all judges, against the average of the others, ties half a win, {taken}. "
        "Strength: win probability against the average opponent (Bradley-Terry). "
        f"Each {percent} interval for itself; random: items (sampled, independent); fixed-n, asymptotic."
    )
    if any(row.rank_high - row.rank_low < len(rows) - 1 for row in rows):
        held = "hold all at once" if proved else "are by all differences at once, which is no proof"
        note += f" Ranks {held}."
    table = new_table("", note, ["model", "rank", "win rate", percent, "strength", percent, "judged"])
    for row in rows:
        rank = f"{row.rank_low}" if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"
        table.add_row(
            name_cell(row.model),
            rank,
            number(row.win_rate, _PLACES),
            span(row.low, row.high, _PLACES),
            number(row.strength, _PLACES),
            span(row.strength_low, row.strength_high, _PLACES),
            f"{row.judgements:,}",
        )
    return table


def _pairs(rows: Sequence[PairRow], percent: str) -> NotedTable:
    table = new_table("", "", [])
    for name in ("model", "against"):
        table.add_column(name, overflow="fold", min_width=8)
    for name in ("win rate", percent, "items", "judged"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("proved", overflow="fold")
    for row in rows:
        verdict = "beats" if row.proved else "is beaten by" if row.disproved else ""
        table.add_row(
            name_cell(row.first),
            name_cell(row.second),
            number(row.win_rate, _PLACES),
            span(row.low, row.high, _PLACES),
            f"{row.items:,}",
            f"{row.judgements:,}",
            verdict,
        )
    return table


def _positions(rows: list[PositionRow], percent: str) -> NotedTable:
    note = (
        "Position bias: mean value for the answer shown first, less 1/2. Flipped: the first was better both "
        "times, or the second."
    )
    shown = rows
    if len(rows) > _MOST_JUDGES:
        shown = rows[: _MOST_JUDGES - 1] + rows[-1:]
        note = f"{len(rows) - len(shown)} more judges are in the JSON. {note}"
    table = new_table("", note, ["judge", "position bias", percent, "both orders", "flipped"])
    for row in shown:
        share = f" ({100.0 * row.flipped / row.both_orders:.0f}%)" if row.both_orders else ""
        table.add_row(
            name_cell(row.judge),
            number(row.bias, _PLACES, sign=True),
            span(row.low, row.high, _PLACES, sign=True),
            f"{row.both_orders:,}",
            f"{row.flipped:,}{share}" if row.both_orders else MISSING,
        )
    return table
