"""Panels of judges with biases of their own: coverage, and wrong statements, by simulation."""

from __future__ import annotations

import pytest
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget_pairwise import read_preferences, win_rate
from evalbudget_pairwise._bradley_terry import ranks
from pairwise_sections.panels import Panel

pytestmark = pytest.mark.claim

PANELS = {
    "2, both orders": Panel(2, 30),
    "2, the same items": Panel(2, 30, same_items=True),
    "5, both orders": Panel(5, 12, 0.7, ties=0.2),
    "5, one order each": Panel(5, 12, orders="one"),
    "5, some in one order": Panel(5, 12, orders="mixed"),
    "50, both orders": Panel(50, 8, 0.8),
    "50, one order each": Panel(50, 8, orders="one"),
    "50, some in one order": Panel(50, 8, 0.65, orders="mixed"),
    "50, one vote each": Panel(50, 1),
    "200, three votes each": Panel(200, 3, ties=0.1),
}
"""Nothing tells what position did to two judges in one order each: see the exact tests."""

MISSED = {
    "2, both orders": 2,
    "2, the same items": 2,
    "5, both orders": 0,
    "5, one order each": 0,
    "5, some in one order": 0,
    "50, both orders": 0,
    "50, one order each": 3,
    "50, some in one order": 4,
    "50, one vote each": 6,
    "200, three votes each": 2,
}


@pytest.mark.parametrize("name", PANELS)
def test_win_rates_of_panels_cover(name: str) -> None:
    panel, runs, missed = PANELS[name], replications(60, 2000), 0
    for seed in range(runs):
        low, high = win_rate(panel.preferences([seed, 1]), 0, 1).interval(0.95)
        missed += not low <= panel.win_rate <= high
    pinned(missed, MISSED[name])
    binomial_claim(missed, runs, at_most=0.05)


EQUAL = {
    "2, both orders": Panel(2, 30),
    "2, one order each": Panel(2, 30, orders="one"),
    "2, the same items": Panel(2, 30, orders="one", same_items=True),
    "5, both orders": Panel(5, 12, ties=0.2),
    "5, one order each": Panel(5, 12, orders="one"),
    "5, some in one order": Panel(5, 12, orders="mixed"),
    "50, one order each": Panel(50, 8, orders="one"),
    "50, one vote each": Panel(50, 1),
    "200, three votes each": Panel(200, 3),
}

WRONG = {
    "2, both orders": (1, 1),
    "2, one order each": (0, 0),
    "2, the same items": (0, 0),
    "5, both orders": (1, 3),
    "5, one order each": (0, 0),
    "5, some in one order": (0, 2),
    "50, one order each": (0, 4),
    "50, one vote each": (0, 0),
    "200, three votes each": (0, 0),
}
"""Runs that named a winner, and runs whose ranks told two equal models apart."""
ASKED = {"2, both orders", "2, the same items", "5, some in one order", "50, one order each"}


@pytest.mark.parametrize("name", [name if name in ASKED else variant(name) for name in EQUAL])
def test_no_panel_proves_a_winner_or_ranks_among_equals(name: str) -> None:
    runs, delta = replications(20, 1000), 0.1
    winners = ranked = 0
    for seed in range(runs):
        found = EQUAL[name].preferences([seed, 2])
        winners += read_preferences(found, level=1.0 - delta).winner is not None
        ranked += ranks(found, 1.0 - delta) != [(1, 2), (1, 2)]
    for failures, expected in zip((winners, ranked), WRONG[name], strict=True):
        pinned(failures, expected)
        binomial_claim(failures, runs, at_most=delta)
