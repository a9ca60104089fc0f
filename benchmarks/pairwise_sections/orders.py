"""What a second order of an item is worth: n items in one order each, or n / 2 in both."""

from __future__ import annotations

import numpy as np

from evalbudget_pairwise import positions, win_rate
from judges_sections.found import Found, Target
from pairwise_sections.worlds import World

RUNS = 4000
_CALLS = 100
_JUDGES = {
    "goes by the answers": World((0.4, 0.0), 0.5, 0.2, agreement=0.8),
    "goes by the answers, in part": World((0.4, 0.0), 0.5, 0.2, agreement=0.4),
    "guesses": World((0.4, 0.0), 0.5, 0.2, agreement=0.0),
    "goes by position, another on every item": World((0.4, 0.0), 0.5, 0.2, agreement=0.2, whim=0.6),
}


def orders(quick: bool, seeds: int | None = None) -> Found:
    """Variance of the win rate per call, and what the correlation predicts."""
    runs = 20 if quick else (seeds or RUNS)
    rows, off = [], []
    for name, world in _JUDGES.items():
        once, twice, correlation, flips = [], [], [], []
        for seed in range(runs):
            once.append(win_rate(world.preferences(_CALLS, [1, seed], both=False), 0, 1).value)
            both = world.preferences(_CALLS // 2, [2, seed])
            twice.append(win_rate(both, 0, 1).value)
            found = positions(both)[0]
            correlation.append(found.correlation)
            flips.append(found.flipped / found.both_orders)
        measured = float(np.var(twice) / np.var(once))
        predicted = 1.0 + float(np.nanmean(correlation))
        off.append(abs(measured / predicted - 1.0))
        rows.append(
            (
                name,
                f"{np.mean(flips):.2f}",
                f"{np.nanmean(correlation):+.2f}",
                f"{np.std(once):.4f}",
                f"{np.std(twice):.4f}",
                f"{measured:.2f}",
                f"{predicted:.2f}",
            )
        )
    return Found(
        f"{runs:,} runs per row of {_CALLS} calls: {_CALLS} items in one order each, or {_CALLS // 2} in "
        "both.",
        (
            "judge",
            "verdicts flip",
            "correlation",
            "s.e. in one order",
            "s.e. in both",
            "variance in both, of that in one",
            "1 + correlation",
        ),
        tuple(rows),
        targets=(
            Target(
                "the correlation says what both orders cost, within a tenth",
                f"off by {max(off):.2f} at most",
                max(off) <= 0.1,
            ),
        ),
        notes=(
            "The default, fresh, is right wherever the correlation is above 0, and --orders both where it is "
            "below.",
        ),
    )
