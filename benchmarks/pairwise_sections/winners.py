"""Calls until a winner is proved, and wrong statements, on the real samplers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from evalbudget import Budget
from evalbudget.book import Book
from evalbudget.design import Reading
from evalbudget_pairwise.samplers import Duel, PairSampler, UniformPairs, duels
from judges_sections.found import Found, Target
from pairwise_sections.worlds import World

RUNS = 200
DELTA = 0.05
_ITEMS = 400
_STEP = 16
_WORLDS = {
    "two, 62%": World((0.5, 0.0), 0.6, 0.2),
    "two, equal": World((0.0, 0.0), 0.6, 0.2),
    "three": World((0.9, 0.2, -0.4), 0.6, 0.2),
    "six": World((1.0, 0.4, 0.2, 0.0, -0.4, -1.0), 0.6, 0.2),
    "six, two of them equally best": World((0.6, 0.6, 0.0, -0.2, -0.4, -0.6), 0.6, 0.2),
}
_SAMPLERS: dict[str, tuple[type[PairSampler], dict[str, Any]]] = {
    "duel": (Duel, {}),
    "duel, both orders": (Duel, {"orders": "both"}),
    "uniform": (UniformPairs, {}),
    "uniform, both orders": (UniformPairs, {"orders": "both"}),
}


@dataclass(frozen=True)
class Ended:
    """One purchase.

    Attributes:
        winner: that was proved; None if the comparisons, or the cap, were used up.
        calls: of the judge.
        wrong: whether any "A beats B" that was proved is wrong.
    """

    winner: int | None
    calls: int
    wrong: bool


def play(world: World, name: str, seed: int, *, n_items: int, cap: int) -> Ended:
    """One sampler against one judge, looked at after every step."""
    k = len(world.strength)
    value = world.values(n_items, [seed, 5])
    cls, options = _SAMPLERS[name]
    design = duels([str(i) for i in range(n_items)], [f"m{m}" for m in range(k)], "judge")
    sampler = cls(design, seed=seed, until_proved=True, delta=DELTA, **options)
    book = Book(sampler, Budget(cap))
    came: list[Reading] = []
    while requests := book.trade(came, _STEP):
        came = [Reading(r, float(value[(*sampler.shown(r.cell), r.cell.item)])) for r in requests]
    book.look()
    strength = np.array(world.strength)
    false = strength[:, None] <= strength[None]
    proved = sampler.proved
    return Ended(sampler.winner, int(book.spent), bool((proved * false).any()))


def winners(quick: bool, seeds: int | None = None) -> Found:
    """Calls of the default sampler and of uniform ones, where there is a winner and where there is none."""
    runs = 2 if quick else (seeds or RUNS)
    n_items = 15 if quick else _ITEMS
    rows, wrong = [], []
    calls: dict[tuple[str, str], float] = {}
    for world_name, world in _WORLDS.items():
        k = len(world.strength)
        cap = 4 * n_items if k > 3 else 2 * n_items
        for name in _SAMPLERS:
            if k == 2 and name.startswith("uniform"):
                continue  # there is one pair
            ended = [play(world, name, seed, n_items=n_items, cap=cap) for seed in range(runs)]
            failed = sum(each.wrong for each in ended)
            wrong.append(failed)
            calls[world_name, name] = float(np.mean([each.calls for each in ended]))
            rows.append(
                (
                    world_name,
                    name,
                    f"{cap:,}",
                    f"{np.mean([each.winner is not None for each in ended]):.2f}",
                    f"{calls[world_name, name]:,.0f}",
                    f"{failed / runs:.3f}",
                )
            )
    kept = all(binomtest(failed, runs, DELTA, alternative="greater").pvalue > 0.001 for failed in wrong)
    against = {world: calls[world, "duel"] / calls[world, "uniform"] for world in ("three", "six")}
    order = {
        world: calls[world, "duel"] / calls[world, "duel, both orders"]
        for world in ("two, 62%", "three", "six")
    }
    return Found(
        f"{runs:,} runs per row, each looked at after every step and stopped at a winner or at the cap; "
        f"{n_items} items, a judge who favours the first (0.6 on the scale of logits) and calls 20% ties, an "
        f"error of {DELTA:g} over all pairs.",
        ("world", "sampler", "cap", "winner proved", "calls", "runs with a wrong statement"),
        tuple(rows),
        targets=(
            Target(
                f"wrong statements in at most {DELTA:g} of the runs", f"at most {max(wrong) / runs:.3f}", kept
            ),
            Target(
                "fewer calls than uniform over pairs, where there is a winner",
                ", ".join(f"{share:.2f} ({world})" for world, share in against.items()),
                max(against.values()) < 1.0,
            ),
            Target(
                "fewer calls than the same sampler with both orders",
                ", ".join(f"{share:.2f} ({world})" for world, share in order.items()),
                max(order.values()) < 1.0,
            ),
        ),
        notes=("A run that ends at the cap counts with the cap, so that a share of calls is too large.",),
    )
