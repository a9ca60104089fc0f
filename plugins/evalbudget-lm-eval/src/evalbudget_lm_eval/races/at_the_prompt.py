"""Races and gates from the command line: dry runs are told, and Ctrl-C says how to go on."""

from __future__ import annotations

from typing import Protocol

import click
from lm_eval.tasks import TaskManager

from evalbudget_lm_eval.races.api import Order, run_order
from evalbudget_lm_eval.races.output import RaceResult
from evalbudget_lm_eval.races.run import Progress
from evalbudget_lm_eval.repeats.forecast import Foreseen


class Shown(Progress, Protocol):
    """Progress that is shown somewhere."""

    so_far: str

    def close(self) -> None:
        """Take it away."""


def run_at_the_prompt(order: Order, manager: TaskManager, progress: Shown) -> RaceResult | int:
    """Run it.

    Returns:
        What came out; the exit code, where nothing did.
    """
    try:
        return run_order(order, manager, progress)
    except Foreseen as ex:
        click.echo(f"{ex.forecast}\n\nNo call was made.")
        return 0
    except KeyboardInterrupt:
        progress.close()
        click.echo(f"interrupted{progress.so_far}; the same command goes on where it stopped", err=True)
        return 130
    finally:
        progress.close()
