"""Which judge scores what, for how much: a panel's plan from a pilot, as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.text import Text

from evalbudget._fields import percent
from evalbudget.budget import Unit, shown_amount
from evalbudget.errors import EvalbudgetError, InvalidInferenceError, InvalidInputError
from evalbudget.judges._plan import Plan, Prices, Refusal, plan_rotations
from evalbudget.judges.estimates import (
    JudgeScores,
    VarianceComponents,
    judge_corrected,
    require_one_scale,
    variance_components,
)
from evalbudget.judges.schedules._panel import per_judge
from evalbudget.plans._clusters import cluster_entries, clusters_of, say_clusters
from evalbudget.plans._one_scorer import plan_one_scorer
from evalbudget.plans._result import Plans, say_below, table_of
from evalbudget.recorded._rescale import rescale_raters
from evalbudget.recorded._scores import RecordedScores
from evalbudget.shown import shown
from evalbudget.statistics._bounds import FloatArray
from evalbudget.tables import PrintableTable


def plan_panel(
    recorded: RecordedScores,
    *,
    half_width: float | None,
    usd: float | None,
    judge_prices: Mapping[str, float],
    generation_price: float,
    level: float,
    model: str | None,
    judges_used: int | None,
    max_items: int | None,
    one_generation: bool,
    rescale: bool,
    source: str,
) -> Plans:
    """Each rotation's items and calls for a half-width, or its half-width for the money.

    Raises:
        InvalidInputError: a price or an amount that is none.
        InvalidInferenceError: the pilot does not support a plan.
        UnknownNameError: no such model or judge.
    """
    if half_width is not None or usd is not None:
        alone = _only_scorer(recorded, model)
        if alone is not None:
            return plan_one_scorer(
                alone,
                half_width=half_width,
                usd=usd,
                price=_price_of_one(alone, judge_prices, generation_price),
                level=level,
                max_items=max_items,
                source=source,
            )
    try:
        scores = _scores(recorded, model, rescale)
        found = variance_components(
            scores, bootstrap=200, one_generation=one_generation or recorded.one_generation
        )
    except EvalbudgetError as ex:
        raise InvalidInferenceError(f"{source}: {ex}") from ex
    clusters = clusters_of(recorded, judge_corrected(scores).item_means, source)
    recorded_prices = None
    if not judge_prices and not generation_price:
        recorded_prices = _recorded_prices(recorded, model, found)
    if recorded_prices is None:
        priced = Prices(_prices(judge_prices, scores, found), generation_price)
    else:
        priced = Prices(recorded_prices, 0.0)
    plans = plan_rotations(
        found,
        priced,
        half_width=half_width,
        money=usd,
        level=level,
        max_items=max_items,
        judges_used=judges_used,
        clusters=clusters,
    )
    if not any(isinstance(p, Plan) for p in plans):
        reasons = "\n".join(f"  {p.strategy}: {p.reason}" for p in plans if not isinstance(p, Plan))
        raise InvalidInferenceError(f"{source} does not support a plan:\n{reasons}")
    deal = _deal(found, plans, priced)
    document = _as_json(found, plans, level) | {"judges_silent": list(scores.silent), "priced_as": deal}
    document |= cluster_entries(recorded, clusters)
    tables = (_components_table(found, level, scores.silent), _plans_table(plans, deal))
    say_clusters(tables[1], recorded, clusters)
    if recorded_prices is not None:
        _say_prices(tables[1], source, found, recorded_prices)
    return Plans(document, tables)


def _recorded_prices(
    recorded: RecordedScores, model: str | None, found: VarianceComponents
) -> FloatArray | None:
    """What a score of each judge cost in the pilot, its answer included; None if it does not say."""
    one = recorded.select(model=model)
    if one.costs is None:
        return None
    costs = [one.costs[0, :, one.raters.index(judge)] for judge in found.judges]
    means = [float(np.nanmean(own)) if np.isfinite(own).any() else math.nan for own in costs]
    return np.array(means) if all(mean > 0.0 for mean in means) else None


def _say_prices(table: PrintableTable, source: str, found: VarianceComponents, prices: FloatArray) -> None:
    """That prices are those of the pilot, below the plans."""
    told = ", ".join(
        f"{judge} {shown_amount(price, Unit.USD)}"
        for judge, price in zip(found.judges, prices.tolist(), strict=True)
    )
    say_below(table, f"What a score cost in {source}, its answer included: {told}. Others: --judge-prices")


def _prices(given: Mapping[str, float], scores: JudgeScores, found: VarianceComponents) -> FloatArray:
    """Prices of the judges that scored; those of the silent may be given and are not needed."""
    known = tuple(judge for judge in scores.judges if judge in found.judges or judge in given)
    prices = per_judge("--judge-prices", given or None, known)
    return prices[[known.index(judge) for judge in found.judges]]


def _deal(found: VarianceComponents, plans: tuple[Plan | Refusal, ...], prices: Prices) -> dict[str, float]:
    """What to give as prices of the judges so that the rotation ``priced`` deals the planned shares."""
    if not any(isinstance(p, Plan) and p.strategy == "priced" for p in plans):
        return {}
    relative = (prices.per_call + prices.per_generation) / found.judge_variance
    relative = relative / relative.min()
    return {j: float(f"{c:.3g}") for j, c in zip(found.judges, relative.tolist(), strict=True)}


def _one_model(recorded: RecordedScores, model: str | None) -> RecordedScores:
    if model is None and len(recorded.models) > 1:
        raise InvalidInputError(
            f"there are {len(recorded.models)} models ({', '.join(recorded.models[:5])}"
            f"{', ...' if len(recorded.models) > 5 else ''}); choose one with --model"
        )
    return recorded.select(model=model)


def _only_scorer(recorded: RecordedScores, model: str | None) -> RecordedScores | None:
    """The scores of one model, where one scorer gave them all."""
    one = _one_model(recorded, model)
    return one if len(one.raters) == 1 else None


def _price_of_one(
    recorded: RecordedScores, judge_prices: Mapping[str, float], generation_price: float
) -> float:
    """Of one score with its answer: as given, or else as the pilot says, or else 1."""
    if not judge_prices and not generation_price and recorded.costs is not None:
        paid = recorded.costs[np.isfinite(recorded.costs)]
        if paid.size and paid.mean() > 0.0:
            return float(paid.mean())
    return float(per_judge("--judge-prices", judge_prices or None, recorded.raters)[0]) + generation_price


def _scores(recorded: RecordedScores, model: str | None, rescaled: bool) -> JudgeScores:
    one = _one_model(recorded, model)
    if not one.one_measure:
        raise InvalidInferenceError(
            f"{' and '.join(map(repr, one.raters))} are metrics; choose one with --rater"
        )
    if rescaled:
        one = rescale_raters(one)
    scores = JudgeScores.from_table(one.scores[0], judges=one.raters)
    if rescaled:
        return scores
    try:
        require_one_scale(scores)
    except InvalidInferenceError as ex:
        raise InvalidInferenceError(f"{ex} (--rescale maps observed ranges to 0..1)") from ex
    return scores


def _as_json(found: VarianceComponents, plans: tuple[Plan | Refusal, ...], level: float) -> dict[str, Any]:
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


def _components_table(found: VarianceComponents, level: float, silent: tuple[str, ...]) -> PrintableTable:
    bounds, shares = found.confidence_intervals(level), found.shares()
    dropped = f", {found.items_dropped} items with missing scores dropped" if found.items_dropped else ""
    table = PrintableTable(
        title=f"pilot: {found.n_items} items, {found.n_judges} judges, {found.design}{dropped}",
        title_justify="left",
        box=None,
        caption=Text(f"no score by {', '.join(silent)}: planned without") if silent else None,
        caption_justify="left",
    )
    for column in ("source", "variance", f"{percent(level)} interval", "share"):
        table.add_column(column, justify="left" if column == "source" else "right")
    for c, low, high in zip(found.components, bounds.low, bounds.high, strict=True):
        note = " (negative: not told from 0)" if c.negative else ""
        table.add_row(c.name + note, f"{c.value:.4g}", f"{low:.3g} to {high:.3g}", f"{shares[c.name]:.0%}")
    return table


def _plans_table(plans: tuple[Plan | Refusal, ...], deal: dict[str, float]) -> PrintableTable:
    notes = []
    for p in plans:
        if isinstance(p, Refusal):
            notes.append(f"{p.strategy}: {p.reason}")
        elif p.strategy == "priced":
            asked = ", ".join(f"{j} {share:.0%}" for j, share in zip(deal, p.shares, strict=True))
            as_prices = ",".join(f"{judge}={price:g}" for judge, price in deal.items())
            notes.append(
                f"priced asks {asked}. Price and variance decide that; what deals it: "
                f"--rotation priced --judge-prices {as_prices}"
            )
    return table_of([p for p in plans if isinstance(p, Plan)], "\n".join(map(shown, notes)))
