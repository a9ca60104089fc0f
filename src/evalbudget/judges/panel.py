"""What a panel of judges says, in the rows that every host prints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import JudgeScores, judge_corrected_generations
from evalbudget.repeats.estimates import mean_over_fixed_items
from evalbudget.repeats.rows import LEVEL, NOTHING_SCORED, BenchmarkMean, mean_rows
from evalbudget.sampler import Allocation


def describe_panel(
    total: Estimate,
    scores: JudgeScores,
    *,
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
) -> BenchmarkMean:
    """What a panel of judges says, in the same rows; only what is defined.

    ``repeats_stderr`` and its interval come from the scores with the judges' deviations taken out
    (:func:`~evalbudget.judges.estimates.judge_corrected_generations`), items given, around the panel's mean:
    the error of the deviations themselves, which all items share, is left out. They are undefined while no
    item has two scores.

    Args:
        total: the panel's mean, items and repeats random.
        scores: of one model.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: readings every item got whatever its scores were.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        level: of the intervals.
    """
    if not scores.value.size:
        return NOTHING_SCORED
    again = mean_over_fixed_items(
        judge_corrected_generations(scores), allocation=allocation, fixed_repeats=fixed_repeats
    )
    found = mean_rows(
        total,
        again,
        items=int(np.count_nonzero(scores.per_item)),
        readings=int(scores.value.size),
        bounds=bounds,
        level=level,
    )
    if total.standard_error == 0.0 and found.no_interval is not None and np.ptp(scores.value) > 0.0:
        return replace(found, no_interval="no two scores of the same judge differ")
    return found
