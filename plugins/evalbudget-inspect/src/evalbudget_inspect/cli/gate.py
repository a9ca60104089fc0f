"""``evalbudget inspect gate``: did it get worse?"""

from __future__ import annotations

import sys
from typing import Any

import click

from evalbudget.cli import check_targets
from evalbudget.cli.flags import options_of
from evalbudget.comparisons.flags import CANDIDATE, FLAGS, NOT_HERE, OUTPUT
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN
from evalbudget.races.flags import FLAGS as RACES
from evalbudget_inspect.cli.shared import PASSED_ON, refuse_misplaced
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS

_EXAMPLES = """\b
Examples:
  evalbudget inspect gate my_task.py --model openai/new --baseline main.eval --margin 0.02
  evalbudget inspect gate my_task.py --model openai/new --baseline baseline.csv --margin 0.02 \\
      --budget '$5' --prices prices.yaml --markdown comment.md

Every other flag is inspect's own: see inspect eval --help.

""" + codes_for_help(done="not worse", no="worse")


@click.command(name="gate", context_settings=PASSED_ON, epilog=_EXAMPLES)
@options_of((*FLAGS, DRY_RUN))
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[TASK] [INSPECT'S FLAGS]...")
def gate(args: tuple[str, ...], dry_run: bool, **given: Any) -> None:
    """Evaluate a model on a task until it is decided whether it is worse than a baseline.

    The baseline's scores cost nothing; the candidate is asked its items in random order. A verdict is wrong
    with a probability of at most 5%, however often you look.
    """
    outputs = {flag.name: given.pop(flag.name) for flag in OUTPUT}
    check_targets((flag.option, outputs[flag.name]) for flag in OUTPUT)
    from evalbudget_inspect.host.private import init_dotenv
    from evalbudget_inspect.races.gate import run_gate

    init_dotenv()
    refuse_misplaced(
        args,
        FLAGS,
        ((CANDIDATE,), NOT_HERE),
        (RACES, "is for races of several models; a gate compares one with a baseline: drop it"),
        (REPEATS, "is for repeats of one model's items, not for gates; drop it"),
    )
    typed = {name: value for name, value in given.items() if value is not None and value is not False}
    sys.exit(run_gate(args, typed, outputs, dry_run=dry_run))
