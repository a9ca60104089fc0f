"""``evalbudget convert``: recorded scores of any format as a folder that is mapped, not read."""

from __future__ import annotations

from pathlib import Path

import click

from evalbudget.cli._output import say
from evalbudget.cli._shared_options import TASK
from evalbudget.hooks._plugins import plugins

EXAMPLES = """\b
Examples:
  evalbudget convert parquet-files/ scores/
  evalbudget convert logs/ scores/ --task math
  evalbudget backtest races scores/
"""


@click.command(epilog=EXAMPLES)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@TASK
def convert(source: Path, folder: Path, task: str | None) -> None:
    """Write the scores of SOURCE to FOLDER, where they take no memory.

    Every command reads the folder. Its arrays are mapped: only what is looked at is in memory, and several
    processes share it.
    """
    recorded = plugins().open_scores(source, task)
    recorded.save_folder(folder)
    m, i, r, _ = recorded.scores.shape
    say(f"{folder}: {m:,} models x {i:,} items x {r:,} raters", err=True)
