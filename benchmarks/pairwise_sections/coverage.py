"""How often intervals of preferences hold."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest

from evalbudget_pairwise import average_of, bradley_terry, positions, win_rate
from judges_sections.found import Found, Target
from pairwise_sections.worlds import WORLDS

RUNS = 1000
LEVEL = 0.95
_ITEMS = (12, 50, 200)


def coverage(quick: bool, seeds: int | None = None) -> Found:
    """Win rates, position bias and strengths, in both orders and in one."""
    runs = 5 if quick else (seeds or RUNS)
    rows, worst = [], []
    for name, world in WORLDS.items():
        k = len(world.strength)
        strength = np.array(world.strength)
        truths = (
            world.rate(0, 1),
            float(np.mean([world.rate(0, other) for other in range(1, k)])),
            world.bias,
            float(expit((strength[0] - strength.mean()) * k / (k - 1))),
        )
        for n_items in _ITEMS[:1] if quick else _ITEMS:
            for both in (False, True):
                held = np.zeros(4, dtype=int)
                for seed in range(runs):
                    drawn = world.preferences(n_items, [seed, n_items], both=both)
                    rates = [win_rate(drawn, 0, other) for other in range(1, k)]
                    place = positions(drawn, LEVEL)[0]
                    spans = (
                        rates[0].interval(LEVEL),
                        average_of(rates).interval(LEVEL),
                        (place.low, place.high),
                        bradley_terry(drawn).against_average(0, LEVEL)[1:],
                    )
                    held += [low <= t <= high for t, (low, high) in zip(truths, spans, strict=True)]
                worst.append(int(held.min()))
                rows.append(
                    (
                        name,
                        f"{n_items}",
                        "both" if both else "one",
                        *(f"{count / runs:.3f}" for count in held.tolist()),
                    )
                )
    kept = all(
        binomtest(runs - held, runs, 1.0 - LEVEL, alternative="greater").pvalue > 0.001 for held in worst
    )
    return Found(
        f"{runs:,} runs per row, of judges whose win rates, bias and strengths are known exactly. Every pair "
        "meets on every item, in both orders or in one that alternates from item to item.",
        ("world", "items", "orders", "win rate of a pair", "against the others", "position bias", "strength"),
        tuple(rows),
        targets=(
            Target(
                f"intervals hold with {LEVEL:g} or more",
                f"at least {min(worst) / runs:.3f}",
                kept,
            ),
        ),
        notes=(
            "Above .95 where items are few or one model wins nearly always: what is added for the interval "
            "weighs more there.",
        ),
    )
