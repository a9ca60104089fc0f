"""Section ``coverage``: how many items' means the reported per-item intervals hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from evalbudget.hooks._plugins import plugins
from evalbudget.repeats.backtest._pool import Pool
from evalbudget.repeats.estimates import ItemReadings, eb_wilson
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import Bounds
from references.eb_t import eb_t
from repeats_sections.distributions import bernoulli, mostly_top, ratings
from repeats_sections.readings import run_sampler
from repeats_sections.replays import recommended
from repeats_sections.section import Section, Setting, Table, Target

PER_ITEM = (10, 30)
LEVEL = 0.95
MARGIN = 0.01
METHODS = ("eb_wilson", "eb_t", "naive t")

BoolArray = NDArray[np.bool_]


def run(setting: Setting) -> Section:
    n_items = 20 if setting.quick else 200
    seeds = setting.replications(300)
    pools = {
        "ratings 0-4": (ratings(n_items), (0.0, 4.0)),
        "Bernoulli, spread": (bernoulli(n_items, 1.0, 1.0), (0.0, 1.0)),
        "Bernoulli, mostly pass": (bernoulli(n_items, 8.0, 0.7), (0.0, 1.0)),
        "ratings 0-4, mostly top": (mostly_top(n_items), (0.0, 4.0)),
    }
    allocations = ("uniform", *recommended(setting))
    n = len(allocations)
    rows: list[tuple[str, ...]] = []
    average: dict[tuple[str, str], list[float]] = {}
    for i, (world, (pool, bounds)) in enumerate(pools.items()):
        for j, allocation in enumerate(allocations):
            hits: dict[tuple[int, str], list[BoolArray]] = {}
            for seed in range(seeds):
                _one_run(pool, bounds, allocation, seed, hits)
                setting.progress("coverage", (n * i + j) * seeds + seed + 1, n * len(pools) * seeds)
            for per_item in PER_ITEM:
                cells = []
                for method in METHODS:
                    share = np.mean(hits[per_item, method], axis=0)
                    average.setdefault((method, world), []).append(float(share.mean()))
                    cells.append(f"{share.mean():.3f} / {share.min():.2f}")
                rows.append((world, allocation, f"{per_item}x", *cells))
    table = Table(
        f"Coverage at {LEVEL}: average over items / worst item",
        ("scores", "allocation", "budget", *METHODS),
        tuple(rows),
        f"{n_items} items, {seeds} replications, objective worst-item. eb_wilson is what is reported; "
        "eb_t and the naive t (zero width on unanimous items) stand beside it.",
    )
    wilson = [value for (method, _), values in average.items() if method == "eb_wilson" for value in values]
    targets = [
        Target(
            f"eb_t averages {LEVEL} ± {MARGIN} over the items, {world}",
            f"{min(average['eb_t', world]):.3f} to {max(average['eb_t', world]):.3f}",
            all(abs(value - LEVEL) <= MARGIN for value in average["eb_t", world]),
        )
        for world in pools
    ]
    targets.append(
        Target(
            f"eb_wilson averages {LEVEL} - {MARGIN} or more over the items everywhere",
            f"{min(wilson):.3f} to {max(wilson):.3f}",
            min(wilson) >= LEVEL - MARGIN,
        )
    )
    return Section(
        "coverage",
        "Intervals per item",
        "Items with known means; the share of replications whose interval holds the item's mean.",
        (table,),
        tuple(targets),
    )


def _one_run(
    pool: Pool,
    bounds: tuple[float, float],
    allocation: str,
    seed: int,
    hits: dict[tuple[int, str], list[BoolArray]],
) -> None:
    build: Any = plugins().sampler(allocation)
    sampler: RepeatSampler = build(pool.design, seed=seed)
    fixed = sampler.fixed_repeats if sampler.allocation is not Allocation.FIXED else None
    k = len(pool.items)
    played = run_sampler(pool, sampler, PER_ITEM[-1] * k, seed)
    for per_item in PER_ITEM:
        readings = played.until(per_item * k)
        found = {
            "eb_wilson": eb_wilson(readings, bounds=bounds, fixed_repeats=fixed).confidence_intervals(LEVEL),
            "eb_t": eb_t(readings, fixed_repeats=fixed).confidence_intervals(LEVEL),
            "naive t": _naive_t(readings),
        }
        for method, intervals in found.items():
            hits.setdefault((per_item, method), []).append(intervals.contains(pool.means))


def _naive_t(readings: ItemReadings) -> Bounds:
    moments = readings.moments
    half = student_t.ppf((1 + LEVEL) / 2, moments.n - 1) * np.sqrt(moments.variance / moments.n)
    return Bounds(moments.mean - half, moments.mean + half)
