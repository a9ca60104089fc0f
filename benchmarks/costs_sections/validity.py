"""Costs that tell of scores: what is printed must stay unbiased and covered, whoever is asked more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from costs_sections.money import Bought, Floats, Rule, at_once, largest_seen
from costs_sections.prices import Prices, spread
from evalbudget.repeats.backtest._pool import Pool
from evalbudget.repeats.estimates import ItemReadings, betting, eb_wilson, mean_over_fixed_items
from evalbudget.repeats.samplers import Auto, RepeatSampler, Uniform
from evalbudget.sampler import Allocation
from judges_sections.found import Found, Target
from repeats_sections.distributions import bernoulli, ratings

ITEMS = 60
TIMES = (5, 10, 20)
SEEDS = 300
IN_FLIGHT = 8
LEVEL = 0.95
CLAIMED = 0.93  # what the guide says of the interval of the benchmark mean
ERROR = 0.001
UNPLANNED = "by costs, budget not told"


@dataclass(frozen=True)
class Estimated:
    """What one run reports about the mean, and about items.

    Attributes:
        error: estimated minus true benchmark mean.
        plain: the same of the plain mean of item means, whatever steered.
        missed: whether the interval of the benchmark mean misses it.
        items: share of items that their average-coverage interval holds.
        guaranteed: share of items that their guaranteed interval holds.
    """

    error: float
    plain: float
    missed: bool
    items: float
    guaranteed: float


def failures_dear(n_items: int, seed: int) -> Prices:
    """Items over two decades; within an item low scores cost up to e^2 times as much as high ones."""
    return Prices(spread(n_items, seed), noise=0.3, slope=2.0)


def bought(
    pool: Pool, way: str, times: float, seed: int, rule: Rule | None = largest_seen
) -> tuple[RepeatSampler, Bought, float]:
    """One run with several readings in flight: the sampler, what it bought, and its budget."""
    n = len(pool.items)
    priced, typical = failures_dear(n, seed).priced(pool, seed)
    budget = times * n * typical
    sampler: RepeatSampler = (Uniform if way == "plain epochs" else Auto)(pool.design, seed=seed)
    if way.startswith("by costs"):
        sampler.weigh_costs(None if way == UNPLANNED else budget)
    return sampler, at_once(sampler, priced, budget, IN_FLIGHT, rule), budget


def estimated(pool: Pool, sampler: RepeatSampler, run: Bought, *, items: bool = True) -> Estimated:
    """What is printed after a run."""
    readings = ItemReadings.of_bought(run.readings, len(pool.items))
    if sampler.allocation is not Allocation.PHASED:
        readings = readings.without_phases()
    found = mean_over_fixed_items(
        readings, allocation=sampler.allocation, fixed_repeats=sampler.fixed_repeats
    )
    interval, truth = found.confidence_interval(LEVEL), float(pool.means.mean())
    with np.errstate(invalid="ignore"):
        plain = float(np.nanmean(readings.moments.mean)) - truth
    shares = (float("nan"), float("nan"))
    if items:
        bounds = (float(np.nanmin(pool.values)), float(np.nanmax(pool.values)))
        each = [kind(readings, bounds=bounds).confidence_intervals(LEVEL) for kind in (eb_wilson, betting)]
        shares = tuple(float(e.contains(pool.means).mean()) for e in each)  # type: ignore[assignment]
    return Estimated(
        found.value - truth, plain, not interval.low <= truth <= interval.high, shares[0], shares[1]
    )


def validity(quick: bool, seeds: int | None = None) -> Found:
    """Bias and coverage where failures are dear."""
    n_items, runs = (8, 2) if quick else (ITEMS, seeds or SEEDS)
    rows: list[tuple[str, ...]] = []
    biases: list[float] = []
    plainly: list[float] = []
    refuted, low = 0, 1.0
    for pool in (ratings(n_items), bernoulli(n_items, 9.0, 1.0)):
        for times in TIMES:
            for way in ("plain epochs", "by counts", UNPLANNED, "by costs"):
                of = []
                for seed in range(runs):
                    sampler, run, _ = bought(pool, way, times, seed)
                    of.append(estimated(pool, sampler, run))
                errors, plain = (np.array([getattr(one, what) for one in of]) for what in ("error", "plain"))
                missed = sum(one.missed for one in of)
                worse = binomtest(missed, runs, 1.0 - CLAIMED, alternative="greater").pvalue < ERROR
                guaranteed = float(np.mean([one.guaranteed for one in of]))
                if way != "plain epochs":
                    plainly.append(z(plain))
                if way == "by costs":
                    biases.append(z(errors))
                    refuted += int(worse)
                    low = min(low, guaranteed)
                rows.append(
                    (
                        pool.model,
                        f"{times}x",
                        way,
                        f"{errors.std(ddof=1):.4f}",
                        f"{errors.mean() / errors.std(ddof=1):+.2f} ({z(errors):+.1f})",
                        f"{plain.mean() / plain.std(ddof=1):+.2f} ({z(plain):+.1f})",
                        f"{1.0 - missed / runs:.3f}" + (" *" if worse else ""),
                        f"{np.mean([one.items for one in of]):.3f}",
                        f"{guaranteed:.3f}",
                    )
                )
    return Found(
        f"{n_items} items whose costs lie over two decades; within an item a reading at the bottom of the "
        f"scale "
        "costs e^2 = 7.4 times as much as one at the top, give or take. "
        f"{IN_FLIGHT} readings in flight, each for as long as it costs; one begins while the largest cost "
        f"so far "
        f"is free. {runs} runs each. Bias is in standard deviations of the estimate, in brackets in standard "
        "errors of the simulation; of the printed benchmark mean, and of the plain mean of the same "
        "readings.",
        (
            "scores",
            "money",
            "",
            "sd of the mean",
            "bias",
            "bias of the plain mean",
            "coverage of the mean",
            "items, average",
            "items, guaranteed",
        ),
        tuple(rows),
        (
            Target(
                "the printed mean by costs is unbiased (within four standard errors of the simulation)",
                f"{min(biases):+.1f} to {max(biases):+.1f}",
                max(map(abs, biases)) < 4.0,
            ),
            Target(
                f"its 95% interval covers at least {CLAIMED:.2f} (binomial test at {ERROR:g})",
                f"refuted in {refuted} of {len(biases)} rows",
                refuted == 0,
            ),
            Target(
                "guaranteed intervals of items by costs cover at least 0.95", f"least {low:.3f}", low >= LEVEL
            ),
        ),
        (
            "* below what the guide says of it. The plain mean of what the default bought is biased: "
            f"{min(plainly):+.1f} to {max(plainly):+.1f} standard errors of the simulation.",
        ),
    )


def z(errors: Floats) -> float:
    """Mean in its own standard errors."""
    return float(errors.mean() / errors.std(ddof=1) * np.sqrt(errors.size))
