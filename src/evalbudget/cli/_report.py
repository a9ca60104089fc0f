"""``evalbudget report``: what bought scores prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalbudget.cli._output import STDOUT, check_targets, json_option, publish, write_bytes, write_text
from evalbudget.cli._pages import check_folder, is_folder, write_pages
from evalbudget.cli._shared_options import MODELS, PATHS, level_option
from evalbudget.cli._sources import Reader, sources
from evalbudget.cli.flags import options_of
from evalbudget.errors import InvalidInputError
from evalbudget.flags import MISSING
from evalbudget.missing import as_missing

EXAMPLES = """\b
Examples:
  evalbudget report logs/
  evalbudget report scores.npz --against baseline --picture leaderboard.png
  evalbudget report logs/ --task gsm8k
  evalbudget report a.eval b.eval --html report.html
  evalbudget report logs/ --html report/
  evalbudget report scores.csv --model a --model b --level 0.9
  evalbudget report logs/ --json - | jq '.leaderboard.rows[].estimate'

\b
Several raters are a panel of judges; --rater picks one of them, or one of a task's scorers.
"""


@click.command(epilog=EXAMPLES)
@PATHS
@sources
@MODELS
@click.option("--rater", metavar="NAME", help="Only this rater; all of them are a panel otherwise.")
@click.option("--against", metavar="MODEL", help="Compare all models with this one; the leader otherwise.")
@level_option("Confidence level of the intervals.")
@options_of((MISSING,))
@click.option("--rescale", is_flag=True, help="Map the range that each rater used to 0..1 first.")
@json_option("report as JSON; - writes it to stdout instead of the tables")
@click.option(
    "--picture", metavar="PATH", type=click.Path(path_type=Path), help="Draw the report: .png or .svg."
)
@click.option(
    "--html",
    "html_path",
    metavar="PATH",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write one web page (report.html; - for standard output), or a folder with a page per model and "
    "judge (report/).",
)
def report(
    paths: tuple[Path, ...],
    read: Reader,
    missing: str | None,
    json_path: Path | None,
    picture: Path | None,
    html_path: Path | None,
    **asked: Any,
) -> None:
    """Say what recorded scores prove: a leaderboard with intervals, paired differences, judges.

    PATH is a log, a file of recorded scores, or a folder of logs. Readings that were bought
    because of earlier scores do not count for a mean, and the report says so; .npz and .csv files that do not
    say how scores were bought are taken to hold none of those. Answers that are missing count as the worst
    for what is said, unless --missing tells otherwise.
    """
    folder = html_path not in (None, STDOUT) and is_folder(html_path)
    check_targets([("--json", json_path), ("--picture", picture), ("--html", None if folder else html_path)])
    if folder and html_path is not None:
        check_folder(html_path, "--html")
    image = None if picture is None else _image(picture)
    from evalbudget.report import draw, page, site
    from evalbudget.report import report as assemble  # numpy takes its time: not for --help

    if image is not None:
        from evalbudget.report._axes import require_matplotlib

        require_matplotlib()
    found = assemble(read(paths, rater=asked["rater"]), missing=as_missing(missing), **asked)
    publish(found.to_json(), json_path, *(() if html_path == STDOUT else (found.table(),)))
    if picture is not None and image is not None:
        write_bytes(picture, draw(found, image), "--picture")
    if html_path is not None and folder:
        write_pages(html_path, site(found), "--html")
    elif html_path is not None:
        write_text(html_path, page(found), "--html")


def _image(path: Path) -> str:
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in ("png", "svg"):
        raise InvalidInputError(f"--picture {path} ends in neither .png nor .svg; rename it to one of them")
    return suffix
