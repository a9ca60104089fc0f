"""The one task that models are compared on, its documents, and what decides how they are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lm_eval.tasks import TaskManager

from evalbudget.errors import EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_lm_eval.host.private import get_sample_size

_SETTINGS = (
    "num_fewshot",
    "gen_kwargs",
    "system_instruction",
    "apply_chat_template",
    "fewshot_as_multiturn",
    "random_seed",
    "numpy_random_seed",
    "torch_random_seed",
    "fewshot_random_seed",
    "metadata",
)


def one_task(manager: TaskManager, spec: Any) -> tuple[str, Any]:
    """Name and object of the one task.

    Args:
        manager: the host's.
        spec: as its ``load`` takes it.

    Raises:
        InvalidInputError: it cannot be loaded, or is several.
        UnknownNameError: there is none of that name.
    """
    try:
        tasks = manager.load([spec])["tasks"]
    except EvalbudgetError:
        raise
    except Exception as ex:  # the host's: an unknown name, a data set that is not there
        if isinstance(spec, str) and spec not in manager.all_tasks:
            raise UnknownNameError("task", spec, manager.all_tasks) from ex
        raise InvalidInputError(f"task {spec!r} cannot be loaded: {type(ex).__name__}: {ex}") from ex
    if len(tasks) != 1:
        shown = ", ".join(list(tasks)[:5]) + (", ..." if len(tasks) > 5 else "")
        raise InvalidInputError(
            f"models are compared on one task, and {spec!r} is {len(tasks)}: {shown}; name one of them"
        )
    ((name, task),) = tasks.items()
    return str(name), task


def documents_of(name: str, task: Any, host: Mapping[str, Any]) -> tuple[int, ...]:
    """Ids of the documents that the host's ``samples`` and ``limit`` leave.

    Raises:
        InvalidInputError: ``samples`` has no entry for the task.
    """
    samples, limit = host.get("samples"), host.get("limit")
    if samples is not None:
        if name not in samples:
            raise InvalidInputError(
                f'--samples has no entry for task {name!r}; write {{"{name}": [0, 1, ...]}}'
            )
        return tuple(samples[name])
    size = len(task.eval_docs)
    limit = get_sample_size(task, limit)
    return tuple(range(size if limit is None else min(size, limit)))


def settings_of(host: Mapping[str, Any]) -> dict[str, Any]:
    """What decides what a model is asked: answers to other questions cannot be mixed."""
    given = {name: host[name] for name in _SETTINGS if host.get(name) not in (None, {}, False)}
    settings: dict[str, Any] = json.loads(json.dumps(given, default=str, sort_keys=True))
    return settings
