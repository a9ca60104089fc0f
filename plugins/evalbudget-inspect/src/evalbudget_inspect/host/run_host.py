"""Runs inspect's command line in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import click
from inspect_ai.util import display_type

from evalbudget.errors import InvalidInputError
from evalbudget.repeats import Summary
from evalbudget_inspect.host.interrupts import interrupts
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


Summarize = Callable[[], Summary | None]

_runs: dict[str, Summarize] | None = None


@contextmanager
def noting() -> Iterator[Mapping[str, Summarize]]:
    """Note the budgeted runs within, to be shown when it is over."""
    global _runs
    before, _runs = _runs, {}
    try:
        yield _runs
    finally:
        _runs = before


def show(noted: Mapping[str, Summarize]) -> None:
    """Print what the runs found; nothing where the user wants no display."""
    if not noted or display_type() == "none":
        return
    for summarize in noted.values():
        summary = summarize()
        if summary is not None:
            click.echo("\n".join(["", *summary.lines()]))


def note(task_id: str, summarize: Summarize) -> None:
    """Have a run summarised at the end; a task that is tried again counts with its last attempt."""
    if _runs is not None:
        _runs[task_id] = summarize
