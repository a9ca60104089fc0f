"""``evalbudget inspect eval ... --race`` and ``evalbudget inspect leaderboard``."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from time import monotonic
from typing import Any

import click
from inspect_ai.log import list_eval_logs, read_eval_log
from rich.console import Console

from evalbudget.cli.output import check_target, write_text
from evalbudget.errors import InvalidInputError
from evalbudget.races.config import RaceConfig
from evalbudget.races.leaderboard import Leaderboard
from evalbudget.races.progress import RaceProgress
from evalbudget_inspect.host.private import host_cli as host
from evalbudget_inspect.host.rewrite import host_arguments, parse
from evalbudget_inspect.races.coordinator import report_to, take_boards
from evalbudget_inspect.races.entry import check_arms, entry_of_arm
from evalbudget_inspect.races.leaderboard import leaderboard
from evalbudget_inspect.repeats.entry import PREFIX

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
    config = RaceConfig.of(**given)  # refuse bad values before inspect starts
    if config.history is not None:
        given["history"] = str(Path(config.history).resolve())
    command = host.commands[name]
    check_arms(arms)
    parsed = parse(command, args)
    extra = _tasks_at_once(name, parsed, arms)
    shows_itself = not (_chose_display(args) or parsed.get("detach"))
    if shows_itself:  # the host's display counts what it planned, and in a race it plans nothing
        extra = [*extra, "--display", "none"]
    if arms:
        given["arms"] = json.dumps(list(arms))
    entries = [f"evalbudget_inspect/{entry_of_arm(k + 1)}" for k in range(len(arms))] or [ENTRY]
    take_boards()
    codes, boards = [], []
    for rewritten in host_arguments(command, [*args, *extra], given, PREFIX, entries):
        click.echo(f"+ inspect {shlex.join([name, *rewritten])}", err=True)
        progress = RaceProgress(Console(stderr=True), monotonic)
        report_to(progress if shows_itself else None)
        try:
            codes.append(run_host([name, *rewritten]))
        finally:
            progress.close()
            report_to(None)
        boards += take_boards()
    for board in boards:
        click.echo(f"\n{board.table()}Logs:    {parsed.get('log_dir') or 'logs'}")
    if json_path is not None and boards:
        _write(Path(json_path), boards)
    return max(codes)


def _chose_display(args: Sequence[str]) -> bool:
    return "INSPECT_DISPLAY" in os.environ or any(arg.partition("=")[0] == "--display" for arg in args)


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


_FLAGS = {
    "budget": "Evaluations of all models together: 5000, 20x for 20 per item, or 5% of models x items.",
    "until_proved": "Go on until the best is proved; --budget is then a cap, by default the whole grid.",
    "sampler": "Registered sampler of models; default race.",
    "arms": None,
    "batch": "Items a model is given at a time.",
    "delta": "Probability of a wrong answer; default 0.05.",
    "epsilon": "With --sampler lucb: models this close count as equivalent.",
    "history": "Earlier logs, recorded scores or factors of other models on these items.",
    "json_path": "Write the leaderboard there.",
    "score": "Scorer whose scores decide; default the first.",
    "score_range": "Smallest and largest possible score; default 0..1.",
    "sampler_seed": None,
    "sampler_options": None,
}
"""Flags of races, with what they mean where nothing else is asked for; None as in ``eval``."""

_EXAMPLES = """\b
Examples:
  evalbudget inspect race my_task.py --model openai/a,openai/b,openai/c --budget 5000
  evalbudget inspect race my_task.py --model openai/a,openai/b --until-proved
  evalbudget inspect race my_task.py --model m --budget 800 \\
      --arm prompt=short.txt --arm prompt=long.txt

Every other flag is inspect's own: see inspect eval --help.
"""


def race_verb(evaluate: click.Command) -> click.Command:
    """``evalbudget inspect race``: the same as ``eval --race``, with the flags of races only.

    Args:
        evaluate: our ``eval``.
    """
    params: list[click.Parameter] = []
    absent: dict[str, Any] = {}
    for param in evaluate.params:
        name = str(param.name)
        if isinstance(param, click.Option) and name in _FLAGS:
            shown = copy(param)
            shown.help = _FLAGS[name] or param.help
            params.append(shown)
        elif isinstance(param, click.Option):
            absent[name] = () if param.multiple else False if param.is_flag else None
        else:
            params.append(param)

    def callback(**given: Any) -> Any:
        assert evaluate.callback is not None
        return evaluate.callback(**{**absent, **given, "racing": True})

    return click.Command(
        name="race",
        callback=callback,
        params=params,
        help="Race models, or settings of a task, on its items: which is best, for part of all evaluations.",
        epilog=_EXAMPLES,
        context_settings=evaluate.context_settings,
    )


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
