"""Our rows where judges take turns: what the panel says, each judge's bias, where the variance comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import (
    JudgeScores,
    bias_rows,
    component_rows,
    judge_mean_over_sampled_items,
    panel_mean,
)
from evalbudget.judges.panel import describe_panel
from evalbudget.repeats.rows import finite
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.host.values import in_range, known_range, score_to_float
from evalbudget_inspect.judges.rotating import readings_of, was_asked
from evalbudget_inspect.repeats.metrics import estimates_of, weight_of, without_counts


class Call(NamedTuple):
    """A judge's reading of an item in an epoch (from 0).

    Attributes:
        item: index.
        epoch: from 0.
        judge: index.
        score: nan if there is none.
        weight: fixed before it was seen; nan if it was held out, or if none was fixed.
    """

    item: int
    epoch: int
    judge: int
    score: float
    weight: float = math.nan


@metric(name="evalbudget_panel", scores="unreduced")
def panel_estimates(
    judges: list[str],
    weighs_judges: bool = True,
    kept: bool = False,
    allocation: str = "fixed",
    fixed_repeats: int = 1,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
) -> Metric:
    """The panel's mean, and how sure it is.

    ``estimate``, ``stderr``, ``lower`` and ``upper``: items and repeats are random, the judges are these
    ones, and every judge weighs the same. ``repeats_stderr``, ``repeats_lower`` and ``repeats_upper``: these
    items asked again. ``bias_<judge>`` is a judge's deviation from the panel's mean. ``variance_<source>``
    and ``share_<source>`` say where the variance of a single score by one of the judges comes from, as far as
    the rotation tells sources apart.

    Where repeats depend on scores, the estimate rests on those that may count for it (see
    ``evalbudget.judges.estimates.panel_mean``), and the variances on those bought whatever the scores.

    A scorer that asks no judge has the rows of a task without a panel.

    Args:
        judges: names of the panel.
        weighs_judges: False for the raw mean of the scores, where the rotation is a baseline.
        kept: every epoch of an item scored the same generation.
        allocation: how the sampler's counts depend on scores; see ``evalbudget.Allocation``.
        fixed_repeats: readings every item got whatever its scores were.
        low: the smallest possible score, if declared.
        high: the largest possible score, if declared.
        level: of the intervals.
    """
    bounds = (low, high) if low is not None and high is not None else None
    how = Allocation(allocation)

    def compute(scores: list[SampleScore]) -> Value:
        calls = panel_calls(scores, judges, bounds)
        known = bounds or known_range([sample.score.value for sample in scores])
        if calls is None:
            return dict(estimates_of(scores, how, fixed_repeats, known, level))
        found = judge_scores(calls, judges, kept=kept)
        estimate = panel_estimate(
            calls, judges, kept=kept, weighs_judges=weighs_judges, allocation=how, fixed_repeats=fixed_repeats
        )
        mean = describe_panel(
            estimate,
            judge_scores(calls, judges, kept=False),  # what may count goes by the epoch
            allocation=how,
            fixed_repeats=fixed_repeats,
            bounds=known,
            level=level,
        )
        values = without_counts(mean.rows)
        fixed = found if how is Allocation.FIXED else _first(calls, fixed_repeats, judges, kept)
        return values | finite(bias_rows(found) | component_rows(fixed, one_generation=kept))

    return compute


def panel_calls(
    scores: Sequence[SampleScore], judges: Sequence[str], bounds: tuple[float, float] | None
) -> list[Call] | None:
    """The scores as judge calls; None if no judge gave them, or they are no numbers."""
    number = {name: i for i, name in enumerate(judges)}
    items: dict[str, int] = {}
    calls: list[Call] = []
    asked = False
    for sample in scores:
        ours = (sample.score.metadata or {}).get(METADATA) or {}
        if not was_asked(ours) and "judge" not in ours:
            continue
        asked |= was_asked(ours)
        try:
            value = score_to_float(sample.score, sample.scorer or "scorer")
        except InvalidInputError:
            return None
        item = items.setdefault(str(sample.sample_id), len(items))
        for judge, read in readings_of(ours, value).items():
            if judge in number:
                read = read if in_range(read, bounds) else float("nan")
                calls.append(Call(item, int(ours["epoch"]) - 1, number[judge], read, weight_of(ours)))
    return calls if asked else None


def panel_estimate(
    calls: Sequence[Call],
    judges: Sequence[str],
    *,
    kept: bool = False,
    weighs_judges: bool = True,
    allocation: Allocation = Allocation.FIXED,
    fixed_repeats: int = 1,
) -> Estimate:
    """The panel's mean as far as the allocation allows."""
    if allocation is Allocation.FIXED:
        scores = judge_scores(calls, judges, kept=kept)
        return panel_mean(scores) if weighs_judges else judge_mean_over_sampled_items(scores)
    scores = judge_scores(calls, judges, kept=False)  # what may count goes by the epoch
    return panel_mean(scores, allocation=allocation, fixed_repeats=fixed_repeats)


def judge_scores(
    calls: Sequence[Call], judges: Sequence[str], *, kept: bool, n: int | None = None
) -> JudgeScores:
    """Calls as scores, of ``n`` items (None: as many as were called).

    Where a generation is kept, all its scores are of the one generation, and a judge's second score of it
    counts as one of another.
    """
    if kept:
        again: dict[tuple[int, int], int] = {}
        renumbered: list[Call] = []
        for call in sorted(calls, key=lambda call: call[:3]):
            count = again.get((call.item, call.judge), 0)
            again[call.item, call.judge] = count + 1
            renumbered.append(call._replace(epoch=count))
        calls = renumbered
    item, epoch, judge, value, weight = zip(*calls, strict=True) if calls else ((), (), (), (), ())
    return JudgeScores.of(item, epoch, judge, value, judges=judges, n_items=n, weight=weight)


def _first(calls: Sequence[Call], repeats: int, judges: Sequence[str], kept: bool) -> JudgeScores:
    return judge_scores([call for call in calls if call.epoch < repeats], judges, kept=kept)
