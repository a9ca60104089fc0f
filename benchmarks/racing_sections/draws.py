"""race against PULSE on other draws of the leaderboard than the one its settings were tried out on."""

from __future__ import annotations

import numpy as np

from evalbudget.races.prediction._files import train_cached
from judges_sections.found import Found, Target
from racing_sections.leaderboard import first_reliable, grid_of, identified, leaderboard, with_gap

DRAWS = (1, 2, 3, 4)
GAPS = (0.01, 0.03)
RUNS = 12


def draws(quick: bool, seeds: int | None = None) -> Found:
    """Evaluations until nearly all, and until all runs name the best, on four other draws and splits."""
    n_models, n_items, runs = (30, 200, 2) if quick else (2211, 9574, seeds or RUNS)
    step, least, last = (400, 400, 800) if quick else (2000, 64_000, 180_000)
    rows, nearly, every = [], [], []
    for draw in DRAWS[:1] if quick else DRAWS:
        history, test = leaderboard(n_models, n_items, (5000 + draw, 6000 + draw))
        factors = train_cached(history, tuple(map(str, range(n_items))), seed=0)
        for gap in GAPS:
            grid = grid_of(with_gap(test, gap, 1000))
            calls = {}
            for name in ("race", "pulse"):
                budgets = list(range(step * (1 if quick else 8) if name == "race" else least, last + 1, step))
                share = identified(grid, name, factors, budgets, runs)[:, 0]
                # first_reliable asks for .95: of 12 runs, all; one wrong run is forgiven by adding its share
                calls[name] = (first_reliable(budgets, share + 1.0 / runs), first_reliable(budgets, share))
            nearly.append(calls["race"][0] / calls["pulse"][0])
            every.append(calls["race"][1] / calls["pulse"][1])
            shown = [f"{n:,.0f}" for name in ("race", "pulse") for n in calls[name]]
            rows.append((str(draw), f"{gap:g}", *shown))
    ratios = [", ".join(f"{ratio:.2f}" for ratio in found) for found in (nearly, every)]
    return Found(
        "As identification, with other seeds of the scores and of the split into history and race; "
        f"{runs} runs each. All but one: at least {runs - 1} of the {runs} runs name the best from there on.",
        ("draw", "gap", "race, all but one", "race, all", "pulse, all but one", "pulse, all"),
        tuple(rows),
        (
            Target(
                "race needs at most half the calls of pulse, on average, until all runs but one are right",
                f"{ratios[0]}; mean {np.mean(nearly):.2f}",
                bool(np.mean(nearly) <= 0.5),
            ),
            Target(
                "the same until all runs are right: at most .75 on average",
                f"{ratios[1]}; mean {np.mean(every):.2f}",
                bool(np.mean(every) <= 0.75),
            ),
            Target(
                "and in none above 1.1",
                f"the largest {max(every):.2f}",
                max(every) <= 1.1,
            ),
        ),
    )
