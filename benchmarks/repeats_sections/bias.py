"""Section ``bias``: what adaptive allocation does to the benchmark mean, and what is reported instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.stats import binomtest

from evalbudget.backtest.pool import Pool
from evalbudget.design import Design
from evalbudget.estimators import Estimate, mean_over_fixed_items
from evalbudget.plugins import get_sampler
from evalbudget.sampler import Sampler
from evalbudget.samplers import EBBernstein, Uniform
from repeats_sections.distributions import bernoulli
from repeats_sections.readings import Run, run_sampler
from repeats_sections.replays import recommended
from repeats_sections.section import Section, Setting, Table, Target

PER_ITEM = (5, 10, 20)
LEVEL = 0.95
SIGNIFICANCE = 0.001
LEAST_COVERAGE = 0.93
LARGEST_Z = 4.0

Estimator = Callable[[Sampler, Run, int], Estimate]


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    sampler: Callable[[Design, int], Sampler]
    estimator: Estimator
    reported: bool


def _plain(sampler: Sampler, run: Run, budget: int) -> Estimate:
    """As if nobody had looked at the scores: the mistake."""
    return mean_over_fixed_items(run.until(budget), bounds=(0.0, 1.0))


def _reported(sampler: Sampler, run: Run, budget: int) -> Estimate:
    return mean_over_fixed_items(
        run.until(budget),
        allocation=sampler.allocation,
        fixed_repeats=sampler.fixed_repeats,
        bounds=(0.0, 1.0),
    )


def _mean(design: Design, seed: int) -> Sampler:
    return EBBernstein(design, objective="mean", seed=seed)


def _mean_plain(design: Design, seed: int) -> Sampler:
    return EBBernstein(design, objective="mean", cross_fit=False, seed=seed)


def _worst_item(design: Design, seed: int) -> Sampler:
    return EBBernstein(design, seed=seed)


def _worst_item_plain(design: Design, seed: int) -> Sampler:
    return EBBernstein(design, cross_fit=False, seed=seed)


def _kernel_mean(design: Design, seed: int) -> Sampler:
    build: Any = get_sampler("rating-kernel")
    return cast(Sampler, build(design, objective="mean", seed=seed))


CASES = (
    _Case("uniform, all readings", lambda design, seed: Uniform(design, seed=seed), _reported, True),
    _Case("eb-bernstein mean, plain", _mean_plain, _plain, False),
    _Case("eb-bernstein mean, cross-fit", _mean, _reported, True),
    _Case("eb-bernstein worst-item, plain", _worst_item_plain, _plain, False),
    _Case("eb-bernstein worst-item, by default", _worst_item, _reported, True),
)


IF_REGISTERED = _Case("rating-kernel mean, cross-fit", _kernel_mean, _reported, True)


@dataclass(frozen=True, slots=True)
class _Found:
    case: _Case
    pool: str
    per_item: int
    errors: tuple[float, ...]
    covered: int

    @property
    def bias(self) -> float:
        """In standard deviations of the estimate over replications."""
        spread = float(np.std(self.errors, ddof=1))
        return float(np.mean(self.errors)) / spread if spread > 0 else 0.0

    def cells(self) -> tuple[str, ...]:
        n = len(self.errors)
        return (
            self.pool,
            f"{self.per_item}x",
            self.case.name,
            f"{self.bias:+.2f} ±{1 / np.sqrt(n):.2f}",
            f"{np.sqrt(np.mean(np.square(self.errors))):.5f}",
            f"{self.covered / n:.3f}",
        )

    @property
    def holds(self) -> bool:
        """Neither the coverage nor the absence of bias is refuted."""
        n = len(self.errors)
        p = float(binomtest(self.covered, n, LEAST_COVERAGE, alternative="less").pvalue)
        return p >= SIGNIFICANCE and abs(self.bias) * np.sqrt(n) <= LARGEST_Z


def run(setting: Setting) -> Section:
    n_items = 40 if setting.quick else 300
    seeds = setting.replications(200)
    cases = (*CASES, IF_REGISTERED) if "rating-kernel" in recommended(setting) else CASES
    pools = [bernoulli(n_items, 9.0, 1.0), bernoulli(n_items, 2.0, 0.2)]
    found = [
        one
        for p, pool in enumerate(pools)
        for one in _of_pool(pool, cases, seeds, setting, p * seeds, seeds * len(pools))
    ]
    table = Table(
        "Bias of the benchmark mean, and coverage of its fixed-items interval",
        ("pool", "budget", "sampler, estimate", "bias in noise SDs", "rmse", f"coverage at {LEVEL}"),
        tuple(one.cells() for one in found),
        f"{seeds} replications. Bias is the mean error divided by the standard deviation of the estimate. "
        "'plain' is the mean of item means as if counts did not depend on scores; it is never reported. Of "
        "an adaptive sampler without halves only the warm-up enters the reported benchmark mean.",
    )
    targets = [
        Target(
            f"{case.name}: bias within {LARGEST_Z:g} standard errors of 0, coverage {LEAST_COVERAGE} or more",
            f"largest bias {max((one.bias for one in of_case), key=abs):+.2f}, "
            f"least coverage {min(one.covered / seeds for one in of_case):.3f}",
            all(one.holds for one in of_case),
        )
        for case in cases
        if case.reported
        for of_case in [[one for one in found if one.case is case]]
    ]
    return Section(
        "bias",
        "Bias of the benchmark mean",
        f"Mostly-pass Bernoulli pools of {n_items} items with known pass rates (quantiles of a Beta). Items "
        "that look unanimous stop being asked, which pulls the plain mean.",
        (table,),
        tuple(targets),
    )


def _of_pool(
    pool: Pool, cases: tuple[_Case, ...], seeds: int, setting: Setting, done: int, total: int
) -> list[_Found]:
    n_items = len(pool.items)
    truth = float(pool.means.mean())
    estimates: dict[tuple[int, int], list[tuple[float, bool]]] = {}
    for seed in range(seeds):
        runs: dict[Callable[[Design, int], Sampler], tuple[Sampler, Run]] = {}
        for c, case in enumerate(cases):
            if case.sampler not in runs:
                sampler = case.sampler(pool.design, seed)
                runs[case.sampler] = sampler, run_sampler(pool, sampler, PER_ITEM[-1] * n_items, seed)
            for per_item in PER_ITEM:
                found = case.estimator(*runs[case.sampler], per_item * n_items)
                interval = found.confidence_interval(LEVEL)
                hit = interval.low <= truth <= interval.high
                estimates.setdefault((per_item, c), []).append((found.value - truth, hit))
        setting.progress("bias", done + seed + 1, total)
    return [
        _Found(case, pool.model, per_item, tuple(e for e, _ in pairs), sum(hit for _, hit in pairs))
        for per_item in PER_ITEM
        for c, case in enumerate(cases)
        for pairs in [estimates[per_item, c]]
    ]
