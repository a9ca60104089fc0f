"""Do later scores of the same item come out higher or lower?"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind
from evalbudget.statistics._shrinkage import t_quantile

_CELLS = 20
_WRONG = 0.01  # probability of a finding where nothing drifts, all raters together


class Drift(Check):
    r"""The slope of scores on their epoch within cells, for every rater.

    .. math:: b = \frac{\sum (e - \bar e_c)(x - \bar x_c)}{\sum (e - \bar e_c)^2}

    with an error that takes items for clusters. Epochs are in the order in which scores were bought, so that
    a judge whose standard moves, a cache that warms up or answers that get shorter show here.
    """

    name = "drift"

    def examine(self, case: Case) -> Iterable[Finding]:
        """A finding for every rater that drifts; one if none does."""
        recorded = case.recorded
        if recorded.scores.shape[3] < 2 or not case.is_plain:
            return
        epochs = recorded.epochs
        epoch = np.arange(recorded.scores.shape[3]) if epochs is None else epochs
        drifts, looked = False, 0
        sure = 1.0 - _WRONG / len(recorded.raters)
        for number, rater in enumerate(recorded.raters):
            x = np.asarray(recorded.scores[:, :, number, :], dtype=np.float64)
            read = np.isfinite(x) & (recorded.counts[:, :, number] > 1)[..., None]
            when = np.broadcast_to(epoch if epochs is None else epoch[:, :, number, :], x.shape).astype(float)
            n = np.maximum(read.sum(axis=2, keepdims=True), 1)
            e = np.where(read, when - np.where(read, when, 0.0).sum(axis=2, keepdims=True) / n, 0.0)
            d = np.where(read, x - np.where(read, x, 0.0).sum(axis=2, keepdims=True) / n, 0.0)
            spread = float((e * e).sum())
            if int((n[read.any(axis=2)] > 1).sum()) < _CELLS or spread <= 0.0:
                continue
            looked += 1
            slope = float((e * d).sum()) / spread
            by_item = (e * (d - slope * e)).sum(axis=(0, 2))
            items = int((np.abs(e).sum(axis=(0, 2)) > 0.0).sum())
            error = math.sqrt(float((by_item**2).sum()) * items / max(items - 1, 1)) / spread
            half = float(t_quantile(sure, np.array(float(max(items - 1, 1))))) * error
            if abs(slope) <= half:
                continue
            drifts = True
            last = float(when[read].max() - when[read].min())
            moved, uncertain = slope * last, half * last
            yield Finding(
                Kind.PROBLEM,
                f"{rater} drifts",
                f"From the first epoch to the last, its scores of the same items move by {moved:+.3g} "
                f"({moved - uncertain:+.3g} to {moved + uncertain:+.3g}): epochs are not repeats of "
                "one thing.",
                "Look for a judge that was updated, a cache, or a prompt that sees earlier answers. Score "
                "all models in the same period, in a random order.",
                {"moved": moved, "low": moved - uncertain, "high": moved + uncertain},
            )
        if looked and not drifts:
            yield Finding(
                Kind.FINE,
                "no drift",
                "Later scores of the same items are neither higher nor lower than earlier ones, beyond "
                "chance.",
            )
