"""``inspect eval evalbudget_inspect/budgeted -T task=my.py -T sampler=... -T budget=...``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, list_tasks, task
from rich.text import Text

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.flags import names_of
from evalbudget_inspect.host.private import PrerequisiteError, load_task_spec
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.repeats.flags import FLAGS
from evalbudget_inspect.repeats.task import budgeted

PREFIX = "evalbudget."
"""With any ``-T evalbudget.x=``, only prefixed arguments are ours and all others are the task's own."""

_OURS = ("task", *names_of(FLAGS))


@task(name="budgeted")
def budgeted_entry(**args: Any) -> Task:
    """Any task under a budget.

    Args:
        args: ``task`` (file, file@name or registered name) and ``budget`` are needed; ``sampler``,
            ``repeat``, ``score``, ``seed``, ``score_range``, ``judges``, ``rotation``, ``judge_prices`` and
            ``judge_role`` as in :func:`~evalbudget_inspect.budgeted`; options of the sampler as
            ``evalbudget.objective`` and the like. Everything else goes to the inner task; where a name
            clashes, prefix ours: ``-T evalbudget.task=my.py -T evalbudget.budget=500 -T
            budget=the-tasks-own``.
    """
    try:
        ours, inner = split_arguments(args, _OURS)
        spec = take_spec(ours)
        return budgeted(load_one(spec, inner), budget=ours.pop("budget", None), **ours)
    except EvalbudgetError as ex:
        refused(ex)
        raise PrerequisiteError(Text(f"evalbudget: {ex}")) from ex


def take_spec(ours: dict[str, Any]) -> str:
    """Take the inner task's name out of our arguments.

    Raises:
        InvalidInputError: there is none.
    """
    spec = ours.pop("task", None)
    if isinstance(spec, list):  # the host splits values at commas, paths may hold one
        spec = ",".join(str(part) for part in spec)
    if not isinstance(spec, str) or not spec:
        raise InvalidInputError(
            "which task? Add -T task=my_task.py (or my_task.py@name, or a registered name)"
        )
    return spec


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


def split_arguments(args: dict[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our arguments, without prefix, and the inner task's.

    Args:
        args: all of them.
        names: what is ours without a prefix, unless the task itself is given with one.
    """
    prefixed = {k.removeprefix(PREFIX): v for k, v in args.items() if k.startswith(PREFIX)}
    others = {k: v for k, v in args.items() if not k.startswith(PREFIX)}
    if "task" in prefixed:
        return prefixed, others
    ours = {k: v for k, v in others.items() if k in names}
    return ours | prefixed, {k: v for k, v in others.items() if k not in names}
