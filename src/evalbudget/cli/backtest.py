"""``evalbudget backtest``: what a sampler would have saved on recorded scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evalbudget.cli.output import check_target, write_text
from evalbudget.plugins import plugins

EXAMPLES = """\b
Examples:
  evalbudget backtest scores.npz
  evalbudget backtest scores.csv --sampler uniform,eb-bernstein --budget 10x,5000
  evalbudget backtest scores.npz --rater gpt-5 --seeds 50 --json result.json
  evalbudget backtest scores.npz --objective mean --json - | jq '.rows[].ratio'

\b
A .csv has the columns item and score and, optionally, model, rater and repeat.
"""


@click.command(epilog=EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--sampler",
    "samplers",
    metavar="NAME,...",
    multiple=True,
    default=("uniform,eb-bernstein",),
    help="Samplers to compare (see: evalbudget plugins).  [default: uniform,eb-bernstein]",
)
@click.option(
    "--budget",
    "budgets",
    metavar="N|Nx,...",
    multiple=True,
    default=("10x,20x,50x",),
    help="Readings per pool (5000) or per item (20x).  [default: 10x,20x,50x]",
)
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Replays per sampler and pool.",
)
@click.option("--model", metavar="NAME", help="Only this model; all of them otherwise.")
@click.option("--rater", metavar="NAME", help="Only this rater; all of them otherwise.")
@click.option(
    "--objective",
    metavar="NAME",
    default="worst-item",
    show_default=True,
    help="What to minimise: worst-item, mse or mean. The ratio to uniform is that of worst-item "
    "error, rmse or mean error.",
)
@click.option(
    "--min-repeats",
    metavar="N",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Drop items with fewer recorded repeats.",
)
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Readings asked before any is answered.",
)
@click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Processes; chosen otherwise.")
@click.option(
    "--json",
    "json_path",
    metavar="PATH",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write the result as JSON; - writes it to stdout instead of the table.",
)
def backtest(
    files: tuple[Path, ...],
    samplers: tuple[str, ...],
    budgets: tuple[str, ...],
    seeds: int,
    model: str | None,
    rater: str | None,
    objective: str,
    min_repeats: int,
    batch: int,
    workers: int | None,
    json_path: Path | None,
) -> None:
    """Replay recorded scores: which sampler gets how close with how many readings?

    Each model and rater of FILE is a pool of items of its own; results are means over pools and seeds.
    Readings are drawn from the recorded repeats, the same ones for every sampler.
    """
    from evalbudget.backtest import backtest as run  # numpy and rich tables take their time: not for --help

    to_stdout = json_path == Path("-")
    if json_path is not None and not to_stdout:
        check_target(json_path)
    names = [plugins().sampler(name) for name in _listed(samplers)]
    recordings = [plugins().open_scores(path) for path in files]
    with _progress() as report:
        result = run(
            recordings,
            samplers=names,
            budgets=_listed(budgets),
            seeds=seeds,
            objective=objective,
            model=model,
            rater=rater,
            min_repeats=min_repeats,
            batch=batch,
            workers=workers,
            progress=report,
        )
    if to_stdout:
        click.echo(result.to_json())
        return
    Console().print(result.table())
    if json_path is not None:
        write_text(json_path, result.to_json() + "\n")


def _listed(values: tuple[str, ...]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while it is a terminal, and nothing in logs and pipes."""
    with Progress(
        TextColumn("replays"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("replays", total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield report
