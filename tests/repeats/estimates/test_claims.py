"""Coverage by simulation of the item intervals and of the benchmark mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant
from tests.repeats.estimates import worlds

from evalbudget.estimate import Estimate
from evalbudget.repeats.estimates import (
    betting,
    eb_wilson,
    mean_over_fixed_items,
    mean_over_sampled_items,
)
from evalbudget.sampler import Allocation
from references.eb_t import eb_t

pytestmark = pytest.mark.claim

WORLDS: dict[str, Callable[[np.random.Generator], worlds.World]] = {
    "ratings": lambda rng: worlds.ratings(100, rng),
    "mostly-top": lambda rng: worlds.mostly_top(100, rng),
    "coins": lambda rng: worlds.bernoulli(rng.random(100), rng),
    "mostly-pass": lambda rng: worlds.bernoulli(rng.beta(8, 0.7, 100), rng),
}
ALLOCATIONS = {"uniform": worlds.uniform, "adaptive": worlds.adaptive}


BUY = {
    Allocation.FIXED: worlds.uniform,
    Allocation.PHASED: worlds.phased,
    Allocation.ADAPTIVE: worlds.adaptive,
}


def average_coverage(method: str, world: str, allocation: str, n: int, R: int) -> float:
    rng = np.random.default_rng(20)
    top = 4.0 if world in ("ratings", "mostly-top") else 1.0
    covered = []
    for _ in range(R):
        truth = WORLDS[world](rng)
        readings = ALLOCATIONS[allocation](truth, n)
        fixed = 3 if allocation == "adaptive" else None
        if method == "eb_t":
            found = eb_t(readings, fixed_repeats=fixed)
        else:
            found = eb_wilson(readings, bounds=(0, top), fixed_repeats=fixed)
        covered.append(found.confidence_intervals(0.95).contains(truth.mean).mean())
    return float(np.mean(covered))


@pytest.mark.parametrize("n", [variant(5), 10, variant(30)])
@pytest.mark.parametrize("allocation", ["uniform", "adaptive"])
@pytest.mark.parametrize("world", ["ratings", "coins"])
def test_eb_t_covers_on_average_where_items_spread_over_the_scale(
    world: str, allocation: str, n: int
) -> None:
    assert 0.935 <= average_coverage("eb_t", world, allocation, n, replications(8, 1000)) <= 0.985


@pytest.mark.parametrize("world", ["mostly-top", "mostly-pass"])
def test_eb_t_falls_short_where_most_items_sit_at_one_end(world: str) -> None:
    # the reason why eb_wilson exists, and why eb_t says so
    assert 0.87 <= average_coverage("eb_t", world, "uniform", 30, replications(8, 1000)) <= 0.94


@pytest.mark.parametrize(
    ("allocation", "n"),
    [
        ("uniform", 5),
        ("adaptive", 10),
        *(variant("uniform", n) for n in (10, 30, 60)),
        *(variant("adaptive", n) for n in (5, 30, 60)),
    ],
)
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_eb_wilson_covers_on_average_everywhere(world: str, allocation: str, n: int) -> None:
    assert average_coverage("eb_wilson", world, allocation, n, replications(10, 1000)) >= 0.94


@pytest.mark.parametrize("allocation", ["uniform", "adaptive"])
def test_betting_holds_for_all_items_at_once(allocation: str) -> None:
    R, rng = replications(12, 1000), np.random.default_rng(21)
    failed = 0
    for _ in range(R):
        truth = worlds.bernoulli(rng.beta(8, 0.7, 30), rng)
        bounds = betting(ALLOCATIONS[allocation](truth, 20), simultaneous=True).confidence_intervals(0.95)
        failed += not bounds.contains(truth.mean).all()
    binomial_claim(failed, R, at_most=0.05)


def mean_failures(
    estimate: Callable[[worlds.World, np.random.Generator], Estimate],
    world: Callable[[np.random.Generator], worlds.World],
    R: int,
    target: float | None = None,
) -> tuple[int, float]:
    """Misses in R benchmarks, and the bias in standard errors of the simulation."""
    rng = np.random.default_rng(22)
    failed, errors = 0, []
    for _ in range(R):
        truth = world(rng)
        found = estimate(truth, rng)
        interval = found.confidence_interval(0.95)
        theta = float(truth.mean.mean()) if target is None else target
        failed += not interval.low <= theta <= interval.high
        errors.append(found.value - theta)
    return failed, float(np.mean(errors) / np.std(errors) * np.sqrt(R))


def skewed(K: int) -> Callable[[np.random.Generator], worlds.World]:
    return lambda rng: worlds.bernoulli(rng.beta(8, 0.7, K), rng)


@pytest.mark.parametrize("K", [5, 10, 50, 500])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_fixed_items_after_uniform_allocation(K: int, n: int) -> None:
    R = replications(60, 10_000)
    for world in (skewed(K), lambda rng: worlds.bernoulli(rng.random(K), rng)):
        failed, bias = mean_failures(
            lambda truth, _: mean_over_fixed_items(
                worlds.uniform(truth, n), bounds=(0, 1), allocation=Allocation.FIXED
            ),
            world,
            R,
        )
        binomial_claim(failed, R, at_most=0.07)  # a t interval on skewed scores: .93 or more
        assert abs(bias) < 4


@pytest.mark.parametrize(
    ("allocation", "K", "expected"),
    [
        (Allocation.PHASED, 20, 3),
        variant(Allocation.PHASED, 300, 2),
        variant(Allocation.ADAPTIVE, 20, 1),
        (Allocation.ADAPTIVE, 300, 3),
    ],
)
def test_fixed_items_after_an_allocation_that_looks(allocation: Allocation, K: int, expected: int) -> None:
    R = replications(50, 5000)
    failed, bias = mean_failures(
        lambda truth, _: mean_over_fixed_items(
            BUY[allocation](truth, 12), allocation=allocation, fixed_repeats=3, bounds=(0, 1)
        ),
        skewed(K),
        R,
    )
    binomial_claim(failed, R, at_most=0.07)
    pinned(failed, expected)
    assert abs(bias) < 4


def test_the_plain_mean_after_adaptive_allocation_is_biased() -> None:
    # the mistake the allocation argument prevents
    R = replications(30, 1000)
    failed, bias = mean_failures(
        lambda truth, _: mean_over_fixed_items(worlds.adaptive(truth, 12), allocation=Allocation.FIXED),
        skewed(300),
        R,
    )
    assert failed > 0.1 * R
    assert bias > 8


@pytest.mark.parametrize(
    ("allocation", "K", "at_most"),
    [
        (allocation, K, at_most) if i == k else variant(allocation, K, at_most)
        for i, allocation in enumerate(Allocation)
        for k, (K, at_most) in enumerate([(10, 0.12), (50, 0.10), (500, 0.07)])
    ],
)
def test_sampled_items(allocation: Allocation, K: int, at_most: float) -> None:
    # few items of a skewed population: the t interval needs many, and is labelled asymptotic
    R = replications(30, 5000)
    failed, bias = mean_failures(
        lambda truth, _: mean_over_sampled_items(
            BUY[allocation](truth, 8), allocation=allocation, fixed_repeats=3, bounds=(0, 1)
        ),
        skewed(K),
        R,
        8 / 8.7,
    )
    binomial_claim(failed, R, at_most=at_most)
    assert abs(bias) < 4
