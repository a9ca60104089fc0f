"""Section ``table2``: the pattern of the ROBIN-HOOD paper's Table 2 and Figure 5 on a fitted pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest import Average
from evalbudget.repeats.backtest._pool import Draws, Pool
from repeats_sections.distributions import fitted_to_table_2
from repeats_sections.replays import RECOMMENDED, Errors, compared, measured
from repeats_sections.section import Section, Setting, Table, Target, shown

BUDGETS = ("5000", "10000", "20320", "30000", "50000", "75000", "100000")
PAPER = {
    ("uniform", "50000"): 0.40,
    ("robin-hood", "50000"): 0.27,
    ("robin", "50000"): 0.27,
    ("uniform", "100000"): 0.27,
    ("robin-hood", "100000"): 0.22,
    ("robin", "100000"): 0.19,
}
TOLERANCE = 0.02
T0 = 20


def run(setting: Setting) -> Section:
    pool = fitted_to_table_2(40 if setting.quick else 1016)
    scale = 25 if setting.quick else 1
    seeds = setting.replications(20)
    scaled = {budget: str(int(budget) // scale) for budget in BUDGETS}
    raw = measured([pool], list(scaled.values()), seeds, setting, "table2")
    original = {small: budget for budget, small in scaled.items()}
    errors: Errors = {(name, original[small]): found for (name, small), found in raw.worst.items()}
    items = len(pool.items)
    return Section(
        "table2",
        "Table 2 of arXiv 2602.15481",
        f"A pool of {items:,} items rated 0 to 4, fitted to the published worst-item errors: a quarter of "
        "the items unanimous, a fifth nearly so, the rest rounded normals. Its true means are known exactly. "
        f"robin-hood cannot start below {T0} per item ({T0 * items:,}).",
        (_table(errors, seeds), _beside_paper(errors), _plateau(pool, errors, seeds)),
        _targets(errors),
        {name: _curve(errors, name) for name in compared(errors)},
    )


def _table(errors: Errors, seeds: int) -> Table:
    rows = [
        (
            f"{int(budget):,}",
            *(
                shown(Average.of(errors[name, budget])) if (name, budget) in errors else "-"
                for name in compared(errors)
            ),
        )
        for budget in BUDGETS
    ]
    note = f"{seeds} seeds; ± is one standard error over seeds."
    return Table("Worst-item error", ("budget", *compared(errors)), tuple(rows), note)


def _beside_paper(errors: Errors) -> Table:
    rows = [
        (name, f"{int(budget):,}", f"{paper:.2f}", shown(Average.of(errors[name, budget])))
        for (name, budget), paper in PAPER.items()
    ]
    return Table("Beside the paper", ("sampler", "budget", "paper", "here"), tuple(rows))


def _plateau(pool: Pool, errors: Errors, seeds: int) -> Table:
    """How much of robin-hood's error is that of items it gave up after a unanimous warm-up."""
    floor = np.array([_given_up_error(pool, seed) for seed in range(seeds)])
    rows = []
    for budget in BUDGETS:
        if ("robin-hood", budget) not in errors:
            continue
        worst = errors["robin-hood", budget][0]
        rows.append(
            (
                f"{int(budget):,}",
                shown(Average.of(worst[None])),
                shown(Average.of(floor[None])),
                f"{float((worst <= floor + 1e-9).mean()):.2f}",
            )
        )
    return Table(
        "The plateau of Figure 5",
        ("budget", "robin-hood", "of items given up", "share of seeds where such an item is the worst"),
        tuple(rows),
        f"Items given up: their first {T0} scores agreed, so robin-hood never asks them again; no budget "
        "lowers the error of the worst of them.",
    )


def _given_up_error(pool: Pool, seed: int) -> float:
    first: NDArray[np.float64] = np.array(
        [row[:T0] for row in Draws(pool, seed, T0 * len(pool.items)).values]
    )
    agreed = np.ptp(first, axis=1) == 0
    return float(np.abs(first[agreed, 0] - pool.means[agreed]).max(initial=0.0))


def _targets(errors: Errors) -> tuple[Target, ...]:
    found = []
    for (name, budget), paper in PAPER.items():
        ours = Average.of(errors[name, budget])
        text = f"{name} within {TOLERANCE} of the paper's {paper:.2f} at {int(budget):,}"
        found.append(Target(text, shown(ours), abs(ours.mean - paper) <= TOLERANCE))
    for name in sorted(set(RECOMMENDED) & set(compared(errors))):
        ahead = [
            budget
            for budget in BUDGETS
            if ("robin-hood", budget) in errors
            and errors[name, budget].mean() <= errors["robin-hood", budget].mean()
        ]
        possible = sum(("robin-hood", budget) in errors for budget in BUDGETS)
        text = f"{name} at or below robin-hood at every budget it can run"
        found.append(Target(text, f"at {len(ahead)} of {possible}", len(ahead) == possible))
    return tuple(found)


def _curve(errors: Errors, name: str) -> list[tuple[float, float, float]]:
    averages = [(b, Average.of(errors[name, b])) for b in BUDGETS if (name, b) in errors]
    return [(float(budget), average.mean, average.stderr) for budget, average in averages]
