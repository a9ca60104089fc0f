"""``evalbudget inspect race``: which model, or which setting, is best?"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evalbudget.audits.flags import FLAGS as AUDITS
from evalbudget.cli import check_target
from evalbudget.cli.flags import options_of
from evalbudget.comparisons.flags import FLAGS as GATES
from evalbudget.comparisons.flags import LEVEL, NOT_OF_A_RACE
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN, sampler_options
from evalbudget.races.flags import ARM, FLAGS
from evalbudget_inspect.cli.shared import PASSED_ON, refuse_misplaced
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS

_EXAMPLES = """\b
Examples:
  evalbudget inspect race my_task.py --model openai/a,openai/b,openai/c --budget 5000
  evalbudget inspect race my_task.py --model openai/a,openai/b --until-proved
  evalbudget inspect race my_task.py --model openai/a,openai/b --budget '$5' --prices prices.yaml
  evalbudget inspect race my_task.py --model m --budget 800 \\
      --arm prompt=short.txt --arm prompt=long.txt
  evalbudget inspect race my_task.py --model a,b --budget 5000 --eval-set --log-dir logs/race

Every other flag is inspect's own: see inspect eval --help.

""" + codes_for_help(no="", undecided="not known yet, with --until or --until-proved")

_SETTING = replace(
    ARM,
    help="A setting in the race: arguments of the task. Give it several times.",
    metavar="NAME=VALUE,...",
)


@click.command(name="race", context_settings=PASSED_ON, epilog=_EXAMPLES)
@options_of(_SETTING if flag is ARM else flag for flag in (*FLAGS, DRY_RUN))
@click.option(
    "--eval-set",
    is_flag=True,
    help="Run inspect's eval-set: the same command later goes on with the race in --log-dir.",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[TASK] [INSPECT'S FLAGS]...")
def race(
    args: tuple[str, ...],
    arms: tuple[str, ...],
    json_path: str | None,
    eval_set: bool,
    dry_run: bool,
    **given: Any,
) -> None:
    """Race models, or settings of a task, on its items: which is best, found with part of all evaluations."""
    if json_path is not None:
        check_target(Path(json_path))
    from evalbudget_inspect.host.private import init_dotenv
    from evalbudget_inspect.races.command import run_race

    init_dotenv()  # models and log folder may stand in .env: known to us as they will be to inspect
    refuse_misplaced(
        args,
        FLAGS,
        ((LEVEL,), NOT_OF_A_RACE),
        (GATES, "is for gates; use evalbudget inspect gate in the place of race"),
        (REPEATS, "is for repeats of one model's items, not for races; drop it"),
        (AUDITS, "is for audits; use evalbudget inspect audit STORE in the place of race"),
    )
    options = sampler_options(given.pop("sampler_options"), FLAGS)
    for switch in ("until_proved", "lower_is_better"):
        given[switch] = given[switch] or None
    typed = {name: value for name, value in given.items() if value is not None}
    name = "eval-set" if eval_set else "eval"
    sys.exit(run_race(name, args, {**typed, **options}, arms, json_path, dry_run=dry_run))
