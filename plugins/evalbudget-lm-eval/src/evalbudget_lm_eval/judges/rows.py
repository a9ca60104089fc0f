"""Rows of the host's table for judged tasks: the panel's estimate, its error, each judge's bias."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.judges.estimates import short_names
from evalbudget.judges.panel import Call, PanelRows, share_weights
from evalbudget_lm_eval.host.rows import ESTIMATE, REPEATS, UNKNOWN
from evalbudget_lm_eval.judges.readings import Judged, Readings

log = logging.getLogger(__name__)

NAME = "judged"
_FIXED = {**ESTIMATE, "_missing": "missing"}

WeightOf = Callable[[int, int], float]
"""Weight, fixed before it was seen, of a document (by index) and answer; nan if it was held out."""


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
    found = panel_rows(values)
    if what == "missing":
        return int(found.scores.failed.sum())
    if what.startswith("bias"):
        bias = found.biases(fixed=True)[judge]
        return known(bias.standard_error if what == "bias_stderr" else bias.value)
    if what == "lower" and found.mean.no_interval is not None:
        log.warning("%s has no interval: %s", NAME, found.mean.no_interval)
    return found.mean.rows.get(what, math.nan if what == "estimate" else UNKNOWN)


panel.averages = True  # type: ignore[attr-defined]  # a budgeted run may allocate by it


def panel_rows(
    values: Sequence[Judged],
    *,
    items: Sequence[int] | None = None,
    n_items: int | None = None,
    weight: WeightOf | None = None,
    responses: int = 1,
    allocation: Allocation = Allocation.FIXED,
    fixed_repeats: int = 1,
    bounds: tuple[float, float] | None = None,
) -> PanelRows:
    """What the panel says, from one value per document.

    Args:
        values: as the host aggregates them.
        items: index of each value's document; None for that of the value.
        n_items: documents there are; None for one per value.
        weight: of the answers; None if none was fixed.
        responses: that make up an answer, each judged for itself.
        allocation: how the sampler's counts depend on scores.
        fixed_repeats: responses every document got judged whatever its scores were.
        bounds: the smallest and the largest possible score; None for the judges' scale.
    """
    judges = next((value.readings.judges for value in values if value.readings.judges), ("nobody",))
    number = {judge: i for i, judge in enumerate(judges)}
    calls = [
        Call(
            item,
            reading.epoch,
            number[reading.judge],
            math.nan if reading.score is None else reading.score,
            math.nan if weight is None else weight(item, reading.epoch // responses),
        )
        for item, value in zip(range(len(values)) if items is None else items, values, strict=True)
        for reading in value.readings
    ]
    scale = next((value.readings.scale for value in values if value.readings.scale is not None), None)
    return PanelRows(
        calls if weight is None else share_weights(calls, epochs=responses),
        judges,
        n_items=len(values) if n_items is None else n_items,
        weighs_judges=all(value.readings.weighs_judges for value in values),
        allocation=allocation,
        fixed_repeats=fixed_repeats,
        bounds=scale if bounds is None else bounds,
    )


def known(value: float) -> float | str:
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
