"""``evalbudget inspect pairwise``: which answers does a judge prefer?"""

from __future__ import annotations

import sys
from typing import Any

import click

from evalbudget.cli import check_targets
from evalbudget.cli.flags import options_of
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN, sampler_options
from evalbudget.races.flags import FLAGS as RACES
from evalbudget_inspect.cli.shared import PASSED_ON, refuse_misplaced
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS
from evalbudget_pairwise.flags import FLAGS, JUDGE, OUTPUT

_EXAMPLES = """\b
Examples:
  evalbudget inspect pairwise a.eval b.eval --judge openai/gpt-5 --budget 400
  evalbudget inspect pairwise logs/ --judge openai/gpt-5 --until-proved --budget 2000
  evalbudget inspect pairwise a.eval b.eval --judge openai/gpt-5 --budget 400 \\
      --template question.txt --save preferences.csv

\b
The same command again goes on where it was stopped; what was bought is kept beside the first log.
Every other flag is inspect's own: see inspect eval --help.

""" + codes_for_help(done="there are verdicts to read", no="", undecided="no winner yet, with --until-proved")


@click.command(name="pairwise", context_settings=PASSED_ON, epilog=_EXAMPLES)
@options_of((JUDGE, *FLAGS, DRY_RUN))
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="LOG LOG... [INSPECT'S FLAGS]...")
def pairwise(args: tuple[str, ...], judge: str | None, dry_run: bool, **given: Any) -> None:
    """Have a judge compare the answers of finished logs, two at a time: win rates, ranks, a winner.

    Which pair is compared next, and whose answer is shown first, decides the sampler. The judge's position
    bias cancels, and is reported.
    """
    outputs = {flag.name: given.pop(flag.name) for flag in OUTPUT}
    check_targets((flag.option, outputs[flag.name]) for flag in OUTPUT)
    from evalbudget_inspect.host.private import init_dotenv
    from evalbudget_pairwise.inspect.run import run_pairwise

    init_dotenv()
    refuse_misplaced(
        args,
        (JUDGE, *FLAGS),
        (RACES, "is for races, in which answers are scored one by one; drop it"),
        (REPEATS, "is for repeats of one model's items, not for comparisons; drop it"),
    )
    options = sampler_options(given.pop("sampler_options"), FLAGS)
    typed = {name: value for name, value in given.items() if value is not None and value is not False}
    sys.exit(run_pairwise(args, judge, {**typed, **options}, outputs, dry_run=dry_run))
