"""A third-party estimator: the median of the items' means."""

from __future__ import annotations

import numpy as np

from evalbudget.estimate import ConfidenceInterval, Coverage, Estimate, Random, Validity
from evalbudget.repeats.estimates import Estimator, ItemReadings, Need


class Median(Estimator):
    """Median of the item means, and the sign test's interval for that of items like these.

    Means that rest on different numbers of repeats are not alike, so all items must be asked equally often.
    """

    name = "median"
    needs = frozenset({Need.EVEN})

    def estimate(self, readings: ItemReadings, bounds: tuple[float, float] | None) -> Estimate:
        """See Estimator."""
        means = np.sort(readings.moments.mean[readings.counts > 0])

        def interval(level: float) -> ConfidenceInterval:
            from scipy.stats import binom  # takes longer to import than all of evalbudget

            low = int(binom.ppf((1 - level) / 2, means.size, 0.5)) - 1  # so many means lie below it
            if low < 0:
                return ConfidenceInterval(-np.inf, np.inf)
            return ConfidenceInterval(float(means[low]), float(means[-1 - low]))

        return Estimate(
            value=float(np.median(means)) if means.size else float("nan"),
            standard_error=float("nan"),
            target="median of item means",
            method="sign test",
            random=frozenset({Random.ITEMS, Random.REPEATS}),
            validity=Validity.FIXED_N,
            coverage=Coverage.EACH,
            asymptotic=False,
            n=readings.value.size,
            cost=readings.cost,
            interval=interval,
        )
