"""Races and gates from the command line: dry runs are told, and Ctrl-C says how to go on."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout

from lm_eval.tasks import TaskManager

from evalbudget.cli import say
from evalbudget.exit_codes import ExitCode
from evalbudget.races import RaceProgress
from evalbudget_lm_eval.races.api import Order, run_order
from evalbudget_lm_eval.races.output import RaceResult
from evalbudget_lm_eval.repeats.forecast import Foreseen


def run_at_the_prompt(
    order: Order, manager: TaskManager, progress: RaceProgress, *, quiet: bool = False
) -> RaceResult | int:
    """Run it.

    Args:
        order: what to run.
        manager: the host's.
        progress: is told how it goes.
        quiet: what the host prints goes to standard error; the command prints something else.

    Returns:
        What came out; the exit code, where nothing did.
    """
    try:
        with redirect_stdout(sys.stderr) if quiet else nullcontext():
            return run_order(order, manager, progress)
    except Foreseen as ex:
        say(f"{ex.forecast}\n\nNo call was made.")
        return 0
    except KeyboardInterrupt:
        progress.close()
        say(f"interrupted{progress.so_far}; the same command goes on where it stopped", err=True)
        return ExitCode.INTERRUPTED
    finally:
        progress.close()
