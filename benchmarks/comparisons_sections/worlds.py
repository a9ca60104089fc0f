"""Pairs of scores whose mean difference is known exactly: a baseline and a candidate on the same items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray

Random = np.random.Generator


@dataclass(frozen=True)
class Scores:
    """Of one benchmark.

    Attributes:
        baseline: shape (n,), in [0, 1].
        candidate: the same items.
        cluster: number of each item's cluster, shape (n,); None for items by themselves.
    """

    baseline: FloatArray
    candidate: FloatArray
    cluster: IntArray | None = None


@dataclass(frozen=True)
class World:
    """Where benchmarks of any size come from.

    Attributes:
        draw: a benchmark of n items whose mean difference is expected to be delta.
        margin: that a gate here asks about.
    """

    draw: Callable[[Random, int, float], Scores]
    margin: float


def _binary(rng: Random, n: int, delta: float) -> Scores:
    """Pass or fail; a quarter of the items is answered differently."""
    u = rng.random(n)
    worse, better = 0.125 - delta / 2, 0.125 + delta / 2
    only_baseline, only_candidate = u < worse, (u >= worse) & (u < worse + better)
    both = (rng.random(n) < 0.7) & ~only_baseline & ~only_candidate
    return Scores((both | only_baseline).astype(float), (both | only_candidate).astype(float))


def _ratings(rng: Random, n: int, delta: float) -> Scores:
    """1 to 10, on the unit scale; the candidate's differ by up to 2, and by 1 more as often as delta says."""
    baseline = rng.integers(4, 8, n)
    shift = rng.choice([-2, -1, 0, 1, 2], size=n, p=[0.1, 0.2, 0.4, 0.2, 0.1])
    more = np.sign(delta) * (rng.random(n) < 9.0 * abs(delta))
    return Scores((baseline - 1) / 9.0, (baseline + shift + more - 1) / 9.0)


def _skewed(rng: Random, n: int, delta: float) -> Scores:
    """Nearly everything is right; one item in 25 is answered differently."""
    u = rng.random(n)
    worse, better = 0.02 + max(-delta, 0.0), 0.02 + max(delta, 0.0)
    difference = np.where(u < worse, -1.0, np.where(u > 1.0 - better, 1.0, 0.0))
    return Scores(np.where(difference > 0.0, 0.0, 1.0), np.where(difference < 0.0, 0.0, 1.0))


def _clustered(rng: Random, n: int, delta: float) -> Scores:
    """Pass or fail; documents of 1 to 8 questions, on which a candidate is better or worse as a whole."""
    size = rng.integers(1, 9, n)
    cluster = np.repeat(np.arange(n), size)[:n]
    lean = rng.choice([-0.15, 0.15], size=n)[cluster] + delta
    u = rng.random(n)
    worse, better = 0.2 - lean / 2, 0.2 + lean / 2
    only_baseline, only_candidate = u < worse, (u >= worse) & (u < worse + better)
    return Scores((~only_candidate).astype(float), (~only_baseline).astype(float), cluster)


def _noisy_judge(rng: Random, n: int, delta: float) -> Scores:
    """A judge whose scores of one answer vary far more than answers do."""
    true = rng.uniform(-0.05, 0.05, n)
    return Scores(0.5 + rng.uniform(-0.3, 0.3, n), 0.5 + delta + true + rng.uniform(-0.3, 0.3, n))


WORLDS: Mapping[str, World] = {
    "pass or fail": World(_binary, 0.05),
    "ratings": World(_ratings, 0.02),
    "skewed": World(_skewed, 0.02),
    "clustered": World(_clustered, 0.05),
    "noisy judge": World(_noisy_judge, 0.03),
}
