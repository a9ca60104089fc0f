"""``evalbudget inspect eval ... --race`` and ``evalbudget inspect leaderboard``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from inspect_ai._cli.main import inspect as host
from inspect_ai.log import list_eval_logs, read_eval_log

from evalbudget.cli.output import check_target, write_text
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.racing import Leaderboard, RaceConfig
from evalbudget_inspect.entry import PREFIX
from evalbudget_inspect.racing.coordinator import take_boards
from evalbudget_inspect.racing.entry import check_arms, entry_of_arm
from evalbudget_inspect.racing.leaderboard import leaderboard
from evalbudget_inspect.rewrite import host_arguments, parse

ENTRY = "evalbudget_inspect/race"


def run_race(
    name: str,
    args: Sequence[str],
    ours: Mapping[str, Any],
    arms: Sequence[str],
    json_path: str | None,
    run_host: Callable[[list[str]], int],
) -> int:
    """Run the host with our entry in the task's place, and print who is best.

    Args:
        name: of the host's command.
        args: what the user typed after it, without our flags.
        ours: our arguments; None where not given.
        arms: settings that race each other.
        json_path: where to write the leaderboard.
        run_host: runs the host's command line and returns its exit code.

    Returns:
        The host's exit code.
    """
    if json_path is not None:
        check_target(Path(json_path))
    given = {k: v for k, v in ours.items() if v is not None}
    if "budget" not in given:
        raise BudgetError("a race needs a --budget; write a number of evaluations (5000), or per item (20x)")
    config = RaceConfig.of(**{"budget": None, **given})  # refuse bad values before inspect starts
    if config.history is not None:
        given["history"] = str(Path(config.history).resolve())
    command = host.commands[name]
    check_arms(arms)
    extra = _tasks_at_once(name, parse(command, args), arms)
    if arms:
        given["arms"] = json.dumps(list(arms))
    entries = [f"evalbudget_inspect/{entry_of_arm(k + 1)}" for k in range(len(arms))] or [ENTRY]
    take_boards()
    codes, boards = [], []
    for rewritten in host_arguments(command, [*args, *extra], given, PREFIX, entries):
        click.echo(f"+ inspect {shlex.join([name, *rewritten])}", err=True)
        codes.append(run_host([name, *rewritten]))
        boards += take_boards()
    for board in boards:
        click.echo(board.table())
    if json_path is not None and boards:
        _write(Path(json_path), boards)
    return max(codes)


def _tasks_at_once(name: str, parsed: Mapping[str, Any], arms: Sequence[str]) -> list[str]:
    """``--max-tasks`` for all models and settings, unless the user gave it or inspect does it by itself."""
    models = [model.strip() for model in str(parsed.get("model") or "").split(",") if model.strip()]
    for model in models:
        if models.count(model) > 1:
            raise InvalidInputError(f"--model lists {model} twice; every model races once")
    number = max(1, len(models)) * max(1, len(arms))
    if number < 2:
        what = f"only {models[0] if models else arms[0]}" if models or arms else "none"
        raise InvalidInputError(
            f"a race needs two models or settings, and there is {what}; name models with --model a,b,c, or "
            "settings with --arm prompt=short.txt --arm prompt=long.txt"
        )
    at_once = parsed.get("max_tasks")
    if at_once is None:
        return ["--max-tasks", str(number)] if arms or name == "eval-set" else []
    if at_once < number:
        raise InvalidInputError(
            f"all {number} tasks of a race run at the same time, and --max-tasks is {at_once}; drop it, or "
            f"give --max-tasks {number}"
        )
    return []


@click.command(name="leaderboard")
@click.argument("logs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--json", "json_path", metavar="PATH", help="Write the leaderboard there.")
def leaderboard_command(logs: tuple[Path, ...], json_path: str | None) -> None:
    """Print the leaderboard of a race from its logs.

    LOGS are .eval files or folders of them.
    """
    if json_path is not None:
        check_target(Path(json_path))
    read = [read_eval_log(log, header_only=True) for path in logs for log in list_eval_logs(str(path))]
    board = leaderboard(read)
    click.echo(board.table())
    if json_path is not None:
        _write(Path(json_path), [board])


def _write(path: Path, boards: Sequence[Leaderboard]) -> None:
    found = [board.as_json for board in boards]
    write_text(path, json.dumps(found[0] if len(found) == 1 else found, indent=2) + "\n")
