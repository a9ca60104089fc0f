"""Turns ``eval my_task.py --flags`` into ``eval evalbudget_inspect/budgeted -T evalbudget={...} --flags``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
import yaml  # type: ignore[import-untyped]

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.tasks import named_tasks

ENTRY = "evalbudget_inspect/budgeted"
NAME = "evalbudget"
"""Of the one argument that holds ours."""
AS_JSON = "as_json"


def host_arguments(
    command: click.Command,
    args: Sequence[str],
    ours: Mapping[str, Any],
    entries: Sequence[str] = (ENTRY,),
    budgets: Mapping[str, int | str] | None = None,
) -> list[list[str]]:
    """The host's arguments, one list per task: our entry takes the place of the task.

    Args:
        command: the host's click command; it alone knows which of the arguments are tasks.
        args: what the user typed after it, without our flags.
        ours: our arguments, of JSON's kinds.
        entries: what takes the place of each task.
        budgets: by task, where each has one of its own.

    Raises:
        InvalidInputError: no task was found.
    """
    if "--help" in args:
        return [list(args)]
    rest, specs = without_tasks(command, list(args))
    if parse(command, rest).get("no_score"):
        raise InvalidInputError("--no-score leaves no scores to budget; drop it")
    injected: list[str] = []
    tasks = tasks_among(specs)
    if len(tasks) > 1 and command.name == "eval-set":
        injected.append("--log-dir-allow-dirty")  # one eval-set per task, all into the same folder
    own = {spec: {} if budgets is None else {"budget": budgets[spec]} for spec in tasks}
    return [[*entries, "-T", argument({"task": t, **ours, **own[t]}), *injected, *rest] for t in tasks]


def tasks_among(specs: Sequence[str]) -> list[str]:
    """Every task that these specs name, once; without any, those of this folder."""
    return list(dict.fromkeys(spec for given in specs or ["."] for spec in named_tasks(given)))


def argument(ours: Mapping[str, Any]) -> str:
    """All of ours as one JSON argument; by itself the host reads ``2,000`` as a list and ``no`` as false."""
    text = json.dumps(ours, ensure_ascii=False)
    try:
        same = yaml.safe_load(text) == ours
    except yaml.YAMLError:
        same = False
    if not same:  # the host reads YAML, in which some JSON means something else
        text = json.dumps({AS_JSON: json.dumps(ours)})
    return f"{NAME}={text}"


def arguments_of(given: Any) -> dict[str, Any]:
    """What :func:`host_arguments` made one argument of.

    Raises:
        InvalidInputError: it is something else.
    """
    if isinstance(given, Mapping) and set(given) == {AS_JSON}:
        given = json.loads(given[AS_JSON])
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"-T {NAME}={given!r} is no mapping; give -T {NAME}.task=my_task.py -T {NAME}.budget=500"
        )
    return dict(given)


def without_tasks(command: click.Command, args: list[str]) -> tuple[list[str], list[str]]:
    """Arguments without the task specs, and the specs."""
    parsed = parse(command, args)
    specs = list(parsed["tasks"] or ())
    missing = list(specs)
    position = 0
    while missing and position < len(args):
        if args[position] in missing:
            shorter = args[:position] + args[position + 1 :]
            left, rest = _keep(missing, args[position]), parse(command, shorter)
            # a flag's value may read like a task: only what changes nothing else is one
            if rest == {**parsed, "tasks": tuple(_keep(parsed["tasks"], args[position]))}:
                args, missing, parsed = shorter, left, rest
                continue
        position += 1
    return args, specs


def _keep(tasks: Sequence[str], removed: str) -> list[str]:
    kept = list(tasks)
    kept.remove(removed)
    return kept


def parse(command: click.Command, args: Sequence[str]) -> dict[str, Any]:
    """What the host's command would make of these arguments and the environment."""
    context = command.make_context(
        command.name, list(args), resilient_parsing=True, auto_envvar_prefix="INSPECT_EVAL"
    )
    return {**context.params, "tasks": tuple(context.params.get("tasks") or ())}


def refuse_range(parsed: Mapping[str, Any]) -> None:
    """Refuse a part out of a dataset's middle: the host takes none where samples are added on the way.

    Raises:
        InvalidInputError: ``--limit`` is a range, or negative.
    """
    limit = str(parsed.get("limit") or "")
    if limit.startswith("-"):
        raise InvalidInputError(f"--limit {limit} is no number of samples; --limit N takes the first N")
    if "-" in limit.lstrip("-"):
        raise InvalidInputError(
            f"--limit {limit}: inspect takes no range where samples are added as a run goes on, as a sampler "
            "adds them; name the samples (--sample-id ID,ID,...), or --limit N for the first N"
        )
