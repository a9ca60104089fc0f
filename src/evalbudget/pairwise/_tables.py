"""Preferences as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalbudget.report._numbers import MISSING, name_cell, new_table, number, span
from evalbudget.tables import NotedTable, Tables

if TYPE_CHECKING:
    from evalbudget.pairwise._reading import PairwiseReading

_PLACES = 3
_MOST_PAIRS = 28


def tables(found: PairwiseReading) -> Tables:
    """Models, pairs where there are more than two models, and judges."""
    parts = [_models(found)]
    if 1 < len(found.pairs) <= _MOST_PAIRS:
        parts.append(_pairs(found))
    parts.append(_positions(found))
    return Tables(tuple(parts))


def _models(found: PairwiseReading) -> NotedTable:
    percent = f"{100.0 * found.level:.10g}%"
    note = (
        "Win rate: against the average of the others, ties half a win, both orders weighing alike. "
        "Strength: win probability against the average opponent (Bradley-Terry). "
        f"Each {percent} interval for itself; random: items (sampled, independent); fixed-n, asymptotic. "
        "Ranks hold all at once."
    )
    table = new_table("", note, ["model", "rank", "win rate", percent, "strength", percent, "judged"])
    for row in found.models:
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


def _pairs(found: PairwiseReading) -> NotedTable:
    table = new_table("", "", [])
    for name in ("model", "against"):
        table.add_column(name, overflow="fold", min_width=8)
    for name in ("win rate", f"{100.0 * found.level:.10g}%", "items", "judged"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("proved", overflow="fold")
    for row in found.pairs:
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


def _positions(found: PairwiseReading) -> NotedTable:
    note = (
        "Position bias: mean value for the answer shown first, less 1/2. Flipped: the first was better both "
        "times, or the second."
    )
    table = new_table(
        "", note, ["judge", "position bias", f"{100.0 * found.level:.10g}%", "both orders", "flipped"]
    )
    for row in found.positions:
        share = f" ({100.0 * row.flipped / row.both_orders:.0f}%)" if row.both_orders else ""
        table.add_row(
            name_cell(row.judge),
            number(row.bias, _PLACES, sign=True),
            span(row.low, row.high, _PLACES, sign=True),
            f"{row.both_orders:,}",
            f"{row.flipped:,}{share}" if row.both_orders else MISSING,
        )
    return table
