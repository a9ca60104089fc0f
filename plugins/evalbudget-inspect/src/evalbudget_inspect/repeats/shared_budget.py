"""One budget for all runs of a command, and what a run of each task gets of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import Sample

from evalbudget import Budget
from evalbudget.budget import Unit
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget_inspect.host.chosen_samples import number_samples
from evalbudget_inspect.host.private import (
    PrerequisiteError,
    parse_cli_config,
    parse_sample_id,
    parse_samples_limit,
    resolve_task_sample_ids,
    slice_dataset,
)
from evalbudget_inspect.host.tasks import load_alone
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.least_budget import least_of

_DIGITS = 9
"""Of a dollar."""


def parts_of(
    config: Config, specs: Sequence[str], models: Sequence[str], parsed: Mapping[str, Any]
) -> Mapping[str, int | str] | None:
    """The budget of each run of every task, by its spec; None where it is given for each item.

    Tasks get parts in proportion to their items, so that all repeat them alike, and models equal ones.

    Args:
        config: what the user asked for; its budget is the total.
        specs: of the tasks; they are loaded to count their items.
        models: that every task runs with.
        parsed: what the host makes of the other arguments.

    Raises:
        BudgetError: a run would get nothing, or less than it needs.
        InvalidInputError: a task cannot be loaded, or has no items.
    """
    if config.budget is None:
        return None
    if not config.in_scores:
        return _parts_of_money(config, specs, models, parsed)
    try:
        total = int(Budget.parse(config.budget).amount)
    except BudgetError:  # of each item
        return None
    return _parts_of_scores(config, total, specs, models, parsed)


def _parts_of_scores(
    config: Config, total: int, specs: Sequence[str], models: Sequence[str], parsed: Mapping[str, Any]
) -> dict[str, int]:
    """In proportion to items; the remainder goes to the first tasks, one score for each model."""
    tasks, items = _loaded(specs, models, parsed)
    runs = len(models) * len(tasks)
    parts = [total * n // (len(models) * sum(items)) for n in items]
    for first in range((total - len(models) * sum(parts)) // len(models)):
        parts[first] += 1
    for task, n, part in zip(tasks, items, parts, strict=True):
        least, why = _least(config, task, n, part, parsed)
        if part < least:
            enough = math.ceil(least * len(models) * sum(items) / n)
            raise BudgetError(
                f"--budget {total:,} is one total for all {runs} runs, in proportion to items, and leaves "
                f"{part} scores to each run of {task.name!r}, which needs {least}: {why}. Raise it to "
                f"{enough:,} or more, run fewer tasks or models, or evaluate fewer items with --limit"
            )
    return dict(zip(specs, parts, strict=True))


def _parts_of_money(
    config: Config, specs: Sequence[str], models: Sequence[str], parsed: Mapping[str, Any]
) -> dict[str, str]:
    """In proportion to items, as people write money or tokens."""
    total = config.resolve_budget(1)
    tasks, items = _loaded(specs, models, parsed)
    parts = {}
    for spec, task, n in zip(specs, tasks, items, strict=True):
        part = total.amount * n / (len(models) * sum(items))
        digits = _DIGITS if total.unit is Unit.USD else 0
        rounded = math.floor(part * 10**digits) / 10**digits
        if rounded <= 0:
            raise BudgetError(
                f"--budget {config.budget} is one total for all runs, and leaves nothing to those of "
                f"{task.name!r}; raise it, or run fewer tasks or models"
            )
        parts[spec] = f"${rounded:.{_DIGITS}f}" if total.unit is Unit.USD else f"{rounded:.0f} tokens"
    return parts


def _loaded(
    specs: Sequence[str], models: Sequence[str], parsed: Mapping[str, Any]
) -> tuple[list[Task], list[int]]:
    """The tasks, and how many items each has."""
    tasks = [load_alone(spec, arguments_in(parsed), models[0]) for spec in specs]
    return tasks, [items_of(task, parsed) for task in tasks]


def arguments_in(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The task's own arguments."""
    return parse_cli_config(parsed.get("t") or (), parsed.get("task_config"))


def items_of(task: Task, parsed: Mapping[str, Any]) -> int:
    """How many items a task has under the host's limits; see :func:`samples_of`."""
    return len(samples_of(task, parsed))


def samples_of(task: Task, parsed: Mapping[str, Any]) -> list[Sample]:
    """What a task has under the host's limits.

    Raises:
        InvalidInputError: none, or a limit is none.
    """
    number_samples(task.dataset)
    wanted = resolve_task_sample_ids(task.name, parse_sample_id(parsed.get("sample_id")))
    try:
        items = list(slice_dataset(task.dataset, parse_samples_limit(parsed.get("limit")), wanted))
    except ValueError as ex:
        raise InvalidInputError(f"--limit {parsed['limit']} is no number of items: {ex}") from ex
    except PrerequisiteError as ex:
        raise InvalidInputError(str(ex.message)) from ex
    if not items:
        raise InvalidInputError(f"task {task.name!r} has no items here, so there is nothing to share")
    return items


def _least(config: Config, task: Task, items: int, part: int, parsed: Mapping[str, Any]) -> tuple[int, str]:
    epochs = parsed.get("epochs") or task.epochs or 1
    config = replace(config, budget=part).for_items(items)
    sampler = config.outline(items, warmup=epochs)
    least, why = least_of(config, sampler, items, epochs, 1 + (parsed.get("retry_on_error") or 0))
    calls = 0 if config.panel is None else config.panel.calls_per_generation
    if calls * items > least:
        return calls * items, f"{calls} judges score each of the {items} items"
    return least, why
