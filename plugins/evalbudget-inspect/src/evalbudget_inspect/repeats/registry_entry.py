"""``inspect eval evalbudget_inspect/budgeted -T task=my.py -T sampler=... -T budget=...``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task

from evalbudget.errors import InvalidInputError
from evalbudget.flags import names_of
from evalbudget_inspect.host.refusals import refusing
from evalbudget_inspect.host.rewrite import NAME, arguments_of
from evalbudget_inspect.host.tasks import load_one
from evalbudget_inspect.repeats.flags import FLAGS
from evalbudget_inspect.repeats.task import budgeted

PREFIX = f"{NAME}."
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
    with refusing():
        ours, inner = split_arguments(args, _OURS)
        spec = take_spec(ours)
        return budgeted(load_one(spec, inner), budget=ours.pop("budget", None), **ours)


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


def split_arguments(args: dict[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our arguments, without prefix, and the inner task's.

    Args:
        args: all of them.
        names: what is ours without a prefix, unless the task itself is given with one.

    Raises:
        InvalidInputError: ``evalbudget`` is no mapping of ours.
    """
    prefixed = {k.removeprefix(PREFIX): v for k, v in args.items() if k.startswith(PREFIX)}
    others = {k: v for k, v in args.items() if not k.startswith(PREFIX)}
    if NAME in others:
        prefixed |= arguments_of(others.pop(NAME))
    if "task" in prefixed:
        return prefixed, others
    ours = {k: v for k, v in others.items() if k in names}
    return ours | prefixed, {k: v for k, v in others.items() if k not in names}
