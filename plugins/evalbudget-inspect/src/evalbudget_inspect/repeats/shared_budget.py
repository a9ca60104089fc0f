"""``--share``: one total for all runs of a command, and what a run of each task gets of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai import Task

from evalbudget import Budget, Design
from evalbudget.errors import BudgetError, InvalidInputError
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
from evalbudget_inspect.repeats.purchase import least_of


def shares(
    config: Config, specs: Sequence[str], models: Sequence[str], parsed: Mapping[str, Any]
) -> dict[str, int]:
    """Scores for each run of every task, by its spec: in proportion to items, so that all repeat them alike.

    Args:
        config: what the user asked for; its budget is the total.
        specs: of the tasks; they are loaded to count their items.
        models: that every task runs with.
        parsed: what the host makes of the other arguments.

    Raises:
        BudgetError: the budget is no total, or too small for one of the runs.
        InvalidInputError: a task cannot be loaded, or has no items.
    """
    total = _total(config.budget)
    if parsed.get("run_config"):
        raise InvalidInputError(
            "--share cannot tell the runs of a --run-config; name task and models by flags"
        )
    tasks = [load_alone(spec, _arguments(parsed), models[0]) for spec in specs]
    items = [_items(task, parsed) for task in tasks]
    runs = len(models) * len(tasks)
    parts = [total * n // (len(models) * sum(items)) for n in items]
    for first in range((total - len(models) * sum(parts)) // len(models)):
        parts[first] += 1
    for task, n, part in zip(tasks, items, parts, strict=True):
        least, why = _least(config, task, n, parsed)
        if part < least:
            enough = math.ceil(least * len(models) * sum(items) / n)
            raise BudgetError(
                f"--share leaves {part} of {total:,} scores to each run of {task.name!r} ({runs} runs, in "
                f"proportion to items), and it needs {least}: {why}. Raise --budget to {enough:,} or more, "
                "run fewer tasks or models, or evaluate fewer items with --limit"
            )
    return dict(zip(specs, parts, strict=True))


def _total(budget: str | int | None) -> int:
    try:
        return int(Budget.parse(budget or "").amount)
    except BudgetError:
        raise BudgetError(
            f"--share splits a total over runs, and --budget {budget or 'is missing'} is none; write a "
            "number of scores (2000), or drop --share"
        ) from None


def _arguments(parsed: Mapping[str, Any]) -> dict[str, Any]:
    return parse_cli_config(parsed.get("t") or (), parsed.get("task_config"))


def _items(task: Task, parsed: Mapping[str, Any]) -> int:
    for number, sample in enumerate(task.dataset):
        if sample.id is None:  # as inspect would number them
            sample.id = number + 1
    wanted = resolve_task_sample_ids(task.name, parse_sample_id(parsed.get("sample_id")))
    try:
        items = len(slice_dataset(task.dataset, parse_samples_limit(parsed.get("limit")), wanted))
    except ValueError as ex:
        raise InvalidInputError(f"--limit {parsed['limit']} is no number of items: {ex}") from ex
    except PrerequisiteError as ex:
        raise InvalidInputError(str(ex.message)) from ex
    if not items:
        raise InvalidInputError(f"task {task.name!r} has no items here, so there is nothing to share")
    return items


def _least(config: Config, task: Task, items: int, parsed: Mapping[str, Any]) -> tuple[int, str]:
    epochs = parsed.get("epochs") or task.epochs or 1
    sampler = config.make_sampler(Design.of_items(items), warmup=epochs)
    least, why = least_of(config, sampler, items, epochs, 1 + (parsed.get("retry_on_error") or 0))
    calls = 1 if config.panel is None else config.panel.calls_per_generation
    if calls * items > least:
        return calls * items, f"{calls} judges score each of the {items} items"
    return least, why
