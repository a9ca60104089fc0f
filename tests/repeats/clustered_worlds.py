"""Items in clusters whose answers go together, and whether a host's rows say how sure their mean is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tests.claims import binomial_claim, pinned, replications

TRUTH = 0.5
CASES = ((8, 0), (20, 1), (100, 2))
"""Numbers of clusters, and seeds."""
_QUICK = {8: 150, 20: 80, 100: 25}


class World(NamedTuple):
    """One run.

    Attributes:
        cluster: number of each item's, shape (items,).
        scores: 0 or 1, shape (items, repeats).
    """

    cluster: NDArray[np.int64]
    scores: NDArray[np.float64]


def drawn(clusters: int, rng: np.random.Generator) -> World:
    """Clusters of 2 to 8 items with a rate of their own, each item asked twice."""
    cluster = np.repeat(np.arange(clusters), rng.integers(2, 9, clusters))
    rate = np.clip(rng.beta(2, 2, clusters)[cluster] + rng.uniform(-0.05, 0.05, cluster.size), 0.0, 1.0)
    return World(cluster, (rng.random((cluster.size, 2)) < rate[:, None]).astype(float))


def check_coverage(
    rows_of: Callable[[World], Mapping[str, float]], clusters: int, seed: int, expected: int
) -> None:
    """At least .93 of the intervals cover, at a mean width of at most 1.15 of the t interval that is right.

    Args:
        rows_of: ``estimate``, ``lower`` and ``upper`` by a host's own functions.
        clusters: how many there are.
        seed: of the worlds.
        expected: how many do not cover, in few replications.
    """
    rng, trials = np.random.default_rng([29, seed]), replications(_QUICK[clusters], 2_000)
    missed, widths, values = 0, [], []
    for _ in range(trials):
        found = rows_of(drawn(clusters, rng))
        missed += not found["lower"] <= TRUTH <= found["upper"]
        widths.append(found["upper"] - found["lower"])
        values.append(found["estimate"])
    pinned(missed, expected)
    binomial_claim(missed, trials, at_most=0.07)
    spread = _true_spread(clusters)
    right = 2.0 * float(stats.t.ppf(0.975, clusters - 1)) * spread
    assert np.mean(widths) <= 1.15 * right
    assert abs(np.mean(values) - TRUTH) < 5.0 * spread / math.sqrt(trials)


def _true_spread(clusters: int) -> float:
    """Of the mean over such items, from worlds of their own: it costs no host anything."""
    rng = np.random.default_rng([30, clusters])
    return float(np.std([drawn(clusters, rng).scores.mean() for _ in range(4_000)]))
