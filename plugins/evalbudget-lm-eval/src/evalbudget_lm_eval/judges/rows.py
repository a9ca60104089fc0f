"""Rows of the host's table for judged tasks: the panel's estimate, its error, each judge's bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.judges import Call, PanelRows
from evalbudget.judges.estimates import cost_rows, short_names
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.rows import ESTIMATE, REPEATS, UNKNOWN
from evalbudget_lm_eval.judges.readings import Judged, Readings

log = shown_logger(__name__)

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

    Estimates are those of :func:`evalbudget.judges.estimates._panel_mean` over documents and these judges,
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
    found = panel_rows(values)
    if what == "missing":
        return int(found.scores.failed.sum())
    if what.startswith("bias"):
        bias = found.biases(fixed=True)[judge]
        return _known(bias.standard_error if what == "bias_stderr" else bias.value)
    if what == "lower" and found.mean.no_interval is not None:
        log.warning("%s has no interval: %s", NAME, found.mean.no_interval)
    if what == "lower" and found.missing:
        log.warning("%s: %s", NAME, found.missing)
    return found.mean.rows.get(what, math.nan if what == "estimate" else UNKNOWN)


panel.averages = True  # type: ignore[attr-defined]  # a budgeted run may allocate by it


def panel_rows(values: Sequence[Judged]) -> PanelRows:
    """What the panel says, from one value per document as the host aggregates them."""
    judges = next((value.readings.judges for value in values if value.readings.judges), ("nobody",))
    number = {judge: i for i, judge in enumerate(judges)}
    calls = [
        Call(item, reading.epoch, number[reading.judge], math.nan if reading.score is None else reading.score)
        for item, value in enumerate(values)
        for reading in value.readings
    ]
    return PanelRows(
        calls,
        judges,
        n_items=len(values),
        weighs_judges=all(value.readings.weighs_judges for value in values),
        bounds=next((value.readings.scale for value in values if value.readings.scale is not None), None),
        asks_again=False,
    )


def judged_rows(score: str, found: PanelRows) -> dict[str, Any]:
    """Each judge's bias ``M_bias_<judge>`` with its ``_stderr``, and ``M_missing``.

    They take the place of the host's totals, which know nothing of repeats that were bought because of
    earlier scores.

    Args:
        score: the host's key ``metric,filter``.
        found: what the judges said.
    """
    metric, _, chosen = score.partition(",")
    rows: dict[str, Any] = {}
    for short, bias in zip(short_names(found.judges), found.biases(fixed=True).values(), strict=True):
        rows[f"{metric}_bias_{short},{chosen}"] = _known(bias.value)
        rows[f"{metric}_bias_{short}_stderr,{chosen}"] = _known(bias.standard_error)
    rows[f"{metric}_missing,{chosen}"] = int(found.scores.failed.sum())
    return rows


def judged_block(found: PanelRows) -> dict[str, Any]:
    """What each judge was asked and failed, and what the estimate is of."""
    return {
        "fixed_repeats": found.fixed_repeats,
        "per_judge": {
            judge: {"scores": row["calls"] - row["failed"], "failed": row["failed"]}
            for judge, row in cost_rows(found.scores).items()
        },
        "target": found.estimate.target,
        "method": found.estimate.method,
    }


def _known(value: float) -> float | str:
    """The value, or what the host writes for one that is not defined."""
    return value if math.isfinite(value) else UNKNOWN


def _fixed(readings: Readings) -> dict[str, Judged]:
    return {NAME + ending: Judged(word, readings) for ending, word in _FIXED.items()}


def _checked(readings: object) -> Readings:
    if not isinstance(readings, Readings):
        raise InvalidInputError(
            f"the metric {NAME!r} was given {type(readings).__name__}; put function: !function "
            "evalbudget_lm_eval.CyclicJudgeFilter last in the task's filter_list, with its judges"
        )
    return readings


JUDGED_METRICS: list[dict[str, Any]] = [
    {"metric": NAME + ending, "aggregation": panel, "higher_is_better": not ending} for ending in _FIXED
]
"""``metric_list`` for :func:`process_judged`."""
