"""How long race may still name a wrong model: many races, so that the figure does not hang on one of them."""

from __future__ import annotations

import numpy as np

from evalbudget.races.prediction._files import train_cached
from judges_sections.found import Found
from racing_sections.leaderboard import GAPS, grid_of, leaderboard, played, with_gap

DRAWS = (0, 1, 2, 3, 4)  # 0 is the draw of identification
RUNS = 20


def until_right(quick: bool, seeds: int | None = None) -> Found:
    """Evaluations after which a race never names a wrong model again, over five draws."""
    n_models, n_items, runs = (30, 200, 2) if quick else (2211, 9574, seeds or RUNS)
    step, last = (400, 800) if quick else (1000, 130_000)
    budgets = list(range(step, last + 1, step))
    found: dict[float, list[int]] = {gap: [] for gap in GAPS}
    for draw in DRAWS[:1] if quick else DRAWS:
        history, test = leaderboard(n_models, n_items, (5000 + draw, 6000 + draw) if draw else (1234, 7))
        factors = train_cached(history, tuple(map(str, range(n_items))), seed=0)
        for gap in GAPS:
            grid = grid_of(with_gap(test, gap, 1000))
            for outcomes in played(grid, "race", factors, budgets, runs):
                wrong = np.flatnonzero([not outcome.best for outcome in outcomes])
                found[gap].append(budgets[int(wrong[-1])] + step if wrong.size else step)
    rows = []
    for gap, until in found.items():
        nearly = sorted(until)[int(np.ceil(0.95 * len(until))) - 1]
        never = sum(n > last for n in until)
        rows.append((f"{gap:g}", f"{np.mean(until):,.0f}", f"{nearly:,.0f}", str(never)))
    return Found(
        f"As identification, on its own draw and the four others, {runs} races each: "
        f"{len(until)} races a gap. "
        f"Evaluations after which the race names the best to the end, which is at {last:,}; a race that is "
        f"wrong then counts as {last + step:,}.",
        ("gap", "mean", "95% of the races", "wrong at the end"),
        tuple(rows),
    )
