"""What the command prints when the host is done: a summary of every budgeted run it made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import click
from inspect_ai.util import display_type

from evalbudget.repeats import Summary

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
