"""Runs inspect with a race in the place of its task, and prints who is best."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from rich.console import Console

from evalbudget.cli import say, write_json
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.exit_codes import most_urgent
from evalbudget.races import Leaderboard, RaceConfig, RaceProgress
from evalbudget_inspect.host.entries import entry_of_arm, whole_paths
from evalbudget_inspect.host.private import host_cli as host
from evalbudget_inspect.host.rewrite import host_arguments, parse, refuse_range, tasks_among
from evalbudget_inspect.host.run_host import run_ours
from evalbudget_inspect.races.all_races import report_to, take_boards
from evalbudget_inspect.races.direction import refuse_other_direction
from evalbudget_inspect.races.dry_run import foreseen
from evalbudget_inspect.races.registry_entry import check_arms

ENTRY = "evalbudget_inspect/race"


def run_race(
    name: str,
    args: Sequence[str],
    ours: Mapping[str, Any],
    arms: Sequence[str] = (),
    json_path: str | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Run the host with our entry in the task's place, and print who is best.

    Args:
        name: of the host's command.
        args: what the user typed after it, without our flags.
        ours: our arguments, those that were given.
        arms: settings that race each other.
        json_path: where to write the leaderboard; its folder exists.
        dry_run: only say what would be bought.

    Returns:
        The exit code.
    """
    config = RaceConfig.of(**ours)  # refuse bad values before inspect starts
    given = whole_paths(ours)
    command = host.commands[name]
    check_arms(arms)
    parsed = parse(command, args)
    refuse_range(parsed)
    extra = _tasks_at_once(name, parsed, arms, takes_one=config.takes_one)
    if "--help" not in args and (dry_run or not config.in_scores):
        specs = tasks_among(parsed["tasks"])
        if len(specs) > 1 and not config.in_scores:
            raise BudgetError(
                f"--budget {config.budget} is one cap for all that the command asks, and it holds "
                f"{len(specs)} races, of one task each; run one after another, each with a budget of its own"
            )
        if dry_run:
            return _foresee(RaceConfig.of(**given), specs, arms, parsed)
    if name == "eval-set" and parsed.get("log_dir"):
        refuse_other_direction(str(parsed["log_dir"]), tasks_among(parsed["tasks"]), config)
    shows_itself = not (chose_display(args) or parsed.get("detach"))
    if shows_itself:  # the host's display counts what it planned, and in a race it plans nothing
        extra = [*extra, "--display", "none"]
    if arms:
        given["arms"] = list(arms)
    entries = [f"evalbudget_inspect/{entry_of_arm(k + 1)}" for k in range(len(arms))] or [ENTRY]
    take_boards()
    codes, boards = [], []
    for rewritten in host_arguments(command, [*args, *extra], given, entries):
        progress = RaceProgress(Console(stderr=True), monotonic)
        report_to(progress if shows_itself else None)
        try:
            codes.append(run_ours([name, *rewritten], quiet=json_path == "-"))
        finally:
            progress.close()
            report_to(None)
        boards += take_boards()
    if json_path != "-":
        for board in boards:
            say(f"\n{board.table()}Logs:    {parsed.get('log_dir') or 'logs'}")
    if json_path is not None and boards:
        write_boards(json_path, boards)
    # an arm that was lost stands on the board; the log of its task ends with an error
    return most_urgent([board.exit_code for board in boards] if len(boards) == len(codes) else codes)


def _foresee(config: RaceConfig, specs: Sequence[str], arms: Sequence[str], parsed: Mapping[str, Any]) -> int:
    models = models_among(parsed) or ["none"]
    found = [foreseen(config, spec, arms, models, parsed) for spec in specs]
    say("\n\n".join(map(str, found)) + "\n\nNo call was made.")
    return 0


def models_among(parsed: Mapping[str, Any]) -> list[str]:
    """Names that ``--model`` lists."""
    return [model.strip() for model in str(parsed.get("model") or "").split(",") if model.strip()]


def chose_display(args: Sequence[str]) -> bool:
    """Whether the user said how the host shall show its progress."""
    return "INSPECT_DISPLAY" in os.environ or any(arg.partition("=")[0] == "--display" for arg in args)


def _tasks_at_once(
    name: str, parsed: Mapping[str, Any], arms: Sequence[str], *, takes_one: bool
) -> list[str]:
    """``--max-tasks`` for all models and settings, unless the user gave it or inspect does it by itself."""
    models = models_among(parsed)
    for model in models:
        if models.count(model) > 1:
            raise InvalidInputError(f"--model lists {model} twice; every model races once")
    number = max(1, len(models)) * max(1, len(arms))
    if number < 2 and not (takes_one and (models or arms)):
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


def write_boards(path: str, boards: Sequence[Leaderboard]) -> None:
    """As JSON: one leaderboard, or a list of them; to standard output if the path is ``-``."""
    found = [board.as_json for board in boards]
    write_json(found[0] if len(found) == 1 else found, path)
