"""What clusters of items add to the error of a mean, for as many items of clusters as large."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._clustered_mean import clustered_mean, summed_errors


@dataclass(frozen=True, slots=True)
class ClusterExcess:
    """Of items that were scored.

    Attributes:
        added: to the variance of one item's mean: the mean of n items has ``added / n`` more; below 0 where
            clusters are more alike than items are.
        effect: variance of the mean, by that of as many independent items.
        degrees: of freedom of the error between clusters.
        items: with a score.
        clusters: among them; with one, nothing else is known.
    """

    added: float
    effect: float
    degrees: float
    items: int
    clusters: int

    @classmethod
    def of(cls, means: FloatArray, cluster: IntArray) -> ClusterExcess:
        """From items' means.

        Args:
            means: shape (n,); nan where there is none. They differ.
            cluster: number of each item's cluster, shape (n,).
        """
        found, alone = clustered_mean(means, cluster), clustered_mean(means, np.arange(means.size))
        own, whole = alone.standard_error**2, found.standard_error**2
        return cls((whole - own) * found.n, whole / own, found.degrees, found.n, found.clusters)

    def error(self, variance: float, degrees: float, items: int) -> tuple[float, float]:
        """Standard error of a mean whose variance grows by this, and its degrees of freedom (Satterthwaite).

        Args:
            variance: of the mean of independent items.
            degrees: of freedom of it.
            items: of the mean.
        """
        if self.added <= 0.0:
            return math.sqrt(variance), degrees
        more = (self.added / items, self.degrees * items / self.items)
        error, freedom = summed_errors((variance, degrees), more)
        return float(error), float(freedom)
