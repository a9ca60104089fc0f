"""Section ``sequences``: how wide confidence sequences are, and whether they hold at every stopping time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from evalbudget.hooks._plugins import plugins
from evalbudget.repeats.backtest._pool import Pool
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.statistics import Bounds
from references.empirical_bernstein import EmpiricalBernsteinSequences
from references.sequences import WatchedSequences
from repeats_sections.distributions import all_equal, bernoulli, ratings
from repeats_sections.readings import run_sampler
from repeats_sections.replays import recommended
from repeats_sections.section import Section, Setting, Table, Target

LENGTHS = (50, 200, 1000, 5000)
NOTED = {
    "betting": (0.408, 0.201, 0.091, 0.041),
    "plug-in empirical Bernstein": (0.485, 0.240, 0.121, 0.062),
}
ITEMS = 20
PER_ITEM = 25
ALPHA = 0.05
SIGNIFICANCE = 0.001
TOGETHER = 50
"""Benchmarks whose sequences advance together: bounded memory, large arrays."""


def run(setting: Setting) -> Section:
    widths = _widths(setting)
    rows: list[tuple[str, ...]] = []
    targets: list[Target] = []
    runs = setting.replications(1000)
    pools = {
        "Bernoulli": (bernoulli(ITEMS, 0.7, 0.7), (0.0, 1.0)),
        "ratings 0-4": (ratings(ITEMS), (0.0, 4.0)),
        "all equal": (all_equal(ITEMS), (0.0, 1.0)),
    }
    names = ("uniform", "robin-hood", *recommended(setting))
    total = runs * len(pools) * len(names)
    for world, (pool, bounds) in pools.items():
        for name in names:
            build: Any = plugins().sampler(name)
            progress = partial(_report, setting, len(rows) * runs, total)
            failed = _ever_missed(pool, build, runs, bounds, progress)
            p = float(binomtest(failed, runs, ALPHA, alternative="greater").pvalue)
            rows.append((world, name, f"{failed} of {runs}", f"{failed / runs:.4f}", f"{p:.3g}"))
            targets.append(
                Target(
                    f"{world} after {name}: all items covered at every moment in 95% of runs",
                    f"failed {failed} of {runs}, binomial p = {p:.3g}",
                    p >= SIGNIFICANCE,
                )
            )
    claims = Table(
        "Runs in which any item's simultaneous 95% betting sequence ever missed",
        ("scores", "allocation", "failed", "share", "p against .05"),
        tuple(rows),
        f"{ITEMS} items, {PER_ITEM} readings per item on average, {runs} runs each; intervals are looked at "
        "after every reading. p is the one-sided exact binomial test against a failure probability of .05.",
    )
    return Section(
        "sequences",
        "Confidence sequences",
        "Widths of 95% sequences on fair coins, then simultaneous betting sequences for all items after the "
        "library's samplers allocated the readings.",
        (widths, claims),
        tuple(targets),
    )


def _report(setting: Setting, before: int, total: int, done: int) -> None:
    setting.progress("sequences", before + done, total)


def _widths(setting: Setting) -> Table:
    lengths = LENGTHS[:2] if setting.quick else LENGTHS
    n = 4 if setting.quick else 64
    tosses = (np.random.default_rng(0).random((lengths[-1], n)) < 0.5).astype(float)
    betting = WatchedSequences(n)
    bernstein = EmpiricalBernsteinSequences(n)
    hoeffding = EmpiricalBernsteinSequences(n, kind="hoeffding")
    read: dict[str, Callable[[], Bounds]] = {
        "betting": betting.intervals,
        "plug-in empirical Bernstein": bernstein.intervals,
        "Hoeffding": hoeffding.intervals,
    }
    widths: dict[str, list[float]] = {name: [] for name in read}
    everyone = np.arange(n)
    for t, toss in enumerate(tosses, 1):
        for sequences in (betting, bernstein, hoeffding):
            sequences.update(everyone, toss)
        if t in lengths:
            for name, intervals in read.items():
                widths[name].append(float(intervals().width.mean()))
    rows = []
    for name, found in widths.items():
        rows.append((name, *(f"{width:.3f}" for width in found)))
        if name in NOTED:
            rows.append((f"{name}, exploratory", *(f"{width:.3f}" for width in NOTED[name][: len(found)])))
    return Table(
        "Mean width on Bernoulli(.5) after n readings",
        ("sequence", *(f"n = {n:,}" for n in lengths)),
        tuple(rows),
        f"{n} sequences. 'exploratory': the figures this kernel was designed against.",
    )


def _ever_missed(
    pool: Pool,
    build: Callable[..., RepeatSampler],
    runs: int,
    bounds: tuple[float, float],
    progress: Callable[[int], None],
) -> int:
    """In how many runs an item's sequence missed its mean at any moment."""
    failed = 0
    for start in range(0, runs, TOGETHER):
        seeds = range(start, min(runs, start + TOGETHER))
        samplers = [build(pool.design, seed=seed) for seed in seeds]
        readings = [
            run_sampler(pool, sampler, PER_ITEM * len(pool.items), seed).readings()
            for sampler, seed in zip(samplers, seeds, strict=True)
        ]
        missed = _missed(readings, pool, bounds)
        failed += int(missed.sum())
        progress(seeds[-1] + 1)
    return failed


def _missed(runs: list[ItemReadings], pool: Pool, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    """Whether each run's sequences ever missed, shape (n_runs,).

    An item's interval changes only when the item is read, so looking after each item's first, second ...
    reading looks at every moment of the run.
    """
    k = len(pool.items)
    counts = np.concatenate([one.counts for one in runs])
    values = np.concatenate([one.value for one in runs])
    starts = np.cumsum(counts) - counts
    truth = np.tile(pool.means, len(runs))
    sequences = WatchedSequences(counts.size, bounds=bounds)
    missed = np.zeros(counts.size, dtype=bool)
    for t in range(int(counts.max())):
        reading = np.flatnonzero(counts > t)
        sequences.update(reading, values[starts[reading] + t])
        missed |= ~sequences.intervals(1 - ALPHA / k).contains(truth)
    return np.asarray(missed.reshape(-1, k).any(axis=1))
