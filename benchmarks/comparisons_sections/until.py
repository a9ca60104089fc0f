"""Runs that end once every item is known: what the items and the estimate are worth then."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest

from evalbudget import Design
from evalbudget.repeats import RepeatConfig
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import mean_over_fixed_items
from judges_sections.found import Floats, Found, Target

RUNS = 400
LEVEL = 0.95
UNCAPPED = 10**6
WORLDS: dict[str, tuple[int, float, int]] = {
    # items, half-width of each, cap
    "pass or fail": (10, 0.3, UNCAPPED),
    "pass or fail, more exact": (10, 0.2, UNCAPPED),
    "pass or fail, capped": (10, 0.2, 250),
    "ratings": (20, 0.15, UNCAPPED),
}


def until(quick: bool, seeds: int | None = None) -> Found:
    """Coverage of items and of their mean, and the mean's error beside plain epochs with as many calls."""
    runs = 2 if quick else seeds or RUNS
    rows, ratios, failed = [], [], []
    for name, (n_items, half_width, cap) in WORLDS.items():
        chance = np.random.default_rng(5).beta(2.0, 1.0, n_items)
        levels = 4 if name == "ratings" else 1
        found = np.array(
            Parallel(n_jobs=1 if quick else 2)(
                delayed(_run)(chance, levels, half_width, cap, np.random.default_rng([16, seed]))
                for seed in range(runs)
            )
        )
        error, low, high, calls = found.T
        plain = float(np.sqrt((chance * (1.0 - chance) / levels).sum() / n_items / calls.mean()))
        ratios.append(float(error.std() / plain))
        failed.append(int(((low > chance.mean()) | (chance.mean() > high)).sum()))
        bias = float(error.mean() / (error.std() / np.sqrt(runs)))
        rows.append(
            (
                name,
                str(n_items),
                f"{half_width:g}",
                "none" if cap == UNCAPPED else str(cap),
                f"{calls.mean():,.0f}",
                f"{error.std():.4f}",
                f"{plain:.4f}",
                f"{ratios[-1]:.2f}",
                f"{bias:+.1f}",
                f"{1 - failed[-1] / runs:.3f}",
            )
        )
    kept = all(binomtest(k, runs, 1 - LEVEL, alternative="greater").pvalue > 0.001 for k in failed)
    return Found(
        f"`--until item±W` on scores from 0 to 1, {runs:,} runs per row; items pass with chances of "
        "Beta(2, 1), ratings are the mean of four of these.",
        (
            *("world", "items", "±", "cap", "calls", "error of estimate", "of plain epochs", "ratio"),
            *("bias / its error", "interval holds"),
        ),
        tuple(rows),
        targets=(
            Target(
                "the estimate is as certain as plain epochs' of as many calls",
                f"errors {min(ratios):.2f} to {max(ratios):.2f} times theirs",
                max(ratios) <= 1.0,
            ),
            Target(
                f"its interval holds in {LEVEL:.0%} of runs (items asked again)",
                f"at least {1 - max(failed) / runs:.3f}",
                kept,
            ),
        ),
        notes=(
            "Errors are standard deviations. Only between phases does a run look whether all items are "
            "known. Those that are get one reading a phase and the others the rest, which makes the mean of "
            "all items less precise.",
        ),
    )


def _run(
    chance: Floats, levels: int, half_width: float, cap: int, rng: np.random.Generator
) -> tuple[float, float, float, int]:
    """Error of the estimate, the ends of its interval, and calls."""
    config = RepeatConfig.of(budget=cap, until=f"item±{half_width}", score_range="0..1")
    sampler = config.make_sampler(Design.of_items(chance.size), budget=cap)
    book = ArrayBook(sampler)
    while book.n < cap and (asked := book.ask(cap - book.n)) is not None:
        book.tell(rng.binomial(levels, chance[asked.item]) / levels)
    found = mean_over_fixed_items(
        book.bought(), allocation=sampler.allocation, fixed_repeats=sampler.fixed_repeats, bounds=(0.0, 1.0)
    )
    ends = found.interval(LEVEL)
    return found.value - float(chance.mean()), ends.low, ends.high, book.n
