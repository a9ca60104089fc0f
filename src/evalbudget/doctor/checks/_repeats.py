"""Do repeats tell anything, and as much as further items would?"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from evalbudget.doctor._case import Case
from evalbudget.doctor._check import Check, Finding, Kind, saving

_CELLS = 10
_WORTH = 0.8
_USUAL = 0.9  # share of the most frequent score


class Repeats(Check):
    r"""A D study of items and repeats, by the variance of a mean over n items with r scores each.

    .. math:: \mathrm{Var} = \frac{\sigma_{item}^2}{n} + \frac{\sigma_{repeat}^2}{n r}

    The same calls on n r items once each always do better, where there are items to be had.
    """

    name = "repeats"

    def examine(self, case: Case) -> Iterable[Finding]:
        """Repeats that are all the same; repeats where items would tell more."""
        same, cells = case.identical
        readings = int(case.recorded.counts.sum())
        used = int((case.recorded.counts > 0).sum())
        if cells < _CELLS:
            return
        wasted = readings - used
        numbers: dict[str, float] = {"cells": cells, "identical": same, "readings": readings}
        values = case.recorded.scores[np.isfinite(case.recorded.scores)]
        usual = float(np.max(np.unique(values, return_counts=True)[1])) / values.size
        if same == cells and usual > _USUAL:
            return  # nearly all scores are the same: repeats agree whatever they are
        if same == cells:
            yield Finding(
                Kind.PROBLEM,
                "repeats are identical",
                f"All {cells:,} answers that were scored again got the same score again: {wasted:,} of "
                f"{readings:,} scores told nothing. Intervals that count them as independent are too narrow.",
                "Look for temperature 0, a fixed seed or a cache. If scores are meant to be deterministic, "
                "buy one each.",
                numbers,
            )
            return
        if not case.is_plain:
            return
        r = readings / used
        cell_means = case.recorded.true_scores
        if cell_means.shape[1] < 2 or not case.within > 0.0:
            return
        between = float(np.nanmean(np.nanvar(cell_means, axis=1, ddof=1))) - case.within / r
        between, n = max(between, 0.0), float(np.nanmean(case.recorded.counts.astype(bool).sum(axis=1)))
        now, once = (math.sqrt((between + case.within / k) / n) for k in (r, 1.0))
        wide = math.sqrt((between + case.within) / (n * r))
        if now <= 0.0:
            return
        share = between / (between + case.within / r)
        of = " of one judge's mean" if case.is_panel else ""
        told = (
            f"{r:.3g} scores per item{' and judge' if case.is_panel else ''}, {n:,.0f} items: a "
            f"standard error of {now:.3g}{of}. Items' differences are "
            f"{share:.0%} of that variance, which no repeat takes away: one score each would have "
            f"{once:.3g}, and as many scores on {r:.3g} times as many items {wide:.3g}."
        )
        numbers |= {"stderr": now, "stderr_once": once, "stderr_items": wide, "share_of_items": share}
        yield saving(
            wide < _WORTH * now,
            "items would tell more than repeats",
            "repeats are worth their calls",
            told,
            "For the mean, buy items: evalbudget inspect eval, or lm-eval run, --budget with fewer "
            "scores than items draws a sample. For single items' scores keep repeats, and let --sampler "
            "auto spread them.",
            numbers,
        )
