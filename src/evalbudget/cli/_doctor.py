"""``evalbudget doctor``: what can and cannot be concluded from scores that are there."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.text import Text

from evalbudget.cli._output import json_option, publish
from evalbudget.cli._shared_options import PATHS, level_option
from evalbudget.cli._sources import Reader, sources
from evalbudget.exit_codes import ExitCode, codes_for_help
from evalbudget.hooks._plugins import plugins

EXAMPLES = """\b
Examples:
  evalbudget doctor logs/
  evalbudget doctor before.eval after.eval
  evalbudget doctor scores.csv --rater judge-a
  evalbudget doctor logs/ --strict --json findings.json

""" + codes_for_help(no="a problem, with --strict", undecided="", failed="")


@click.command(epilog=EXAMPLES)
@PATHS
@sources
@click.option("--rater", metavar="NAME", help="Only this rater, or this one of a task's scorers.")
@level_option("Confidence level of intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the replays.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there is a problem.")
@json_option("findings as JSON; - writes them to stdout instead of the text")
def doctor(
    paths: tuple[Path, ...],
    read: Reader,
    rater: str | None,
    level: float,
    seed: int,
    strict: bool,
    json_path: Path | None,
) -> None:
    """Say what can and cannot be concluded from scores, and what would have been saved.

    PATH is a log, a file of recorded scores, or a folder of logs. Every finding has its numbers and a remedy;
    savings come from replays of these very scores. Nothing is bought.
    """
    from evalbudget.doctor import Kind, diagnose

    found = diagnose(
        read(paths, rater=rater).select(rater=rater),
        list(plugins().checks.values()),
        path=str(paths[0]) if len(paths) == 1 else f"{len(paths)} paths",
        level=level,
        seed=seed,
    )
    publish(found.to_json(), json_path, Text(str(found)))
    sys.exit(ExitCode.NO if strict and found.of(Kind.PROBLEM) else ExitCode.DONE)
