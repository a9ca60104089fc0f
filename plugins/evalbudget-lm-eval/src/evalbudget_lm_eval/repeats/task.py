"""A task that brings its budget along: ``class: !function evalbudget_lm_eval.BudgetedTask``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval.api.task import ConfigurableTask

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.repeats.budgeted import budget_next
from evalbudget_lm_eval.repeats.config import Config


class BudgetedTask(ConfigurableTask):  # type: ignore[misc]  # the host ships no types
    """The host's task from YAML, with a block that says its budget; runs under the stock ``lm-eval`` too.

    ::

        task: my_task
        class: !function evalbudget_lm_eval.BudgetedTask
        evalbudget: {budget: 2000}
        dataset_path: ...

    ``--budget`` and ``--sampler`` of ``evalbudget lm-eval run``, and ``with budgeted(...)``, come before the
    block.

    Args:
        config: the task's YAML. The block takes what ``budgeted`` takes.

    Raises:
        EvalbudgetError: the block is missing or no good.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **host: Any) -> None:
        own = dict(config or {})
        own.pop("class", None)
        self.evalbudget = Config.of_block(own.pop("evalbudget", None), f"task {own.get('task')!r}")
        super().__init__(config=own, **host)
        budget_next(config_of_blocks)


def config_of_blocks(tasks: Mapping[str, Any]) -> Config | None:
    """The budget that the tasks bring along; None if they have none.

    Raises:
        InvalidInputError: they differ in it, or only some have one.
    """
    configs = {name: getattr(task, "evalbudget", None) for name, task in tasks.items()}
    given = {name: config for name, config in configs.items() if isinstance(config, Config)}
    if not given:
        return None
    first = next(iter(given.values()))
    for name, config in configs.items():
        if config != first:
            raise InvalidInputError(
                f"tasks {next(iter(given))!r} and {name!r} are run together with different evalbudget "
                "blocks, or one of them has none; give them the same block (the budget is shared), "
                "run them one by one, or give --sampler and --budget to evalbudget lm-eval run"
            )
    return first
