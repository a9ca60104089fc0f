"""The host's groups of tasks: estimates made of their tasks' estimates, weighted as the host does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalbudget.repeats import BenchmarkMean, describe_group
from evalbudget_lm_eval.repeats.task_estimates import TaskTotals


def group_means(
    groups: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]], totals: Mapping[str, TaskTotals]
) -> dict[str, dict[str, BenchmarkMean]]:
    """Means of every group by the host's keys ``metric,filter``, what drove the sampler before the rest.

    As the host has it, a group is made of all tasks below it that have the metric, weighted by their
    documents, or all alike with ``weight_by_size: false``. Metrics that it does not aggregate, and those of
    which a task has no estimate, are left to the host.

    Args:
        groups: the host's objects by name.
        results: the host's, by task and group.
        totals: by task.
    """
    found: dict[str, dict[str, BenchmarkMean]] = {}
    for name, group in groups.items():
        leaves = [str(task.task_name) for task in group.get_all_tasks()]
        for aggregated in group.aggregate_metric_list or ():
            prefix = f"{aggregated.metric},"
            for key in [key for key in results.get(name, ()) if key.startswith(prefix)]:
                having = [task for task in leaves if key in results.get(task, ())]
                if not having or not all(task in totals and key in totals[task].means for task in having):
                    continue
                drove = all(totals[task].score == key for task in having)
                alike = dict.fromkeys(having, 1.0)
                by_size = aggregated.weight_by_size
                mean = describe_group(
                    {task: totals[task].means[key] for task in having},
                    {task: _size(totals[task], results[task]) for task in having} if by_size else alike,
                    whole={task: float(len(totals[task].documents)) for task in having} if by_size else alike,
                )
                before = found.get(name, {})
                found[name] = {key: mean, **before} if drove else {**before, key: mean}
    return found


def _size(totals: TaskTotals, results: Mapping[str, Any]) -> float:
    """Documents that a task counts for: all of them where a sample is for all, else those that were read."""
    return float(len(totals.documents) if totals.drawn else results["sample_len"])
