"""``evalbudget plan``: how many items, judge calls, repeats, evaluations or labels are needed."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from evalbudget.audits.flags import LABEL_PRICE
from evalbudget.cli._output import json_option, publish
from evalbudget.cli._shared_options import level_option, typed_prices, whole
from evalbudget.cli._sources import Reader, sources, tell
from evalbudget.cli.flags import option_of, options_of
from evalbudget.races.flags import SCORE_RANGE

EXAMPLES = """\b
Examples:
  evalbudget plan pilot.npz --half-width 0.1
  evalbudget plan pilot.npz --usd 50 --judge-prices gpt=0.004,haiku=0.001 --generation-price 0.002
  evalbudget plan pilot.npz --item-half-width 0.5
  evalbudget plan logs/ --race --max-items 2000
  evalbudget plan labelled.npz --audit --score-range 1..5 --label-price 50
  evalbudget plan logs/ --half-width 0.02 --model my-model --max-items 500 --json plan.json

\b
Prices per call are in dollars; without them they are what scores cost in PILOT, where it says so (logs of
runs in money do); else every judge call costs 1, and --usd counts calls.
"""


@click.command(epilog=EXAMPLES)
@click.argument("pilot", type=click.Path(path_type=Path))
@click.option("--half-width", type=float, metavar="H", help="Half-width that the interval shall have.")
@click.option(
    "--item-half-width",
    type=float,
    metavar="H",
    help="Half-width that every single item's interval shall have, by repeats of one judge's scores.",
)
@click.option("--race", is_flag=True, help="Evaluations until the best of the pilot's models is proved.")
@click.option(
    "--audit",
    is_flag=True,
    help="Human labels until the best of the pilot's models is proved; PILOT has labels as its reference.",
)
@click.option(
    "--sampler",
    "samplers",
    default="",
    metavar="NAME,...",
    help="Samplers to plan with, for --item-half-width, --race and --audit.  [default: auto; race; "
    "audit-eprocess,human-only]",
)
@options_of((SCORE_RANGE,))
@option_of(LABEL_PRICE, LABEL_PRICE.option, default=20.0)
@click.option("--rater", metavar="NAME", help="Whose scores decide; all of them are a panel otherwise.")
@click.option("--usd", type=float, metavar="X", help="Money to spend, instead of --half-width.")
@click.option("--judge-prices", metavar="A=1,B=5,...", default="", help="Price of one call of each judge.")
@click.option(
    "--generation-price",
    type=float,
    default=0.0,
    show_default=True,
    metavar="P",
    help="Price of one answer of the model judged.",
)
@level_option("Confidence level of the interval.")
@sources
@click.option("--model", metavar="NAME", help="Which model's scores; needed if the pilot has several.")
@whole("--judges-used", "Also plan with K of the judges, drawn at random, who score everything.", metavar="K")
@whole("--max-items", "How many items there are.", least=2)
@click.option(
    "--one-generation",
    is_flag=True,
    help="PILOT's repeats are scores of one answer per item, not of one answer each (--repeat judge).",
)
@click.option("--rescale", is_flag=True, help="Map every judge's observed range to 0..1 first.")
@json_option("plans as JSON; - writes them to stdout instead of the tables")
def plan(
    pilot: Path,
    read: Reader,
    samplers: str,
    score_range: str | None,
    judge_prices: str,
    json_path: Path | None,
    **asked: Any,
) -> None:
    """Plan an evaluation from a pilot (a log, or a file of recorded scores).

    Estimates where the pilot's variance comes from, and says for each rotation (which judge scores what) how
    many items, generations and judge calls reach the half-width, or how narrow the interval gets for the
    money.

    The raters of PILOT are the judges; of a single one, says how many items and scores of each. With
    --item-half-width, says how many repeats of one judge's scores make every single item known as well as
    that, for plain epochs and for samplers. With --race and --audit, how many evaluations, or labels, prove
    which model is best. Exit code 2 if the pilot cannot tell.
    """
    from evalbudget.cli.backtest._shared import progress
    from evalbudget.plans import plan as planned
    from evalbudget.plans._plan import PURPOSES, check_question
    from evalbudget.scale import parse_range

    check_question(*(asked[purpose] for purpose in PURPOSES))  # before a large log is read
    recorded = read((pilot,), rater=asked["rater"])
    tell(recorded)
    replays = asked["race"] or asked["audit"] or asked["item_half_width"] is not None
    with progress() if replays else nullcontext() as report:
        found = planned(
            recorded,
            samplers=[name.strip() for name in samplers.split(",") if name.strip()],
            score_range=None if score_range is None else parse_range(score_range),
            judge_prices=typed_prices(judge_prices),
            source=f"{pilot}",
            progress=report,
            **asked,
        )
    publish(found.to_json(), json_path, *found.tables)
