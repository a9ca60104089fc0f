"""Runs inspect's command line in this process."""

from __future__ import annotations

import sys

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.print_summaries import noting, show
from evalbudget_inspect.host.private import PrerequisiteError, host_main
from evalbudget_inspect.host.refusals import take_refusals


def run_host(arguments: list[str]) -> int:
    """Run it, and print what budgeted runs found.

    Returns:
        The host's exit code.

    Raises:
        EvalbudgetError: evalbudget refused its input.
        KeyboardInterrupt: a signal ended it, of which the host's exit code says nothing.
    """
    before = sys.argv
    sys.argv = ["inspect", *arguments]  # inspect reads it again for --detach
    take_refusals()
    interrupts.ended_a_run = False
    code = 0
    try:
        with noting() as noted:
            host_main()
    except SystemExit as ex:
        code = ex.code if isinstance(ex.code, int) else int(ex.code is not None)
    except PrerequisiteError as ex:
        raise next(iter(take_refusals()), InvalidInputError(str(ex.message))) from None
    finally:
        sys.argv = before
    refusals = take_refusals()
    if refusals:
        raise refusals[0]
    show(noted)
    if interrupts.ended_a_run:
        raise KeyboardInterrupt
    return code
