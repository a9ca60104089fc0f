"""How a budgeted run reads in the host's own windows: its headline, its columns, its label."""

from __future__ import annotations

from collections.abc import Mapping

from inspect_ai import Task
from inspect_ai.log import EvalSpec, HeadlineMetric
from inspect_ai.scorer import Scorer
from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesView, ViewerConfig

from evalbudget_inspect.host.dict_scores import PREFIX
from evalbudget_inspect.host.private import scorer_metrics

_LABEL = "budgeted: "
_HEADLINE = "estimate"


def lead_with_estimate(task: Task, scorer: Scorer, name: str, key: str | None) -> None:
    """Make the estimate the task's headline, unless the task has one.

    Args:
        task: adapted in place.
        scorer: whose scores drive the sampler.
        name: of the scorer in the log.
        key: which entry of its scores drives, if they are dicts.
    """
    if task.headline_metric is not None:
        return
    grouped = has_groups(scorer)
    task.headline_metric = HeadlineMetric(
        scorer=name,
        score=key
        if grouped
        else None,  # where metrics are of whole scores, entries have no rows of their own
        metric=f"{PREFIX}{_HEADLINE}" if grouped else _HEADLINE,
    )


def show_epochs(task: Task) -> None:
    """Have ``inspect view`` show the column of epochs, unless the task says what it is to show.

    The host hides it where a task has one epoch, and ours has one to start with.
    """
    viewer = task.viewer or ViewerConfig()
    if viewer.task_samples_view is not None:
        return
    first = [TaskSamplesColumn(id=column) for column in ("sampleStatus", "sampleId", "epoch")]
    view = TaskSamplesView(name="Repeats", columns=first)
    task.viewer = viewer.model_copy(update={"task_samples_view": view})


def label(spec: EvalSpec, items: int, most: str) -> None:
    """Add a tag that says what the host's "800 samples" are.

    Args:
        spec: of the run; changed in place, an earlier attempt's tag goes.
        items: of the benchmark.
        most: what the budget is, in samples or money.
    """
    others = [tag for tag in spec.tags or [] if not tag.startswith(_LABEL)]
    spec.tags = [*others, f"{_LABEL}{items:,} items, up to {most}"]


def has_groups(scorer: Scorer) -> bool:
    """Whether any of a scorer's own metrics is of an entry of a dict score."""
    metrics = scorer_metrics(scorer)
    return isinstance(metrics, Mapping) or any(isinstance(metric, Mapping) for metric in metrics)
