"""A judged task under a budget: rows and facts that know how the scores were bought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalbudget import Allocation
from evalbudget.judges.estimates import short_names
from evalbudget_lm_eval.judges.readings import Judged, judge_scores
from evalbudget_lm_eval.judges.rows import bias_of, known, missing_of, panel_estimate


def judged_rows(
    score: str, values: Sequence[Judged], *, allocation: Allocation, fixed_repeats: int
) -> dict[str, Any]:
    """Each judge's bias ``M_bias_<judge>`` with its ``_stderr``, and ``M_missing``.

    They take the place of the host's totals, which know nothing of repeats that were bought because of
    earlier scores.

    Args:
        score: the host's key ``metric,filter``.
        values: one per document.
        allocation: of the sampler.
        fixed_repeats: responses every document got judged whatever its scores were.
    """
    metric, _, chosen = score.partition(",")
    rows: dict[str, Any] = {}
    scores = judge_scores(values)
    if allocation is not Allocation.FIXED:
        scores = scores.where(scores.epoch < fixed_repeats)
    for judge, short in zip(scores.judges, short_names(scores.judges), strict=True):
        rows[f"{metric}_bias_{short},{chosen}"] = known(bias_of(scores, judge))
        rows[f"{metric}_bias_{short}_stderr,{chosen}"] = known(bias_of(scores, judge, error=True))
    rows[f"{metric}_missing,{chosen}"] = missing_of(values)
    return rows


def judged_block(values: Sequence[Judged], *, allocation: Allocation, fixed_repeats: int) -> dict[str, Any]:
    """What each judge was asked and failed, and what the estimate is of."""
    scores = judge_scores(values)
    found = panel_estimate(values, allocation=allocation, fixed_repeats=fixed_repeats)
    counts = zip(scores.judges, scores.counts.tolist(), scores.failed.tolist(), strict=True)
    return {
        "fixed_repeats": fixed_repeats,
        "per_judge": {judge: {"scores": scored, "failed": failed} for judge, scored, failed in counts},
        "target": found.target,
        "method": found.method,
    }
