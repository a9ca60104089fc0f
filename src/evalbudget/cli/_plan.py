"""``evalbudget plan``: how many items, judge calls, repeats, evaluations or labels are needed."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from evalbudget.audits.flags import LABEL_PRICE
from evalbudget.budget import Unit, shown_amount
from evalbudget.cli._output import json_option, publish
from evalbudget.cli._shared_options import TASK, parse_prices
from evalbudget.cli.flags import option_of, options_of
from evalbudget.errors import EvalbudgetError, InvalidInferenceError, InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.races.flags import SCORE_RANGE
from evalbudget.replay._rows import defined
from evalbudget.tables import obeying_nothing

if TYPE_CHECKING:
    from evalbudget.judges._plan import Plan, Prices, Refusal
    from evalbudget.judges.estimates import JudgeScores, VarianceComponents
    from evalbudget.recorded._scores import RecordedScores
    from evalbudget.statistics._bounds import FloatArray

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
@click.option("--rater", metavar="NAME", help="Whose scores decide, for --race; the judge, for --audit.")
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
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of the interval."
)
@TASK
@click.option("--model", metavar="NAME", help="Which model's scores; needed if the pilot has several.")
@click.option(
    "--judges-used",
    type=click.IntRange(min=1),
    metavar="K",
    help="Also plan with K of the judges, drawn at random, who score everything.",
)
@click.option("--max-items", type=click.IntRange(min=2), metavar="N", help="How many items there are.")
@click.option(
    "--one-generation",
    is_flag=True,
    help="PILOT's repeats are scores of one answer per item, not of one answer each (--repeat judge).",
)
@click.option("--rescale", is_flag=True, help="Map every judge's observed range to 0..1 first.")
@json_option("plans as JSON; - writes them to stdout instead of the tables")
def plan(
    pilot: Path,
    half_width: float | None,
    item_half_width: float | None,
    race: bool,
    audit: bool,
    samplers: str,
    score_range: str | None,
    label_price: float,
    rater: str | None,
    usd: float | None,
    judge_prices: str,
    generation_price: float,
    level: float,
    task: str | None,
    model: str | None,
    judges_used: int | None,
    max_items: int | None,
    one_generation: bool,
    rescale: bool,
    json_path: Path | None,
) -> None:
    """Plan an evaluation from a pilot (a log, or a file of recorded scores).

    Estimates where the pilot's variance comes from, and says for each rotation (which judge scores what) how
    many items, generations and judge calls reach the half-width, or how narrow the interval gets for the
    money. The raters of PILOT are the judges. With --item-half-width, says how many repeats of one judge's
    scores make every single item known as well as that, for plain epochs and for samplers. With --race and
    --audit, how many evaluations, or labels, prove which model is best. Exit code 2 if the pilot cannot tell.
    """
    from evalbudget.judges._plan import Plan, Prices, plan_for_half_width, plan_for_money
    from evalbudget.judges.estimates import variance_components

    if [half_width, item_half_width, usd, race or None, audit or None].count(None) != 4:
        raise InvalidInputError(
            "give one of --half-width (how narrow), --item-half-width (each item), --usd (how much money), "
            "--race and --audit (which model is best)"
        )
    recorded = plugins().open_scores(pilot, task)
    if item_half_width is not None:
        from evalbudget.cli._plan_repeats import plan_items

        text, table = plan_items(pilot, recorded, model, item_half_width, level, samplers or "auto")
        publish(text, json_path, table)
        return
    if race or audit:
        for flag, given in {
            "--model": model,
            "--judge-prices": judge_prices,
            "--judges-used": judges_used,
            "--one-generation": one_generation,
            "--rescale": rescale,
        }.items():
            if given:
                raise InvalidInputError(f"{flag} is not for --race and --audit; drop it")
        from evalbudget.cli._plan_comparisons import plan_audits, plan_races

        names = [name.strip() for name in samplers.split(",") if name.strip()]
        try:
            if race:
                text, table = plan_races(recorded, names, max_items, rater, score_range)
            else:
                text, table = plan_audits(recorded, names, max_items, rater, score_range, label_price)
        except InvalidInferenceError as ex:
            raise InvalidInferenceError(f"{pilot}: {ex}") from ex
        publish(text, json_path, table)
        return
    try:
        scores = _scores(recorded, model, rescale)
        found = variance_components(
            scores, bootstrap=200, one_generation=one_generation or recorded.one_generation
        )
    except EvalbudgetError as ex:
        raise InvalidInferenceError(f"{pilot}: {ex}") from ex
    recorded_prices = None
    if not judge_prices and not generation_price:
        recorded_prices = _recorded_prices(recorded, model, found)
    if recorded_prices is None:
        priced = Prices(_prices(judge_prices, scores, found), generation_price)
    else:
        priced = Prices(recorded_prices, 0.0)
    if usd is not None:
        plans = plan_for_money(found, usd, priced, level=level, max_items=max_items, judges_used=judges_used)
    elif half_width is not None:
        plans = plan_for_half_width(
            found, half_width, priced, level=level, max_items=max_items, judges_used=judges_used
        )
    if not any(isinstance(p, Plan) for p in plans):
        reasons = "\n".join(f"  {p.strategy}: {p.reason}" for p in plans if not isinstance(p, Plan))
        raise InvalidInferenceError(f"{pilot} does not support a plan:\n{reasons}")
    deal = _deal(found, plans, priced)
    document = _as_json(found, plans, level) | {"judges_silent": list(scores.silent), "priced_as": deal}
    text = json.dumps(defined(document), indent=2, allow_nan=False, ensure_ascii=False)
    tables = [_components_table(found, level, scores.silent), _plans_table(plans, deal)]
    if recorded_prices is not None:
        _say_prices(tables[1], pilot, found, recorded_prices)
    publish(text, json_path, *tables)


def _recorded_prices(
    recorded: RecordedScores, model: str | None, found: VarianceComponents
) -> FloatArray | None:
    """What a score of each judge cost in the pilot, its answer included; None if it does not say."""
    import numpy as np

    one = recorded.select(model=model)
    if one.costs is None:
        return None
    costs = [one.costs[0, :, one.raters.index(judge)] for judge in found.judges]
    means = [float(np.nanmean(own)) if np.isfinite(own).any() else math.nan for own in costs]
    return np.array(means) if all(mean > 0.0 for mean in means) else None


def _say_prices(table: Table, pilot: Path, found: VarianceComponents, prices: FloatArray) -> None:
    """That prices are those of the pilot, below the plans."""
    told = ", ".join(
        f"{judge} {shown_amount(price, Unit.USD)}"
        for judge, price in zip(found.judges, prices.tolist(), strict=True)
    )
    said = f"What a score cost in {pilot}, its answer included: {told}. Others: --judge-prices"
    before = f"{table.caption}\n" if table.caption else ""
    table.caption = Text(obeying_nothing(before + said))


def _prices(text: str, scores: JudgeScores, found: VarianceComponents) -> FloatArray:
    """Prices of the judges that scored; those of the silent may be given and are not needed."""
    named = {part.rpartition("=")[0].strip() for part in text.split(",")}
    known = tuple(judge for judge in scores.judges if judge in found.judges or judge in named)
    prices = parse_prices(text, known)
    return prices[[known.index(judge) for judge in found.judges]]


def _deal(found: VarianceComponents, plans: tuple[Plan | Refusal, ...], prices: Prices) -> dict[str, float]:
    """What to give as prices of the judges so that the rotation ``priced`` deals the planned shares."""
    from evalbudget.judges._plan import Plan

    if not any(isinstance(p, Plan) and p.strategy == "priced" for p in plans):
        return {}
    relative = (prices.per_call + prices.per_generation) / found.judge_variance
    relative = relative / relative.min()
    return {j: float(f"{c:.3g}") for j, c in zip(found.judges, relative.tolist(), strict=True)}


def _scores(recorded: RecordedScores, model: str | None, rescaled: bool) -> JudgeScores:
    from evalbudget.judges.estimates import JudgeScores, require_one_scale
    from evalbudget.judges.estimates import rescale as rescale_scores

    if model is None and len(recorded.models) > 1:
        raise InvalidInputError(
            f"there are {len(recorded.models)} models ({', '.join(recorded.models[:5])}"
            f"{', ...' if len(recorded.models) > 5 else ''}); choose one with --model"
        )
    one = recorded.select(model=model)
    alone = len(one.raters) == 1
    if alone or not one.one_measure:
        who = " and ".join(map(repr, one.raters)) + (" is the only rater" if alone else " are metrics")
        raise InvalidInferenceError(
            f"{who}, and which judges were asked is not known: a plan needs the scores of two judges or "
            "more. Have several judge the log again (inspect score LOG --scorer "
            "evalbudget_inspect/cyclic_judge -S judges=a,b,c), or the task (lm-eval: CyclicJudgeFilter)"
        )
    scores = JudgeScores.from_table(one.scores[0], judges=one.raters)
    if rescaled:
        return rescale_scores(scores)
    try:
        require_one_scale(scores)
    except InvalidInferenceError as ex:
        raise InvalidInferenceError(f"{ex} (--rescale maps observed ranges to 0..1)") from ex
    return scores


def _as_json(found: VarianceComponents, plans: tuple[Plan | Refusal, ...], level: float) -> dict[str, object]:
    bounds = found.confidence_intervals(level)
    shares = found.shares()
    return {
        "plans": [asdict(p) for p in plans],
        "components": [
            {
                "component": c.name,
                "identified": c.identified,
                "variance": c.value,
                "lower": float(low),
                "upper": float(high),
                "share": shares[c.name],
            }
            for c, low, high in zip(found.components, bounds.low, bounds.high, strict=True)
        ],
        "design": found.design,
        "judges": list(found.judges),
        "items": found.n_items,
        "items_dropped": found.items_dropped,
    }


def _components_table(found: VarianceComponents, level: float, silent: tuple[str, ...]) -> Table:
    bounds, shares = found.confidence_intervals(level), found.shares()
    dropped = f", {found.items_dropped} items with missing scores dropped" if found.items_dropped else ""
    table = Table(
        title=f"pilot: {found.n_items} items, {found.n_judges} judges, {found.design}{dropped}",
        title_justify="left",
        box=None,
        caption=Text(f"no score by {', '.join(silent)}: planned without") if silent else None,
        caption_justify="left",
    )
    for column in ("source", "variance", f"{level:.0%} interval", "share"):
        table.add_column(column, justify="left" if column == "source" else "right")
    for c, low, high in zip(found.components, bounds.low, bounds.high, strict=True):
        note = " (negative: not told from 0)" if c.negative else ""
        table.add_row(c.name + note, f"{c.value:.4g}", f"{low:.3g} to {high:.3g}", f"{shares[c.name]:.0%}")
    return table


def _plans_table(plans: tuple[Plan | Refusal, ...], deal: dict[str, float]) -> Table:
    from evalbudget.judges._plan import Plan

    table = Table(box=None, caption_justify="left")
    for column in ("rotation", "items", "generations", "judges", "calls", "cost", "half-width"):
        table.add_column(column, justify="left" if column == "rotation" else "right")
    notes = []
    for p in plans:
        if isinstance(p, Plan):
            table.add_row(
                p.strategy,
                f"{p.items:,}",
                str(p.generations),
                str(p.judges),
                f"{p.calls:,}",
                f"{p.cost:,.4g}" if p.cost < 1e4 else f"{p.cost:,.0f}",
                f"{p.half_width:.4g}",
            )
        else:
            notes.append(f"{p.strategy}: {p.reason}")
        if isinstance(p, Plan) and p.strategy == "priced":
            asked = ", ".join(f"{j} {share:.0%}" for j, share in zip(deal, p.shares, strict=True))
            as_prices = ",".join(f"{judge}={price:g}" for judge, price in deal.items())
            notes.append(
                f"priced asks {asked}. Price and variance decide that; what deals it: "
                f"--rotation priced --judge-prices {as_prices}"
            )
    table.caption = (
        Text(obeying_nothing("\n".join(notes))) if notes else None
    )  # names of judges are no markup
    return table
