"""Between which numbers a task's scores lie, where that is known without being told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalbudget_lm_eval.judges.rows import NAME

SHARE = (0.0, 1.0)

_OF_THE_HOST = frozenset({"acc", "acc_bytes", "acc_mutual_info", "acc_norm", "exact_match"})
"""Metrics that the host computes itself, and that are right or wrong."""

TWO_VALUED = _OF_THE_HOST | {
    "em",
    "math_verify",
    "pass@1",
    "pass_at_1",
    "prompt_level_loose_acc",
    "prompt_level_strict_acc",
}
"""Metrics that are right or wrong in the host's tasks, whose own code computes them."""


def known_range(task: Any, metric: str, seen: Iterable[float]) -> tuple[float, float] | None:
    """The smallest and the largest possible score of one document; None if nothing is known.

    Judges have their scale. What the host computes as right or wrong is 0 or 1. Where the task's own code
    computes a metric of such a name, its scores so far must not speak against it: they could be
    percentages, so that at least one is above 0 and none above 1. Scores of any other name are 0 or 1
    where both came and nothing else, as wherever logs are read.

    Args:
        task: the host's.
        metric: its name.
        seen: scores; one outside of the range refutes it.
    """
    scores = list(seen)
    from evalbudget_lm_eval.judges.filter import panel_of  # loads the host, which reading logs needs not

    panel = panel_of(task) if metric == NAME else None
    if panel is not None:
        found = (float(panel.grading.low), float(panel.grading.high))
    elif (
        _is_the_hosts(task, metric)
        or (metric in TWO_VALUED and any(score > 0.0 for score in scores))
        or set(scores) == set(SHARE)
    ):
        found = SHARE
    else:
        return None
    outside = [score for score in scores if not found[0] <= score <= found[1]]
    return None if outside else found


def _is_the_hosts(task: Any, metric: str) -> bool:
    if metric not in _OF_THE_HOST or getattr(task.config, "process_results", None) is not None:
        return False
    function = getattr(task, "_metric_fn_list", {}).get(metric)
    return getattr(function, "__module__", "") == "lm_eval.api.metrics"
