"""``evalbudget compare``: are the differences between models real?"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evalbudget.cli._output import json_option, publish
from evalbudget.cli._shared_options import MODELS, PATHS, level_option
from evalbudget.cli._sources import Reader, sources
from evalbudget.cli.flags import options_of
from evalbudget.exit_codes import ExitCode
from evalbudget.flags import MISSING
from evalbudget.missing import as_missing
from evalbudget.races.flags import SCORE_RANGE
from evalbudget.scale import parse_range

EXAMPLES = """\b
Examples:
  evalbudget compare before.eval after.eval
  evalbudget compare before.eval after.eval --margin 0.01
  evalbudget compare logs/ --against openai/gpt-5
  evalbudget compare scores.csv --model a --model b --cluster document
  evalbudget compare a.eval b.eval --guaranteed
  evalbudget compare a.eval b.eval --json - | jq -r .sentence

\b
Models that stand in several logs go by the names of the files, too: gpt-5 (before).
"""


@click.command(epilog=EXAMPLES)
@PATHS
@click.option("--margin", type=float, metavar="M", help="Differences smaller than this do not matter.")
@click.option("--against", metavar="MODEL", help="Compare all models with this one; all pairs otherwise.")
@MODELS
@click.option(
    "--score", "scores", metavar="NAME", multiple=True, help="Only this metric or judge; may be repeated."
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="Field of an item that says which items belong together, such as document.",
)
@sources
@options_of((replace(SCORE_RANGE, help="Smallest and largest possible score."), MISSING))
@click.option(
    "--guaranteed",
    is_flag=True,
    help="Wider intervals that hold however scores are spread; the default is asymptotic.",
)
@level_option("Confidence of all verdicts together.")
@json_option("comparisons as JSON; - writes them to stdout instead of the table")
def compare(
    paths: tuple[Path, ...],
    read: Reader,
    cluster: str | None,
    score_range: str | None,
    missing: str | None,
    json_path: Path | None,
    **asked: Any,
) -> None:
    """Say which differences are real: between models, prompts, settings, versions.

    PATH is a log, a file of recorded scores, or a folder of logs, on the same items. Verdicts
    are "better", "equivalent" (the difference is smaller than --margin) or "undecided", with about how many
    items would decide it. They all hold at once. Answers that are missing count as the worst for what is
    said, unless --missing tells otherwise; a verdict that only they keep open ends with exit code 3. Of a
    finished race, its own verdict is said again.
    """
    from evalbudget.comparisons import compare as compared  # numpy takes its time: not for --help
    from evalbudget.report import report

    recorded = read(paths, category=cluster, may_be_empty=True)
    if recorded.race is not None:
        race = report(recorded)
        publish(race.to_json(), json_path, race.table())
        return
    found = compared(
        recorded,
        cluster=cluster,
        missing=as_missing(missing),
        score_range=None if score_range is None else parse_range(score_range),
        **asked,
    )
    publish(found.to_json(), json_path, found.sentence, found.table())
    if found.is_open_by_missing:
        sys.exit(ExitCode.UNDECIDED)
