"""Section ``bias``: what adaptive allocation does to the benchmark mean, and what is reported instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from evalbudget import Allocation
from evalbudget.design import Design
from evalbudget.repeats.backtest._pool import Pool
from evalbudget.repeats.estimates import mean_over_fixed_items
from evalbudget.repeats.samplers import Auto, EBBernstein, Uniform
from evalbudget.sampler import Sampler
from repeats_sections.distributions import bernoulli
from repeats_sections.readings import run_sampler
from repeats_sections.section import Section, Setting, Table, Target

PER_ITEM = (5, 10, 20, 50)
LEVEL = 0.95
SIGNIFICANCE = 0.001
LARGEST_Z = 4.0
BOUNDS = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Case:
    """What is run, and what is made of it.

    Attributes:
        name: for the table.
        sampler: of a design, a seed and a budget.
        reported: a host would print it; False for a mistake that is shown for comparison.
        plain: average the readings as if nobody had looked at the scores.
        spent: share of the budget after which the run is broken off.
        failures: share of the readings that fail at random.
    """

    name: str
    sampler: Callable[[Design, int, int], Sampler]
    reported: bool = True
    plain: bool = False
    spent: float = 1.0
    failures: float = 0.0


def _auto(design: Design, seed: int, budget: int) -> Sampler:
    return Auto(design, seed=seed, budget=budget)


def _bernstein(design: Design, seed: int, budget: int) -> Sampler:
    return EBBernstein(design, seed=seed, budget=budget)


def _mean(design: Design, seed: int, budget: int) -> Sampler:
    return Auto(design, objective="mean", seed=seed, budget=budget)


def _item_scores_only(design: Design, seed: int, budget: int) -> Sampler:
    return EBBernstein(design, hold_out=False, seed=seed)


CASES = (
    _Case("uniform", lambda design, seed, _: Uniform(design, seed=seed)),
    _Case("auto (default)", _auto),
    _Case("eb-bernstein", _bernstein),
    _Case("auto, objective mean", _mean),
    _Case("auto, 30% of the calls fail", _auto, failures=0.3),
    _Case("auto, broken off at 60%", _auto, spent=0.6),
    _Case("eb-bernstein without hold_out", _item_scores_only),
    _Case("the same, plain mean of all readings", _item_scores_only, reported=False, plain=True),
)
DEFAULT = "auto (default)"


@dataclass(frozen=True, slots=True)
class _Found:
    case: _Case
    pool: str
    per_item: int
    errors: NDArray[np.float64]
    covered: int
    worst: float
    plain_sd: float

    @property
    def bias(self) -> float:
        """In standard deviations of the estimate over replications."""
        spread = float(np.std(self.errors, ddof=1))
        return float(np.mean(self.errors)) / spread if spread > 0 else 0.0

    @property
    def ratio(self) -> float:
        """Root mean squared error, over what plain epochs must have at the same budget."""
        return float(np.sqrt(np.mean(np.square(self.errors)))) / self.plain_sd

    @property
    def covers(self) -> float:
        return self.covered / len(self.errors)

    def cells(self, worst: float) -> tuple[str, ...]:
        n = len(self.errors)
        return (
            self.pool,
            f"{self.per_item}x",
            self.case.name,
            f"{self.bias:+.2f} ±{1 / np.sqrt(n):.2f}",
            f"{self.ratio:.3f} ±{self.ratio / np.sqrt(2 * n):.3f}",
            f"{self.worst / worst:.3f}",
            f"{self.covers:.3f}",
        )


def run(setting: Setting) -> Section:
    n_items = 40 if setting.quick else 300
    seeds = setting.replications(160)
    pools = [bernoulli(n_items, 9.0, 1.0), bernoulli(n_items, 2.0, 0.2)]
    found = [
        one
        for p, pool in enumerate(pools)
        for one in _of_pool(pool, seeds, setting, p * seeds, seeds * len(pools))
    ]
    worst = {(one.pool, one.per_item): one.worst for one in found if one.case.name == "uniform"}
    table = Table(
        "The benchmark mean, around the items' true mean",
        (
            "pool",
            "budget",
            "sampler, estimate",
            "bias in noise SDs",
            "rmse / plain epochs",
            "worst item / plain epochs",
            "coverage",
        ),
        tuple(one.cells(worst[one.pool, one.per_item]) for one in found),
        f"{seeds} replications. Bias is the mean error over the standard deviation of the estimate. Plain "
        "epochs at the same budget have the root mean squared error that the true variances give. Coverage "
        f"is that of the repeats interval at {LEVEL}. Without hold_out only the warm-up enters the printed "
        "estimate.",
    )
    return Section(
        "bias",
        "Bias of the benchmark mean",
        f"Pass or fail, {n_items} items, nearly all of which nearly always pass: the scale on which adaptive "
        "allocation biases the plain mean most.",
        (table,),
        tuple(_targets(found, seeds)),
    )


def _targets(found: list[_Found], seeds: int) -> list[Target]:
    targets = []
    for case in CASES:
        if not case.reported or case.name == "uniform":
            continue
        of_case = [one for one in found if one.case is case]
        largest = max((one.bias for one in of_case), key=abs)
        targets.append(
            Target(
                f"{case.name}: bias within {LARGEST_Z:g} standard errors of 0",
                f"largest {largest:+.2f} ±{1 / np.sqrt(seeds):.2f}",
                bool(abs(largest) * np.sqrt(seeds) <= LARGEST_Z),
            )
        )
        if case.sampler not in (_auto, _bernstein):
            continue
        least, most = min(one.covers for one in of_case), max(one.covers for one in of_case)
        outside = [one for one in of_case if not 0.93 <= round(one.covers, 3) <= 0.97]
        refuted = [one for one in outside if _refuted(one)]
        targets.append(
            Target(
                f"{case.name}: coverage .93-.97",
                f"{least:.3f} to {most:.3f}",
                not outside,
                not refuted,
            )
        )
        if case.name == DEFAULT:
            above = max(of_case, key=lambda one: one.ratio)
            noise = 2 * above.ratio / np.sqrt(2 * seeds)
            targets.append(
                Target(
                    f"{case.name}: rmse / plain epochs <= 1.05",
                    f"largest {above.ratio:.3f}, at {above.per_item}x",
                    round(above.ratio, 3) <= 1.05,
                    bool(above.ratio - noise <= 1.05),
                )
            )
    return targets


def _refuted(one: _Found) -> bool:
    """Whether a coverage within .93-.97 is refuted."""
    n = len(one.errors)
    if one.covers < 0.93:
        return float(binomtest(one.covered, n, 0.93, alternative="less").pvalue) < SIGNIFICANCE
    return float(binomtest(one.covered, n, 0.97, alternative="greater").pvalue) < SIGNIFICANCE


def _of_pool(pool: Pool, seeds: int, setting: Setting, done: int, total: int) -> list[_Found]:
    n_items = len(pool.items)
    truth = float(pool.means.mean())
    errors: dict[tuple[int, int], list[float]] = {}
    covered: dict[tuple[int, int], int] = {}
    worst: dict[tuple[int, int], list[float]] = {}
    for seed in range(seeds):
        for per_item in PER_ITEM:
            budget = per_item * n_items
            for c, case in enumerate(CASES):
                sampler = case.sampler(pool.design, seed, budget)
                played = run_sampler(pool, sampler, round(case.spent * budget), seed, case.failures)
                readings = played.readings()
                how = Allocation.FIXED if case.plain else sampler.allocation
                estimate = mean_over_fixed_items(
                    readings, allocation=how, fixed_repeats=max(sampler.fixed_repeats, 1), bounds=BOUNDS
                )
                interval = estimate.confidence_interval(LEVEL)
                key = (per_item, c)
                errors.setdefault(key, []).append(estimate.value - truth)
                covered[key] = covered.get(key, 0) + int(interval.low <= truth <= interval.high)
                worst.setdefault(key, []).append(float(np.nanmax(np.abs(readings.moments.mean - pool.means))))
        setting.progress("bias", done + seed + 1, total)
    return [
        _Found(
            case,
            pool.model,
            per_item,
            np.array(errors[per_item, c]),
            covered[per_item, c],
            float(np.mean(worst[per_item, c])),
            float(np.sqrt(pool.variances.mean() / per_item / n_items)),
        )
        for per_item in PER_ITEM
        for c, case in enumerate(CASES)
    ]
