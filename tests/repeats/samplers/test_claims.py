"""By simulation: folded over phases the mean is unbiased, its interval honest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.asking import Asking
from tests.claims import binomial_claim, replications, variant
from tests.repeats.estimates import worlds

from evalbudget import Allocation, Design, Reading
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items, mean_over_sampled_items
from evalbudget.repeats.samplers import Auto, RepeatSampler
from evalbudget.statistics._bounds import FloatArray, IntArray

pytestmark = pytest.mark.claim

K = 100

WORLDS: dict[str, Callable[[int, np.random.Generator], worlds.World]] = {
    "mostly-pass": lambda K, rng: worlds.bernoulli(rng.beta(9, 1, K), rng),
    "pass-or-not": lambda K, rng: worlds.bernoulli(rng.beta(2, 0.2, K), rng),
    "ratings": worlds.ratings,
}


@dataclass(frozen=True)
class Run:
    """One benchmark, bought by one sampler."""

    readings: ItemReadings
    allocation: Allocation
    fixed_repeats: int
    truth: float


def bought(
    name: str,
    world: str,
    times: int,
    seed: int,
    *,
    n_items: int = K,
    failing: float = 0.0,
    stopped_at: float = 1.0,
    **options: Any,
) -> Run:
    """A share ``stopped_at`` of a budget of ``times`` requests per item."""
    rng = np.random.default_rng([seed, times])
    drawn = WORLDS[world](n_items, rng)
    budget = times * n_items
    sampler = plugins().sampler(name)(Design.of_items(n_items), seed=seed, budget=budget, **options)
    assert isinstance(sampler, RepeatSampler)
    n, scores = round(stopped_at * budget), [drawn.draw(4 * times)]

    def score(item: IntArray, epoch: IntArray) -> FloatArray:
        while epoch.max(initial=-1) >= sum(each.shape[1] for each in scores):
            scores.append(drawn.draw(4 * times))
        return np.hstack(scores)[item, epoch]

    readings = one_by_one(sampler, n, score, rng, failing) if failing else in_rounds(sampler, n, score)
    return Run(readings, sampler.allocation, sampler.fixed_repeats, float(drawn.mean.mean()))


Score = Callable[[IntArray, IntArray], FloatArray]


def in_rounds(sampler: RepeatSampler, n: int, score: Score) -> ItemReadings:
    book = ArrayBook(sampler)
    while book.n < n and (asked := book.ask(n - book.n)) is not None:
        book.tell(score(*asked))
    return book.bought()


def one_by_one(
    sampler: RepeatSampler, n: int, score: Score, rng: np.random.Generator, failing: float
) -> ItemReadings:
    book = Asking(sampler)
    for fails in (rng.random(n) < failing).tolist():
        (request,) = book.ask(1)
        place = np.array([request.cell.item]), np.array([request.cell.epoch])
        book.tell([Reading(request, None if fails else float(score(*place)[0]))])
    return ItemReadings.of_bought(book.book.readings(), sampler.design.n_items)


def misses(runs: list[Run]) -> tuple[int, float]:
    """Of the repeats interval, and the bias in standard errors of the simulation."""
    failed, errors = 0, []
    for run in runs:
        found = mean_over_fixed_items(
            run.readings, allocation=run.allocation, fixed_repeats=run.fixed_repeats
        )
        interval = found.confidence_interval(0.95)
        errors.append(found.value - run.truth)
        failed += not interval.low <= run.truth <= interval.high
    return failed, z_score(errors)


def z_score(errors: list[float]) -> float:
    """Their mean in standard errors."""
    return float(np.mean(errors) / np.std(errors, ddof=1) * np.sqrt(len(errors)))


@pytest.mark.parametrize("world", sorted(WORLDS))
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("auto", 10),
        ("eb-bernstein", 5),
        *(variant("auto", times) for times in (5, 20)),
        *(variant("eb-bernstein", times) for times in (10, 20)),
    ],
)
def test_the_benchmark_mean(name: str, world: str, times: int) -> None:
    # in a short simulation small benchmarks, the hardest, and coverage is checked roughly
    R, n_items = replications(12, 2000), replications(18, 100)
    failed, z = misses([bought(name, world, times, seed, n_items=n_items) for seed in range(R)])
    assert abs(z) < 4
    binomial_claim(failed, R, at_most=0.07)
    binomial_claim(R - failed, R, at_most=0.97)


@pytest.mark.parametrize(("failing", "stopped_at"), [variant(0.3, 1.0), variant(0.0, 0.6), (0.3, 0.6)])
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_the_benchmark_mean_of_runs_that_fail_or_stop(world: str, failing: float, stopped_at: float) -> None:
    R, n_items = replications(12, 2000), replications(18, 100)
    runs = [
        bought("auto", world, 10, seed, n_items=n_items, failing=failing, stopped_at=stopped_at)
        for seed in range(R)
    ]
    failed, z = misses(runs)
    assert abs(z) < 4
    binomial_claim(failed, R, at_most=0.07)


def test_plain_means_of_the_same_readings_are_biased() -> None:
    """Skewed scores: an item whose first ones were low by luck is read less, and stays low."""
    n_items, budget, truth = 12, 96, 2.0
    plain, folded = [], []
    for seed in range(replications(90, 2000)):
        rng = np.random.default_rng(seed)
        sampler = Auto(Design.of_items(n_items), seed=seed, budget=budget)

        def score(item: IntArray, epoch: IntArray, rng: np.random.Generator = rng) -> FloatArray:
            return np.asarray(rng.exponential(size=item.size) ** 2)

        readings = in_rounds(sampler, budget, score)
        plain.append(float(readings.moments.mean.mean()) - truth)
        folded.append(float(readings.item_means.mean()) - truth)
    assert z_score(plain) < -4
    assert abs(z_score(folded)) < 3


@pytest.mark.parametrize("n_items", [15, 40, 300])
def test_items_random_after_repeats_in_phases(n_items: int) -> None:
    R = replications(12, 1000)
    failed = 0
    for seed in range(R if n_items < 300 else R // 5):
        run = bought("auto", "ratings", 5, seed, n_items=n_items)
        found = mean_over_sampled_items(run.readings, allocation=run.allocation)
        interval = found.confidence_interval(0.95)
        failed += not interval.low <= 2.0 <= interval.high
    binomial_claim(failed, R if n_items < 300 else R // 5, at_most=0.07)
