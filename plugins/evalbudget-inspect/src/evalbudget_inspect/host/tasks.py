"""The tasks that a spec names, as the host's command line takes specs."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from inspect_ai import Task, list_tasks

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.private import (
    PrerequisiteError,
    load_file_tasks,
    load_task_spec,
)
from evalbudget_inspect.host.private_registry import registry_lookup

_MODEL = "INSPECT_EVAL_MODEL"
"""By this variable the host is told a model where no run has one."""


def load_one(spec: str, args: dict[str, Any]) -> Task:
    """The task a spec names.

    Raises:
        InvalidInputError: it names none, or several.
    """
    specs = named_tasks(_locate(spec))
    if len(specs) > 1:
        raise InvalidInputError(f"{spec!r} holds {len(specs)} tasks; name one: {', '.join(specs)}")
    try:
        tasks = load_task_spec(specs[0], args)
    except LookupError as ex:
        if "registry" not in str(ex):
            raise  # the task's own
        raise InvalidInputError(f"{ex}; give file.py@name or a registered name") from ex
    if not tasks:
        raise InvalidInputError(f"no task found at {spec!r}; give file.py, file.py@name or a registered name")
    return tasks[0]


def arguments_of_task(spec: str) -> list[str] | None:
    """Names of the arguments that the task a spec names takes; None if it takes any, or nobody can tell.

    Raises:
        InvalidInputError: there is no such file, or no task in it.
    """
    specs = named_tasks(_locate(spec))
    file, at, name = specs[0].partition("@")
    if at:
        load_file_tasks(Path(file))
    made_by = registry_lookup("task", name or file)
    if len(specs) > 1 or not callable(made_by):
        return None  # loading it says what is wrong
    taken = inspect.signature(made_by).parameters
    return None if any(p.kind is p.VAR_KEYWORD for p in taken.values()) else list(taken)


def load_alone(spec: str, args: dict[str, Any], model: str) -> Task:
    """As :func:`load_one`, outside of any run: a task that asks for its model is given this one.

    Raises:
        InvalidInputError: it names none, or several.
    """
    before = os.environ.get(_MODEL)
    os.environ[_MODEL] = model
    try:
        return load_one(spec, args)
    except PrerequisiteError as ex:
        raise InvalidInputError(str(ex.message)) from ex
    finally:
        if before is None:
            del os.environ[_MODEL]
        else:
            os.environ[_MODEL] = before


def named_tasks(spec: str) -> list[str]:
    """Every task that a spec names, as file.py@name with the file's absolute path, or as it is registered.

    Raises:
        InvalidInputError: there is no such file, or no task in it.
    """
    file, at, name = spec.partition("@")
    path = Path(file)
    if not path.exists():
        if file.endswith(".py"):
            raise InvalidInputError(f"task file {file!r} does not exist (looked from {Path.cwd()})")
        return [spec]
    base = path.resolve()
    if at:
        return [f"{base}@{name}"]
    root = base.parent if base.is_file() else base
    infos = list_tasks(base.name, root_dir=root) if base.is_file() else list_tasks(root_dir=root)
    if not infos:
        raise InvalidInputError(f"no @task found in {spec!r}; give a file that defines one")
    return [f"{(root / info.file).resolve()}@{info.name}" for info in infos]


def _locate(spec: str) -> str:
    """The spec with its file found from here: a retry starts in the task's own folder, not in the user's."""
    file, at, name = spec.partition("@")
    if not file.endswith(".py") or Path(file).exists():
        return spec
    for folder in Path.cwd().parents:
        if (folder / file).exists():
            return f"{folder / file}{at}{name}"
    return spec
