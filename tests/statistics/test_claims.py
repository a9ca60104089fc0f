"""Coverage at every moment: a running intersection that still holds the mean at the end held it all along."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget.statistics import Bounds, betting_intervals
from references.empirical_bernstein import Kind, empirical_bernstein_intervals
from references.sequences import WatchedSequences
from references.without_replacement import without_replacement_intervals

pytestmark = pytest.mark.claim
ITEMS = 10


def bernoulli(p: float, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    return (rng.random(shape) < p).astype(float)


def misses(bounds: Bounds, truth: float | NDArray[np.float64], group: int = 1) -> int:
    return int((~bounds.contains(truth)).reshape(-1, group).any(axis=1).sum())


@pytest.mark.parametrize(("p", "expected"), [variant(0.5, 4), (0.95, 2), variant(0.02, 1)])
def test_betting_on_bernoulli_against_theory(p: float, expected: int) -> None:
    R = replications(150, 10_000)
    x = bernoulli(p, (R, 250), np.random.default_rng(10))
    failed = misses(betting_intervals(x.ravel(), [250] * R), p)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


@pytest.mark.parametrize(("p", "expected"), [(0.5, 2), variant(0.95, 0), variant(0.02, 0)])
def test_simultaneous_betting_against_theory(p: float, expected: int) -> None:
    R = replications(100, 2000)
    x = bernoulli(p, (R * ITEMS, 100), np.random.default_rng(11))
    # simultaneous over the items of one benchmark: one call per benchmark, here all at level 1 - .05 / ITEMS
    failed = misses(betting_intervals(x.ravel(), [100] * len(x), 1 - 0.05 / ITEMS), p, ITEMS)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


def test_betting_on_ratings_against_theory() -> None:
    R = replications(150, 10_000)
    share = np.array([0.05, 0.1, 0.15, 0.3, 0.4])
    x = np.random.default_rng(12).choice(5, size=(R, 200), p=share).astype(float)
    failed = misses(betting_intervals(x.ravel(), [200] * R, bounds=(0, 4)), float(share @ np.arange(5)))
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, 1)


def test_betting_between_two_candidates_against_theory() -> None:
    # a coarse grid and a mean halfway between its candidates: rounding must only ever widen
    R = replications(150, 10_000)
    x = bernoulli(0.5625, (R, 400), np.random.default_rng(13))
    failed = misses(betting_intervals(x.ravel(), [400] * R, grid=9), 0.5625)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, 1)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_equal_scores_are_always_covered(value: float) -> None:
    assert betting_intervals([value] * 500, [500], 0.5).contains(value).all()


def test_simultaneous_betting_after_adaptive_allocation_against_theory() -> None:
    # each benchmark asks its item with the largest variance of the mean next
    R = replications(36, 1500)
    rng = np.random.default_rng(14)
    p = np.tile(np.linspace(0.02, 0.98, ITEMS), R)
    sequences = WatchedSequences(R * ITEMS)
    total, n = np.zeros(R * ITEMS), np.zeros(R * ITEMS)
    first = np.arange(R) * ITEMS
    for _ in range(250):
        mean = (total + 0.5) / (n + 1)
        spread = (mean * (1 - mean) / np.maximum(n, 1e-9)).reshape(R, ITEMS)
        chosen = first + spread.argmax(axis=1)
        x = (rng.random(R) < p[chosen]).astype(float)
        sequences.update(chosen, x)
        total[chosen] += x
        n[chosen] += 1
    failed = misses(sequences.intervals(1 - 0.05 / ITEMS), p, ITEMS)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, 0)


@pytest.mark.parametrize(("kind", "expected"), [("bernstein", 18), ("hoeffding", 28)])
def test_plug_in_on_bernoulli_against_theory(kind: Kind, expected: int) -> None:
    R = replications(2000, 50_000)
    x = bernoulli(0.7, (R, 200), np.random.default_rng(15))
    failed = misses(empirical_bernstein_intervals(x.ravel(), [200] * R, kind=kind), 0.7)
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)


@pytest.mark.parametrize(("p", "expected"), [(0.5, 2), variant(0.95, 1)])
def test_without_replacement_against_theory(p: float, expected: int) -> None:
    R, N = replications(150, 10_000), 150
    rng = np.random.default_rng(16)
    pool = np.where(np.arange(N) < p * N, 1.0, 0.2)
    x = np.stack([rng.permutation(pool)[: N - 1] for _ in range(R)])
    failed = misses(without_replacement_intervals(x.ravel(), [N - 1] * R, [N] * R), float(pool.mean()))
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)
    bernstein = empirical_bernstein_intervals(x.ravel(), [N - 1] * R, pool_sizes=[N] * R)
    binomial_claim(misses(bernstein, float(pool.mean())), R, at_most=0.05)
