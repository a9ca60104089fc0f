"""What a panel of judges says, as every host prints it: its calls in, estimates and rows out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evalbudget._fields import percent
from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import (
    Bias,
    JudgeScores,
    between_clusters,
    biases_by_judge,
    component_rows,
    judge_corrected,
    judge_corrected_generations,
    judge_mean_over_sampled_items,
    panel_mean,
)
from evalbudget.judges.estimates._panel_mean import error_of_biases, panel_mean_of
from evalbudget.repeats._mean_rows import LEVEL, NOTHING_SCORED, BenchmarkMean, mean_rows, with_ends
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items, unvaried_interval
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import IntArray


class Call(NamedTuple):
    """One call of a judge.

    Attributes:
        item: index.
        epoch: from 0.
        judge: index into the panel.
        score: nan if there is none.
        phase: in which the answer was bought; nan if there were none, or it is not known.
    """

    item: int
    epoch: int
    judge: int
    score: float
    phase: float = math.nan


@dataclass(frozen=True, eq=False)
class PanelRows:
    """What a panel says of one model. Everything is computed when it is read, and once.

    Attributes:
        calls: of the judges, in any order.
        judges: names of the panel.
        n_items: of the benchmark; None: the largest item called, plus one.
        kept: every epoch of an item scored the same generation.
        weighs_judges: False for the raw mean of the scores, where the rotation is a baseline.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every item got whatever its scores were.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        level: of the intervals.
        clusters: number of each item's cluster, shape (n_items,); None where items are independent.
        phase_sizes: answers per item in each phase of the run that these are a part of; empty: by the calls.
        asks_again: what one call failed another scored; False where failed calls are missing scores.

    Raises:
        InvalidInputError: on reading: no judges or one twice, an index out of range, or a judge's two scores
            of one item and epoch where no generation is kept.
        InvalidInferenceError: on reading: ``allocation`` is ADAPTIVE and ``fixed_repeats`` is below 1.
    """

    calls: Sequence[Call]
    judges: Sequence[str]
    n_items: int | None = None
    kept: bool = False
    weighs_judges: bool = True
    allocation: Allocation = Allocation.FIXED
    fixed_repeats: int = 1
    bounds: tuple[float, float] | None = None
    level: float = LEVEL
    clusters: IntArray | None = None
    phase_sizes: Sequence[float] = ()
    asks_again: bool = True

    @cached_property
    def scores(self) -> JudgeScores:
        """By generation: of a kept one, a judge's second score counts as one of another."""
        return self._of(_renumbered(self.calls)) if self.kept else self.by_epoch

    @cached_property
    def by_epoch(self) -> JudgeScores:
        """By epoch, which is what the allocation goes by."""
        return self._of(self.calls)

    @cached_property
    def fixed(self) -> JudgeScores:
        """By generation: those bought whatever the scores were."""
        if self.allocation is Allocation.FIXED:
            return self.scores
        first = [call for call in self.calls if call.epoch < self.fixed_repeats]
        return self._of(_renumbered(first) if self.kept else first)

    @cached_property
    def estimate(self) -> Estimate:
        """The panel's mean as far as the allocation allows, items and repeats random.

        What clusters add to the error is what they add to that of the items' corrected means. Where all
        scores are equal and their range is known, the interval is that of as many items, or clusters, alike.
        """
        scores = self.by_epoch
        found = self._of_judges
        if scores.value.size and np.ptp(scores.value) == 0.0 and self.bounds is not None:
            read, bounds = scores.per_item > 0, self.bounds
            n = int(read.sum()) if self.clusters is None else np.unique(self.clusters[read]).size
            return replace(
                found,
                standard_error=0.0 if n > 1 else math.nan,
                interval=lambda level: unvaried_interval(found.value, n, bounds, level),
            )
        if self.clusters is None or not scores.value.size:
            return found
        return between_clusters(found, self.corrected.item_means, self.clusters)

    @property
    def _of_judges(self) -> Estimate:
        if self.allocation is not Allocation.FIXED:
            return panel_mean(self.by_epoch, allocation=self.allocation, fixed_repeats=self.fixed_repeats)
        return (panel_mean if self.weighs_judges else judge_mean_over_sampled_items)(self.scores)

    @cached_property
    def mean(self) -> BenchmarkMean:
        """The estimate in the rows of every host; only what is defined.

        ``repeats_stderr`` and its interval come from the scores with the judges' deviations taken out
        (:func:`~evalbudget.judges.estimates.judge_corrected_generations`), items given, around the panel's
        mean: the error of the deviations themselves, which all items share, is left out. They are undefined
        while no item has two scores.
        """
        scores = self.by_epoch
        if not scores.value.size:
            return NOTHING_SCORED
        by_generation = self.scores if self.allocation is Allocation.FIXED else scores
        again = mean_over_fixed_items(
            judge_corrected_generations(by_generation),
            allocation=self.allocation,
            fixed_repeats=self.fixed_repeats,
        )
        total = self.estimate
        found = mean_rows(
            total,
            again,
            items=int(np.count_nonzero(scores.per_item)),
            readings=int(scores.value.size),
            clusters=None if self.clusters is None else np.unique(self.clusters[scores.per_item > 0]).size,
            bounds=self.bounds,
            level=self.level,
        )
        if total.standard_error == 0.0 and found.no_interval is not None and np.ptp(scores.value) > 0.0:
            return replace(found, no_interval="no two scores of the same judge differ")
        return with_ends(found, ends, self.level) if (ends := self._ends) else found

    @property
    def _ends(self) -> list[Estimate]:
        """The mean if what is missing had scored the lowest, and the highest; empty where nothing is."""
        has = self.by_epoch.per_item
        lost = np.where(has == 0, 1.0, 0.0)
        if not self.asks_again:
            failed = np.bincount([c.item for c in self.calls if math.isnan(c.score)], minlength=has.size)
            lost = np.where(has + failed > 0, failed / np.maximum(has + failed, 1), 1.0)
        if not lost.any():
            return []
        counted = self.by_epoch if self.allocation is Allocation.PHASED else self.fixed
        means, values = judge_corrected(counted).item_means, self.by_epoch.value
        biases = error_of_biases(means, self._of_judges)
        return [
            panel_mean_of(
                (1.0 - lost) * np.where(has > 0, means, end) + lost * end,
                biases,
                bounds=self.bounds,
                clusters=self.clusters,
            )
            for end in self.bounds or (float(values.min()), float(values.max()))
        ]

    @property
    def corrected(self) -> ItemReadings:
        """The scores with the judges' deviations taken out, for what is said of single items."""
        return judge_corrected(self.by_epoch)

    @property
    def missing(self) -> str:
        """How many calls have no score, and what holds whatever it would have been; empty without any."""
        worst, failed = self.mean.at_worst, sum(math.isnan(call.score) for call in self.calls)
        if worst is None or not failed:
            return ""
        values = self.by_epoch.value
        seen = f" from {values.min():.4g} to {values.max():.4g}, the lowest and the highest seen"
        return (
            f"{failed:,} of {len(self.calls):,} calls have no score; the {percent(self.level)} interval "
            f"{worst.low:.4g} to {worst.high:.4g} holds whatever they would have scored"
            f"{seen if self.bounds is None else ''}"
        )

    def biases(self, *, fixed: bool) -> dict[str, Bias]:
        """By judge: deviation from the panel's mean.

        Args:
            fixed: by the scores that were bought whatever they were; otherwise by all of them.
        """
        return biases_by_judge(self.fixed if fixed else self.scores)

    @property
    def components(self) -> dict[str, float]:
        """:func:`~evalbudget.judges.estimates.component_rows` of the scores bought whatever they were."""
        return component_rows(self.fixed, one_generation=self.kept)

    def _of(self, calls: Sequence[Call]) -> JudgeScores:
        item, epoch, judge, value, phase = zip(*calls, strict=True) if calls else ((), (), (), (), ())
        return JudgeScores.of(
            item,
            epoch,
            judge,
            value,
            judges=self.judges,
            n_items=self.n_items,
            phase=phase,
            phase_sizes=self.phase_sizes,
        )


def _renumbered(calls: Iterable[Call]) -> list[Call]:
    """Calls of kept generations: every judge's first score of an item is of epoch 0, its second of epoch 1.

    Calls that failed come after all scores, since logs need not say whose they were.
    """
    again: Counter[tuple[int, int]] = Counter()
    found = []
    for call in sorted(calls, key=lambda call: (math.isnan(call.score), call[:3])):
        found.append(call._replace(epoch=again[call.item, call.judge]))
        again[call.item, call.judge] += 1
    return found
