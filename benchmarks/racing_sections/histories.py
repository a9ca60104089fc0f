"""Histories that mislead: what race makes of them, beside no history at all."""

from __future__ import annotations

import numpy as np

from evalbudget.races.prediction import FactorModel
from judges_sections.found import Floats, Found, Target
from racing_sections.leaderboard import grid_of, identified, leaderboard, with_gap

RUNS = 12
DRAWS = (1, 2, 3, 4, 5, 6, 7, 8)
GAP, SHARE = 0.03, 0.03
THIN = 17
RANK, RIDGE = 2, 3.0  # cross-validation would take nine tenths of the time


def misleading(history: Floats, rng: np.random.Generator) -> dict[str, Floats | None]:
    """The same history whole, spoiled in three ways, and none."""
    return {
        "none": None,
        "whole": history,
        "items permuted": history[:, rng.permutation(history.shape[1])],
        "scores inverted": 1.0 - history,
        f"{THIN} models": history[rng.permutation(len(history))[:THIN]],
    }


def histories(quick: bool, seeds: int | None = None) -> Found:
    """Share of races that name the best at 3% of the grid."""
    n_models, n_items, runs = (30, 200, 2) if quick else (200, 1000, seeds or RUNS)
    budget = int(SHARE * (n_models // 2) * n_items)
    found: dict[str, list[float]] = {}
    for draw in DRAWS[:1] if quick else DRAWS:
        history, test = leaderboard(n_models, n_items, (7000 + draw, 8000 + draw))
        grid = grid_of(with_gap(test, GAP, n_models // 2))
        for name, scores in misleading(history, np.random.default_rng(draw)).items():
            factors = (
                None if scores is None else FactorModel.train(scores, grid.items, rank=RANK, ridge=RIDGE)
            )
            share = identified(grid, "race", factors, [budget], runs)[0, 0]
            found.setdefault(name, []).append(float(share))
    means = {name: float(np.mean(shares)) for name, shares in found.items()}
    return Found(
        f"Leaderboards of {len(grid.models)} models x {n_items:,} items, gap at least {GAP:g}, race at "
        f"{SHARE:.0%} of the grid ({budget:,} evaluations), {len(found['none'])} draws of {runs} "
        f"runs each; factors of rank {RANK}.",
        ("history", "p(best)", "in the worst draw"),
        tuple((name, f"{means[name]:.2f}", f"{min(shares):.2f}") for name, shares in found.items()),
        tuple(
            Target(
                f"{name}: p(best) at most .05 below that without history",
                f"{means[name]:.2f} against {means['none']:.2f}",
                means[name] >= means["none"] - 0.05,
            )
            for name in list(found)[2:]
        ),
    )
