"""``evalbudget inspect audit``: which answers should a human label, and what do the labels prove?"""

from __future__ import annotations

import sys
from typing import Any

import click

from evalbudget.audits.flags import FLAGS
from evalbudget.cli.flags import options_of
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN, LOWER_IS_BETTER, sampler_options
from evalbudget.races.flags import FLAGS as RACES
from evalbudget_inspect.cli.shared import PASSED_ON, refuse_misplaced
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS

_EXAMPLES = """\b
Examples:
  evalbudget inspect audit audit.sqlite my_task.py --model a,b --score-range 1..10
  evalbudget audit serve audit.sqlite
  evalbudget inspect audit audit.sqlite my_task.py --model a,b --score-range 1..10
  evalbudget inspect audit audit.sqlite my_task.py --model a,b \\
      --judge cheap_grader --labels-from careful_grader

Every other flag is inspect's own: see inspect eval --help.

""" + codes_for_help(done="a verdict", no="over without one", undecided="labels are wanted")


def _check_store(store: str) -> None:
    """Refuse what is typed in the store's place.

    Raises:
        InvalidInputError: a flag or a task stands there.
    """
    if store.startswith("-") or store.endswith(".py") or ".py@" in store:
        raise InvalidInputError(
            f"{store} stands where the store belongs: write evalbudget inspect audit STORE TASK ..., with a "
            "file like audit.sqlite as STORE"
        )


@click.command(name="audit", context_settings=PASSED_ON, epilog=_EXAMPLES)
@options_of((*FLAGS, DRY_RUN))
@click.argument("store", metavar="STORE")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[TASK] [INSPECT'S FLAGS]...")
def audit(store: str, args: tuple[str, ...], dry_run: bool, **given: Any) -> None:
    """Compare models by a judge, and have humans check it by labelling a few answers.

    STORE, a .sqlite file or postgresql://user@host/database#name, keeps answers and labels; evalbudget audit
    serve STORE opens the page to label on.
    When the labels are in, the same command goes on.
    """
    _check_store(store)
    from evalbudget.store import Address
    from evalbudget_inspect.audits.command import run_audit
    from evalbudget_inspect.host.private import init_dotenv

    Address.parse(store).check_usable()
    init_dotenv()  # models and log folder may stand in .env: known to us as they will be to inspect
    refuse_misplaced(
        args,
        FLAGS,
        ((*REPEATS, *RACES), "has no meaning in an audit; drop it"),
    )
    given[LOWER_IS_BETTER.name] = given[LOWER_IS_BETTER.name] or None
    again = ["evalbudget", "inspect", "audit", store]
    for flag in FLAGS:
        values = given[flag.name] if flag.repeated else (given[flag.name],)
        for value in values:
            again += [] if value is None else [flag.option, *([] if flag.switch else [str(value)])]
    options = sampler_options(given.pop("sampler_options"), FLAGS)
    typed = {name: value for name, value in given.items() if value is not None}
    sys.exit(run_audit(args, store, {**typed, **options}, [*again, *args], dry_run=dry_run))
