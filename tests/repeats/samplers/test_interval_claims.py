"""What is claimed of intervals after the library's own samplers allocated the readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.claims import binomial_claim, is_full, pinned, replications, variant
from tests.repeats.estimates import worlds

from evalbudget.design import Design
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import ItemReadings, eb_wilson
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.sampler import Allocation
from references.eb_t import eb_t
from references.sequences import WatchedSequences

pytestmark = pytest.mark.claim
ITEMS = 12
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

WORLDS: dict[str, Callable[[int, np.random.Generator], worlds.World]] = {
    "bernoulli": lambda K, rng: worlds.bernoulli(rng.beta(0.7, 0.7, K), rng),
    "coins": lambda K, rng: worlds.bernoulli(rng.random(K), rng),
    "ratings": worlds.ratings,
    "all-equal": lambda K, rng: worlds.World(np.ones(K), lambda n: np.ones((K, n))),
}
ADAPTIVE = [n for n in ("robin-hood", "eb-bernstein", "rating-kernel", "auto") if n in plugins().samplers]
REPORTED = ["uniform", *(name for name in ADAPTIVE if name != "robin-hood")]

# 30 per item take three times as long
CASES = [*((name, 10) for name in REPORTED), *(variant(name, 30) for name in REPORTED)]
WATCHED = {
    ("bernoulli", "robin-hood"),
    ("bernoulli", "auto"),
    ("ratings", "eb-bernstein"),
    ("ratings", "rating-kernel"),
    ("all-equal", "robin-hood"),
}


def build(name: str, n_items: int, seed: int) -> RepeatSampler:
    cls: Any = plugins().sampler(name)
    sampler: RepeatSampler = cls(Design.of_items(n_items), seed=seed)
    return sampler


def bought(world: worlds.World, sampler: RepeatSampler, budget: int) -> ItemReadings:
    scores = world.draw(budget)
    book = ArrayBook(sampler)
    while book.n < budget and (asked := book.ask(budget - book.n)) is not None:
        book.tell(scores[asked.item, asked.epoch])
    return book.bought()


def ever_missed(readings: list[ItemReadings], truth: Floats, top: float, alpha: float) -> Flags:
    """In which runs any item's sequence missed its mean after any of its readings."""
    counts = np.concatenate([run.counts for run in readings])
    values = np.concatenate([run.value for run in readings])
    starts = np.cumsum(counts) - counts
    sequences = WatchedSequences(counts.size, bounds=(0.0, top))
    missed = np.zeros(counts.size, dtype=bool)
    for t in range(int(counts.max())):
        reading = np.flatnonzero(counts > t)
        sequences.update(reading, values[starts[reading] + t])
        missed |= ~sequences.intervals(1 - alpha).contains(truth)
    return np.asarray(missed.reshape(len(readings), -1).any(axis=1))


@pytest.mark.parametrize(
    ("world", "sampler"),
    [
        (world, name) if (world, name) in WATCHED else variant(world, name)
        for world in ("bernoulli", "ratings", "all-equal")
        for name in ADAPTIVE
    ],
)
def test_simultaneous_betting_holds_at_every_moment(world: str, sampler: str) -> None:
    R, rng = replications(6, 2000), np.random.default_rng(30)
    top = 4.0 if world == "ratings" else 1.0
    failed = 0
    for start in range(0, R, 50):
        runs, truth = [], []
        for seed in range(start, min(R, start + 50)):
            drawn = WORLDS[world](ITEMS, rng)
            built = build(sampler, ITEMS, seed)
            runs.append(bought(drawn, built, 30 * ITEMS))
            truth.append(drawn.mean)
        means = np.concatenate(truth)
        failed += int(ever_missed(runs, means, top, 0.05 / ITEMS).sum())
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, 0)


def covered(methods: Sequence[str], world: str, sampler: str, per_item: int, R: int) -> list[float]:
    """Average coverage of each method on the same runs."""
    K, rng = 100, np.random.default_rng(31)
    top = 4.0 if world == "ratings" else 1.0
    shares = []
    for seed in range(R):
        drawn = WORLDS[world](K, rng)
        built = build(sampler, K, seed)
        readings = bought(drawn, built, per_item * K)
        fixed = built.fixed_repeats if built.allocation is not Allocation.FIXED else None
        found = [
            eb_t(readings, fixed_repeats=fixed)
            if method == "eb_t"
            else eb_wilson(readings, bounds=(0.0, top), fixed_repeats=fixed)
            for method in methods
        ]
        shares.append([each.confidence_intervals(0.95).contains(drawn.mean).mean() for each in found])
    return [float(share) for share in np.mean(shares, axis=0)]


@pytest.mark.parametrize(("sampler", "per_item"), CASES)
def test_eb_t_and_eb_wilson_average_95_percent_on_spread_bernoulli_items(sampler: str, per_item: int) -> None:
    margin = 0.01 if is_full() else 0.02  # the claim, and room for the error of a short simulation
    t, wilson = covered(["eb_t", "eb_wilson"], "coins", sampler, per_item, replications(8, 500))
    assert t == pytest.approx(0.95, abs=margin)
    assert wilson >= 0.94


@pytest.mark.parametrize(("sampler", "per_item"), CASES)
def test_eb_wilson_averages_at_least_94_percent_on_ratings(sampler: str, per_item: int) -> None:
    (average,) = covered(["eb_wilson"], "ratings", sampler, per_item, replications(6, 500))
    assert average >= 0.94
