"""Tasks that models are compared on, their documents, and what decides how they are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval.tasks import TaskManager

from evalbudget.errors import EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.settings import TASK
from evalbudget_lm_eval.host.task_requests import most_documents

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
    tasks = load(manager, spec)["tasks"]
    if len(tasks) != 1:
        shown = ", ".join(list(tasks)[:5]) + (", ..." if len(tasks) > 5 else "")
        raise InvalidInputError(
            f"one task is needed here, and {spec!r} is {len(tasks)}: {shown}; name one of them"
        )
    ((name, task),) = tasks.items()
    return str(name), task


def load(manager: TaskManager, spec: Any) -> Mapping[str, Mapping[str, Any]]:
    """Tasks and groups of the host, by name.

    Args:
        manager: the host's.
        spec: as its ``load`` takes it.

    Raises:
        InvalidInputError: it cannot be loaded.
        UnknownNameError: there is none of that name.
    """
    try:
        return dict(manager.load([spec]))
    except EvalbudgetError:
        raise
    except Exception as ex:  # the host's: an unknown name, a data set that is not there
        if isinstance(spec, str) and spec not in manager.all_tasks:
            raise UnknownNameError("task", spec, manager.all_tasks) from ex
        raise InvalidInputError(f"task {spec!r} cannot be loaded: {type(ex).__name__}: {ex}") from ex


def own_tasks(
    manager: TaskManager, arms: Sequence[Arm], name: str, task: Any, documents: Sequence[int]
) -> dict[str, tuple[str, Any, Any]]:
    """Name, specification and object of each arm's task, where its setting names one of its own.

    Args:
        manager: the host's.
        arms: what is compared.
        name: of the task of all others.
        task: the host's object of that.
        documents: ids that are asked.

    Raises:
        InvalidInputError: it cannot be loaded, is several, or has other documents.
        UnknownNameError: there is none of that name.
    """
    found: dict[str, tuple[str, Any, Any]] = {}
    loaded: dict[str, tuple[str, Any]] = {name: (name, task)}
    for arm in arms:
        spec = arm.settings.get(TASK, name)
        if spec not in loaded:
            loaded[spec] = one_task(manager, spec)
            _check_same_documents(*loaded[spec], name, task, documents)
        if TASK in arm.settings:
            found[arm.name] = (loaded[spec][0], spec, loaded[spec][1])
    return found


def _check_same_documents(name: str, task: Any, first: str, of_first: Any, documents: Sequence[int]) -> None:
    ours, theirs = task.eval_docs, of_first.eval_docs
    if len(ours) != len(theirs):
        raise InvalidInputError(
            f"task {name!r} has {len(ours):,} documents and task {first!r} {len(theirs):,}; settings are "
            "compared on the same documents"
        )
    for doc_id in documents:
        mine, other = ours[doc_id], theirs[doc_id]
        if mine != other and task.doc_to_target(mine) != of_first.doc_to_target(other):
            raise InvalidInputError(
                f"document {doc_id} of task {name!r} is another one than that of task {first!r}: neither its "
                "fields nor its target are the same. Settings are compared on the same documents"
            )


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
    limit = most_documents(name, task, limit)
    return tuple(range(size if limit is None else min(size, limit)))


def settings_of(host: Mapping[str, Any]) -> dict[str, Any]:
    """What decides what a model is asked: answers to other questions cannot be mixed."""
    given = {name: host[name] for name in _SETTINGS if host.get(name) not in (None, {}, False)}
    settings: dict[str, Any] = json.loads(json.dumps(given, default=str, sort_keys=True))
    return settings
