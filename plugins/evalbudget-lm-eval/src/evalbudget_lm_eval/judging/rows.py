"""Rows of the host's table for judged tasks: the panel's estimate, its error, each judge's bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evalbudget import Allocation
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimators.judges import (
    JudgeScores,
    judge_biases,
    judge_mean_over_sampled_items,
    panel_mean,
    short_names,
)
from evalbudget.estimators.result import Estimate
from evalbudget_lm_eval.judging.readings import Judged, Readings, judge_scores

NAME = "judged"
LEVEL = 0.95


def judged(*, references: object = None, predictions: Sequence[Readings], **_: object) -> dict[str, Judged]:
    """The metric of a task whose responses went through ``CyclicJudgeFilter``.

    In YAML: ``metric: !function evalbudget_lm_eval.judged`` with ``aggregation: !function
    evalbudget_lm_eval.panel``, which makes the rows ``judged`` (the panel's mean), ``judged_stderr``,
    ``judged_ci_lower``, ``judged_ci_upper``, ``judged_missing`` (calls without a score) and, for every judge,
    ``judged_bias_<judge>`` with its ``_stderr``.

    Raises:
        InvalidInputError: the responses did not go through the filter.
    """
    readings = predictions[0]
    biases: dict[str, Judged] = {}
    for judge, short in zip(_checked(readings).judges, short_names(readings.judges), strict=True):
        biases[f"{NAME}_bias_{short}"] = Judged(f"bias {judge}", readings)
        biases[f"{NAME}_bias_{short}_stderr"] = Judged(f"bias_stderr {judge}", readings)
    return {**_fixed(readings), **biases}


def process_judged(doc: object, results: Sequence[Readings]) -> dict[str, Judged]:
    """The same as ``process_results``, for tasks with several targets per document, without biases.

    In YAML: ``process_results: !function evalbudget_lm_eval.process_judged`` and ``metric_list: !function
    evalbudget_lm_eval.JUDGED_METRICS``.

    Raises:
        InvalidInputError: the responses did not go through the filter.
    """
    return _fixed(_checked(results[0]))


def panel(values: Sequence[Judged]) -> float:
    """The aggregation of every row of :func:`judged`: each value knows which row it belongs to.

    Estimates are those of :func:`evalbudget.estimators.judges.panel_mean` over documents and these judges,
    every judge weighing the same (the raw mean under rotations that are baselines), on fixed counts.

    Raises:
        InvalidInputError: values that :func:`judged` did not make.
    """
    if not values or not all(isinstance(value, Judged) for value in values):
        raise InvalidInputError(
            "panel aggregates what the metric evalbudget_lm_eval.judged returns; use both, or neither"
        )
    what, _, judge = values[0].about.partition(" ")
    if what == "missing":
        return float(sum(values))
    scores = judge_scores(values)
    if what.startswith("bias"):
        return bias_of(scores, judge, error=what == "bias_stderr")
    found = panel_estimate(values)
    interval = found.confidence_interval(LEVEL)
    return float(
        {
            "estimate": found.value,
            "stderr": found.standard_error,
            "ci_lower": interval.low,
            "ci_upper": interval.high,
        }[what]
    )


panel.averages = True  # type: ignore[attr-defined]  # a budgeted run may allocate by it


def panel_estimate(
    values: Sequence[Judged], *, allocation: Allocation = Allocation.FIXED, fixed_repeats: int = 1
) -> Estimate:
    """What the panel says of all documents, one value per document, as far as the allocation allows."""
    scores = judge_scores(values)
    if allocation is not Allocation.FIXED:
        return panel_mean(scores, allocation=allocation, fixed_repeats=fixed_repeats)
    weighs = all(value.readings.weighs_judges for value in values)
    return panel_mean(scores) if weighs else judge_mean_over_sampled_items(scores)


def _fixed(readings: Readings) -> dict[str, Judged]:
    return {
        NAME: Judged("estimate", readings),
        f"{NAME}_stderr": Judged("stderr", readings),
        f"{NAME}_ci_lower": Judged("ci_lower", readings),
        f"{NAME}_ci_upper": Judged("ci_upper", readings),
        f"{NAME}_missing": Judged("missing", readings),
    }


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
    {"metric": name, "aggregation": panel, "higher_is_better": name == NAME}
    for name in (NAME, f"{NAME}_stderr", f"{NAME}_ci_lower", f"{NAME}_ci_upper", f"{NAME}_missing")
]
"""``metric_list`` for :func:`process_judged`."""
