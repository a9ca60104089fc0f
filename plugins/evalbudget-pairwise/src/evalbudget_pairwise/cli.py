"""``evalbudget pairwise``: which answers are preferred? And how what was found is shown, on hosts too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import RenderableType
from rich.text import Text

from evalbudget.cli import json_option, level_option, publish, write_text
from evalbudget.shown import shown

if TYPE_CHECKING:
    from evalbudget_pairwise import PairwisePurchase, PairwiseReading

EXAMPLES = """\b
Examples:
  evalbudget pairwise preferences.csv
  evalbudget pairwise preferences.json --level 0.99
  evalbudget pairwise preferences.csv --json - | jq -r .sentence

\b
The table has one judgement per row:
  item,first,second,winner,judge
  q1,model-a,model-b,model-a,gpt
  q1,model-b,model-a,tie,gpt

\b
first and second are the models in the order in which their answers were shown.
In the place of winner there may be value: 1 for the first, 0 for the second,
0.5 for a tie, or anything between. An empty one is a missing verdict: what is
proved holds whatever it had been. Where the order is not known, give a and b
in the place of first and second, or winner and loser; nothing is proved then.

\b
To have a judge compare answers under a budget:
  evalbudget inspect pairwise a.eval b.eval --judge MODEL --budget 400
"""


@click.command(epilog=EXAMPLES)
@click.argument("path", metavar="PREFERENCES", type=click.Path(path_type=Path))
@level_option("Of intervals, and of all that is proved.")
@click.option(
    "--in-order",
    is_flag=True,
    help="Items were drawn at random, and rows stand in the order in which they were judged: what is proved "
    "may then be read after every row. Otherwise read it once.",
)
@json_option("reading as JSON; - writes it to stdout instead of the tables")
def pairwise(path: Path, level: float, in_order: bool, json_path: Path | None) -> None:
    """Say what a judge's preferences between answers prove: win rates, strengths, position bias, a winner.

    PREFERENCES is a table (.csv, .tsv, .json or .jsonl) of which of two models' answers was better.
    """
    from evalbudget_pairwise import load_preferences, read_preferences  # numpy takes its time: not for --help

    found = read_preferences(load_preferences(path), level=level, in_order=in_order)
    publish(found.to_json(), json_path, *lines(found), found.table())


def lines(reading: PairwiseReading) -> list[Text]:
    """What is proved, and what to know before reading the tables; names come from anywhere."""
    return [Text(shown(text)) for text in (reading.sentence, *reading.notes)]


def show_pairwise(
    bought: PairwisePurchase, *, json_path: str | None = None, save_path: str | None = None
) -> int:
    """Print the reading and write the files that are asked for.

    Returns:
        The exit code: 0 with verdicts to read, 4 without one.
    """
    from evalbudget_pairwise import as_text

    reading = bought.reading
    parts: list[RenderableType] = [] if reading is None else [*lines(reading), reading.table()]
    parts += [Text(shown(line)) for line in bought.lines()]
    publish(bought.to_json(), json_path, *(() if save_path == "-" else parts))
    if save_path is not None:
        write_text(Path(save_path), as_text(bought.rows, Path(save_path).suffix), "--save")
    return bought.exit_code
