"""Coverage of intervals and wrong verdicts, by simulation with exactly known truths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget.design import Cell
from evalbudget.testing import play
from evalbudget_pairwise import (
    PairEvidence,
    Preference,
    Preferences,
    average_of,
    bradley_terry,
    positions,
    read_preferences,
    win_rate,
)
from evalbudget_pairwise.samplers import Duel, duels
from pairwise_sections.worlds import WORLDS, World

pytestmark = pytest.mark.claim

MISSED = {
    ("equal", 12, True): (0, 0, 1, 0),
    ("equal", 12, False): (1, 1, 1, 0),
    ("equal", 60, True): (0, 0, 1, 0),
    ("equal", 60, False): (0, 0, 0, 0),
    ("equal, bias and ties", 12, True): (0, 0, 0, 0),
    ("equal, bias and ties", 12, False): (0, 0, 0, 0),
    ("equal, bias and ties", 60, True): (0, 0, 1, 1),
    ("equal, bias and ties", 60, False): (0, 0, 0, 0),
    ("unequal", 12, True): (0, 0, 0, 0),
    ("unequal", 12, False): (0, 0, 0, 0),
    ("unequal", 60, True): (1, 1, 1, 1),
    ("unequal", 60, False): (0, 0, 1, 0),
    ("far", 12, True): (0, 0, 0, 1),
    ("far", 12, False): (0, 0, 0, 0),
    ("far", 60, True): (0, 0, 0, 1),
    ("far", 60, False): (0, 0, 0, 0),
    ("six", 12, True): (1, 0, 0, 2),
    ("six", 12, False): (0, 0, 0, 1),
    ("six", 60, True): (0, 1, 0, 1),
    ("six", 60, False): (0, 1, 0, 2),
}
"""By world, items and whether items are shown in both orders: misses of the win rate, of the mean against the
others, of the position bias, and of the strength."""


@pytest.mark.parametrize(
    ("n_items", "both"), [(12, True), (60, False), variant(12, False), variant(60, True)]
)
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover(name: str, n_items: int, both: bool) -> None:
    world, runs = WORLDS[name], replications(25, 2000)
    k = len(world.strength)
    strength = np.array(world.strength)
    truths = (
        world.rate(0, 1),
        float(np.mean([world.rate(0, other) for other in range(1, k)])),
        world.bias,
        float(expit((strength[0] - strength.mean()) * k / (k - 1))),
    )
    missed = np.zeros(4, dtype=int)
    for seed in range(runs):
        preferences = world.preferences(n_items, [seed, n_items], both=both)
        rates = [win_rate(preferences, 0, other) for other in range(1, k)]
        place = positions(preferences)[0]
        spans = (
            rates[0].interval(0.95),
            average_of(rates).interval(0.95),
            (place.low, place.high),
            bradley_terry(preferences).against_average(0, 0.95)[1:],
        )
        missed += [not low <= truth <= high for truth, (low, high) in zip(truths, spans, strict=True)]
    for failures, expected in zip(missed.tolist(), MISSED[name, n_items, both], strict=True):
        pinned(failures, expected)
        binomial_claim(failures, runs, at_most=0.05)


def evidence_at_every_moment(world: World, n_items: int, seed: int | list[int]) -> float:
    """The largest evidence ever that either beats the other: fresh items first, then other orders."""
    value = world.values(n_items, seed)
    rows = [(item, (item + turn) % 2 == 0) for turn in (0, 1) for item in range(n_items)]
    values = [value[0, 1, item] if a_first else 1.0 - value[1, 0, item] for item, a_first in rows]
    return max(PairEvidence.of([item for item, _ in rows], [first for _, first in rows], values).both)


@pytest.mark.parametrize(("name", "wrong"), [variant("equal", 8), ("equal, bias and ties", 7)])
def test_nobody_is_proved_better_among_equals_at_any_moment(name: str, wrong: int) -> None:
    runs, delta = replications(48, 2000), 0.1
    aim = math.log(2.0 / delta)
    failures = sum(evidence_at_every_moment(WORLDS[name], 300, [seed, 7]) >= aim for seed in range(runs))
    pinned(failures, wrong)
    binomial_claim(failures, runs, at_most=delta)


def raced(world: World, n_items: int, seed: int, **options: Any) -> tuple[Duel, int]:
    """A duel that is looked at after every round, until it stops, and how much it asked."""
    k = len(world.strength)
    value = world.values(n_items, [seed, 11])
    design = duels([str(i) for i in range(n_items)], [f"m{m}" for m in range(k)], "judge")
    sampler = Duel(design, seed=seed, until_proved=True, **options)
    found = play(
        sampler,
        2 * n_items * k * k,
        score=lambda cell: _of(sampler, cell, value),
        concurrency=16,
        together=16,
    )
    return sampler, len(found.readings)


def _of(sampler: Duel, cell: Cell, value: Any) -> float:
    return float(value[(*sampler.shown(cell), cell.item)])


@pytest.mark.parametrize(("strength", "wrong"), [((0.0, 0.0, 0.0), 1), variant((0.5, 0.5, 0.5, 0.0), 0)])
def test_an_adaptive_sampler_that_stops_when_it_likes_names_no_wrong_winner(
    strength: tuple[float, ...], wrong: int
) -> None:
    """Of exactly tied models nobody beats another: any statement between them is wrong."""
    world, runs, delta = World(strength, 0.6, 0.2), replications(10, 1000), 0.2
    ties = np.array(strength)[:, None] == np.array(strength)[None]
    failures = sum(bool((raced(world, 80, seed, delta=delta)[0].proved * ties).any()) for seed in range(runs))
    pinned(failures, wrong)
    binomial_claim(failures, runs, at_most=delta)


def test_a_difference_is_proved_sooner_than_all_comparisons_would_take() -> None:
    asked = [raced(World((0.7, -0.7), 0.6, 0.2), 400, seed)[1] for seed in range(20)]
    assert float(np.mean(asked)) < 0.25 * 800


def of_two_judges(design: str, n_items: int, seed: int) -> Preferences:
    """Equal models; judge 0 favours the first by .3, judge 1 does not."""
    rng = np.random.default_rng([seed, n_items])
    rows = []
    for item in range(n_items):
        if design == "each item by one judge, each in one order":
            shown = [(item % 2, item % 2 == 0)]
        elif design == "every item by both, each in one order":
            shown = [(0, True), (1, False)]
        elif design == "one judge in one order":
            shown = [(0, True), (1, item % 2 == 0)]
        else:
            shown = [(judge, bool(rng.random() < 0.5)) for judge in (0, 1)]
        for judge, a_first in shown:
            pair = ("a", "b") if a_first else ("b", "a")
            value = float(rng.random() < (0.5 if judge else 0.8))
            rows.append(Preference(str(item), *pair, value, f"judge {judge}"))
    return Preferences.of(rows, models=("a", "b"))


@pytest.mark.parametrize("in_order", [True, variant(False)])
@pytest.mark.parametrize(
    ("design", "wrong"),
    [
        variant("each item by one judge, each in one order", (0, 0)),
        ("every item by both, each in one order", (0, 0)),
        variant("one judge in one order", (0, 0)),
        ("both judges in any order", (1, 0)),
    ],
)
def test_judges_with_other_biases_prove_no_winner_among_equals(
    design: str, wrong: tuple[int, int], *, in_order: bool
) -> None:
    runs, delta = replications(9, 1000), 0.1
    failures = sum(
        read_preferences(of_two_judges(design, 120, seed), level=1.0 - delta, in_order=in_order).winner
        is not None
        for seed in range(runs)
    )
    pinned(failures, wrong[not in_order])
    binomial_claim(failures, runs, at_most=delta)
