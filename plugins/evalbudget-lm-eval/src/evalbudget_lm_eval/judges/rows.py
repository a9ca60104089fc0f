"""Rows of the host's table for judged tasks: the panel's estimate, its error, each judge's bias."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from evalbudget import Allocation
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import (
    JudgeScores,
    judge_biases,
    judge_mean_over_sampled_items,
    panel_mean,
    short_names,
)
from evalbudget.judges.panel import describe_panel
from evalbudget.repeats.rows import BenchmarkMean
from evalbudget_lm_eval.judges.readings import Judged, Readings, WeightOf, judge_scores
from evalbudget_lm_eval.repeats.rows import ESTIMATE, REPEATS, UNKNOWN

log = logging.getLogger(__name__)

NAME = "judged"
_FIXED = {**ESTIMATE, "_missing": "missing"}


def judged(*, references: object = None, predictions: Sequence[Readings], **_: object) -> dict[str, Judged]:
    """The metric of a task whose responses went through ``CyclicJudgeFilter``.

    In YAML: ``metric: !function evalbudget_lm_eval.judged`` with ``aggregation: !function
    evalbudget_lm_eval.panel``, which makes the rows ``judged`` (the panel's mean), ``judged_stderr``,
    ``judged_lower`` and ``judged_upper`` (documents and repeats are random), ``judged_missing`` (calls
    without a score) and, for every judge, ``judged_bias_<judge>`` with its ``_stderr``. A task with
    ``repeats:`` has ``judged_repeats``, with ``_stderr``, ``_lower`` and ``_upper`` of the same documents
    asked again.

    Raises:
        InvalidInputError: the responses did not go through the filter.
    """
    readings = predictions[0]
    more: dict[str, Judged] = {}
    for judge, short in zip(_checked(readings).judges, short_names(readings.judges), strict=True):
        more[f"{NAME}_bias_{short}"] = Judged(f"bias {judge}", readings)
        more[f"{NAME}_bias_{short}_stderr"] = Judged(f"bias_stderr {judge}", readings)
    if len({reading.epoch for reading in readings}) > 1:
        more |= {NAME + ending: Judged(word, readings) for ending, word in REPEATS.items()}
    return {**_fixed(readings), **more}


def process_judged(doc: object, results: Sequence[Readings]) -> dict[str, Judged]:
    """The same as ``process_results``, for tasks with several targets per document, without biases.

    In YAML: ``process_results: !function evalbudget_lm_eval.process_judged`` and ``metric_list: !function
    evalbudget_lm_eval.JUDGED_METRICS``.

    Raises:
        InvalidInputError: the responses did not go through the filter.
    """
    return _fixed(_checked(results[0]))


def panel(values: Sequence[Judged]) -> float | int | str:
    """The aggregation of every row of :func:`judged`: each value knows which row it belongs to.

    Estimates are those of :func:`evalbudget.judges.estimates.panel_mean` over documents and these judges,
    every judge weighing the same (the raw mean under rotations that are baselines), on fixed counts. What is
    not defined is ``N/A``, as the host has it.

    Raises:
        InvalidInputError: values that :func:`judged` did not make.
    """
    if not values or not all(isinstance(value, Judged) for value in values):
        raise InvalidInputError(
            "panel aggregates what the metric evalbudget_lm_eval.judged returns; use both, or neither"
        )
    what, _, judge = values[0].about.partition(" ")
    if what == "missing":
        return missing_of(values)
    if what.startswith("bias"):
        return known(bias_of(judge_scores(values), judge, error=what == "bias_stderr"))
    mean = panel_rows(values)
    if what == "lower" and mean.no_interval is not None:
        log.warning("%s has no interval: %s", NAME, mean.no_interval)
    return mean.rows.get(what, math.nan if what == "estimate" else UNKNOWN)


panel.averages = True  # type: ignore[attr-defined]  # a budgeted run may allocate by it


def panel_rows(
    values: Sequence[Judged],
    *,
    allocation: Allocation = Allocation.FIXED,
    fixed_repeats: int = 1,
    bounds: tuple[float, float] | None = None,
    weight: WeightOf | None = None,
) -> BenchmarkMean:
    """The panel's mean in the rows of every host, from one value per document.

    Args:
        values: as the host aggregates them.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: responses every document got judged whatever its scores were.
        bounds: the smallest and the largest possible score; None for the judges' scale.
        weight: of the readings; None if none was fixed.
    """
    scale = next((value.readings.scale for value in values if value.readings.scale is not None), None)
    return describe_panel(
        panel_estimate(values, allocation=allocation, fixed_repeats=fixed_repeats, weight=weight),
        judge_scores(values, weight),
        allocation=allocation,
        fixed_repeats=fixed_repeats,
        bounds=scale if bounds is None else bounds,
    )


def known(value: float) -> float | str:
    """The value, or what the host writes for one that is not defined."""
    return value if math.isfinite(value) else UNKNOWN


def missing_of(values: Sequence[Judged]) -> int:
    """Calls of judges that failed, or whose reply has no number on the scale."""
    return sum(reading.score is None for value in values for reading in value.readings)


def panel_estimate(
    values: Sequence[Judged],
    *,
    allocation: Allocation = Allocation.FIXED,
    fixed_repeats: int = 1,
    weight: WeightOf | None = None,
) -> Estimate:
    """What the panel says of all documents, one value per document, as far as the allocation allows."""
    scores = judge_scores(values, weight)
    if allocation is not Allocation.FIXED:
        return panel_mean(scores, allocation=allocation, fixed_repeats=fixed_repeats)
    weighs = all(value.readings.weighs_judges for value in values)
    return panel_mean(scores) if weighs else judge_mean_over_sampled_items(scores)


def _fixed(readings: Readings) -> dict[str, Judged]:
    return {NAME + ending: Judged(word, readings) for ending, word in _FIXED.items()}


def _checked(readings: object) -> Readings:
    if not isinstance(readings, Readings):
        raise InvalidInputError(
            f"the metric {NAME!r} was given {type(readings).__name__}; put function: !function "
            "evalbudget_lm_eval.CyclicJudgeFilter last in the task's filter_list, with its judges"
        )
    return readings


def bias_of(scores: JudgeScores, judge: str, *, error: bool = False) -> float:
    """How far a judge is from the panel's mean, or the standard error of that; nan where nobody knows."""
    try:
        biases = judge_biases(scores)
    except InvalidInferenceError:
        return math.nan  # fewer than two judges scored anything
    if judge not in biases.judges:
        return math.nan
    column = biases.standard_error if error else biases.value
    return float(column[biases.judges.index(judge)])


JUDGED_METRICS: list[dict[str, Any]] = [
    {"metric": NAME + ending, "aggregation": panel, "higher_is_better": not ending} for ending in _FIXED
]
"""``metric_list`` for :func:`process_judged`."""
