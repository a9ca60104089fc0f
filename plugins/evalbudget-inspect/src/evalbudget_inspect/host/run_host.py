"""Runs inspect's command line in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout

from inspect_ai.util import display_type

from evalbudget.cli import say
from evalbudget.errors import EvalbudgetError
from evalbudget.exit_codes import ExitCode, most_urgent
from evalbudget.repeats import Summary
from evalbudget.secrets import shown
from evalbudget_inspect.host.endings import take_endings
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.logged_arguments import refuse_logged_keys
from evalbudget_inspect.host.private import host_main
from evalbudget_inspect.host.refusals import refused_as_ours, take_refusals, told_at_the_end


def run_host(arguments: list[str], until: str | None = None) -> int:
    """Run it, and print what budgeted runs found.

    Args:
        arguments: its command, and what follows.
        until: what the budgeted runs go on for, if for anything.

    Returns:
        The exit code: the host's own, or one of ours that says more.

    Raises:
        EvalbudgetError: evalbudget refused its input.
        KeyboardInterrupt: a signal ended it, of which the host's exit code says nothing.
    """
    before = sys.argv
    sys.argv = ["inspect", *arguments]  # inspect reads it again for --detach
    take_refusals()
    take_endings()
    interrupts.ended_a_run = False
    code = 0
    try:
        with noting() as noted, told_at_the_end(), refused_as_ours():
            host_main()
    except SystemExit as ex:
        code = ex.code if isinstance(ex.code, int) else int(ex.code is not None)
    except EvalbudgetError:
        raise
    except Exception:
        if not interrupts.ended_a_run:  # eval-retry looks for the log of a run that gave none
            raise
    finally:
        sys.argv = before
    refusals = take_refusals()
    if refusals:
        raise refusals[0]
    summaries = [summary for summarize in noted.values() if (summary := summarize()) is not None]
    show(summaries)
    if interrupts.ended_a_run:
        raise KeyboardInterrupt
    endings = take_endings()
    for ending in endings:
        if ending.told:
            say(f"evalbudget: {ending.told}", err=True)
    ended = [ending.exit_code for ending in endings]
    return most_urgent([code, *ended, *(summary.exit_code(until) for summary in summaries)])


def run_ours(arguments: list[str], until: str | None = None, *, quiet: bool = False) -> int:
    """As :func:`run_host`, with a task of ours in the arguments, which are shown.

    Args:
        arguments: its command, and what follows.
        until: what the budgeted runs go on for, if for anything.
        quiet: what the host prints goes to standard error; the command prints something else.

    Raises:
        EvalbudgetError: a key would be written into logs; and as of :func:`run_host`.
    """
    refuse_logged_keys(arguments)
    say(f"+ inspect {shown(arguments)}", err=True)
    with redirect_stdout(sys.stderr) if quiet else nullcontext():
        code = run_host(arguments, until)
    return ExitCode.FAILED if code == 1 else code  # of the host, which has one for everything


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


def show(summaries: list[Summary]) -> None:
    """Print what the runs found; nothing where the user wants no display."""
    if display_type() == "none":
        return
    for summary in summaries:
        say("\n".join(["", *summary.lines()]))


def note(task_id: str, summarize: Summarize) -> None:
    """Have a run summarised at the end; a task that is tried again counts with its last attempt."""
    if _runs is not None:
        _runs[task_id] = summarize
