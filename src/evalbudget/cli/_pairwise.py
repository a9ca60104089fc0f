"""``evalbudget pairwise``: which answers are preferred?"""

from __future__ import annotations

from pathlib import Path

import click

from evalbudget.cli._output import json_option, publish
from evalbudget.cli._pairwise_output import lines
from evalbudget.cli._shared_options import level_option

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
    from evalbudget.pairwise import load_preferences, read_preferences  # numpy takes its time: not for --help

    found = read_preferences(load_preferences(path), level=level, in_order=in_order)
    publish(found.to_json(), json_path, *lines(found), found.table())
