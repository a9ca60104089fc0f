"""Items, models and judges as columns: what the core's estimates say of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from evalbudget.frames._columns import COLUMNS, Kind
from evalbudget.frames._write import Values
from evalbudget.recorded._race_record import RaceRecord
from evalbudget.recorded._scores import RecordedScores
from evalbudget.repeats.estimates import eb_wilson
from evalbudget.report._judges import Judges
from evalbudget.report._leaderboard import standing
from evalbudget.report._scored import readings_of
from evalbudget.report._study import Study
from evalbudget.sampler import Allocation
from evalbudget.statistics._means import mean_of_known

FloatArray = NDArray[np.float64]

PANEL = "panel"
_NUMBERS = tuple(column.name for column in COLUMNS["models"] if column.kind is Kind.NUMBER)
_AS = {
    "standard_error": "stderr",
    "low": "lower",
    "high": "upper",
    "all_low": "all_lower",
    "all_high": "all_upper",
}
"""Names of columns for fields that reports call otherwise."""
_BIAS = ("bias", "stderr", "lower", "upper", "all_lower", "all_upper")


def items(recorded: RecordedScores, level: float) -> dict[str, Values]:
    """One row per item, model and metric."""
    parts = []
    for name, part in measures(recorded):
        study = Study.of(part, level=level)
        parts += [_items_of(study, m, name) for m in range(len(part.models))]
    return _joined("items", parts)


def models(recorded: RecordedScores, level: float) -> dict[str, Values]:
    """One row per model and metric, as ``evalbudget report`` has them; of a race what it said itself."""
    if recorded.race is not None:
        return _of_race(recorded.race, recorded)
    rows = []
    for name, part in measures(recorded):
        study = Study.of(part, level=level)
        if study.is_panel:
            study.require_one_scale()
        rows += [_model(study, m, name) for m in range(len(part.models))]
    return {column.name: [row[column.name] for row in rows] for column in COLUMNS["models"]}


def _of_race(race: RaceRecord, recorded: RecordedScores) -> dict[str, Values]:
    rows = []
    for row in race.rows:
        told = dict.fromkeys((column.name for column in COLUMNS["models"]), math.nan)
        told |= {"all_lower": row.lower, "all_upper": row.upper}
        told["estimate"] = math.nan if row.estimate is None else row.estimate
        words = {"model": row.model, "rater": recorded.raters[0], "allocation": Allocation.ADAPTIVE.value}
        rows.append({**told, **words, "items": row.read, "readings": row.read})
    return {column.name: [row[column.name] for row in rows] for column in COLUMNS["models"]}


def judges(recorded: RecordedScores, level: float) -> dict[str, Values]:
    """One row per rater, in their order; biases where they are a panel, as ``evalbudget report`` has them."""
    study, n = Study(recorded, level), len(recorded.raters)
    scores = np.moveaxis(study.fixed_table, 2, 0).reshape(n, -1)
    biases = {name: np.full(n, np.nan) for name in _BIAS}
    if recorded.one_measure and n > 1:
        study.require_one_scale()
        found = Judges.of(study)
        for row in found.rows if found is not None else ():
            for name, value in asdict(row).items():
                if _AS.get(name, name) in _BIAS:
                    biases[_AS.get(name, name)][recorded.raters.index(row.judge)] = value
    return {
        "rater": list(recorded.raters),
        "mean": mean_of_known(scores),
        "readings": np.count_nonzero(~np.isnan(scores), axis=1),
        **biases,
    }


def measures(recorded: RecordedScores) -> Iterator[tuple[str, RecordedScores]]:
    """What has a mean: each metric that scored anything by itself, or all judges together."""
    if recorded.one_measure or len(recorded.raters) == 1:
        yield (recorded.raters[0] if len(recorded.raters) == 1 else PANEL), recorded
        return
    for number in np.flatnonzero(recorded.counts.any(axis=(0, 1))).tolist():
        name = recorded.raters[number]
        yield name, recorded.part(raters=np.array([number]))


def _items_of(study: Study, m: int, rater: str) -> dict[str, Values]:
    recorded, n = study.recorded, len(study.recorded.items)
    scores, purchase = study.scores(m), study.purchase(m)
    low = high = np.full(n, np.nan)
    if not study.is_panel and scores.value.size:
        pool = None if purchase.allocation is Allocation.FIXED else purchase.fixed_repeats
        found = eb_wilson(readings_of(scores), bounds=study.bounds, fixed_repeats=pool)
        bounds = found.confidence_intervals(study.level)
        low, high = bounds.low, bounds.high
    costs = np.full((n, 1), np.nan) if recorded.costs is None else recorded.costs[m].reshape(n, -1)
    paid = np.isfinite(costs).any(axis=1)
    return {
        "item": recorded.items,
        "model": [study.models[m]] * n,
        "rater": [rater] * n,
        "category": recorded.categories or [None] * n,
        "readings": scores.per_item,
        "mean": study.item_means(m) if scores.value.size else np.full(n, np.nan),
        "sd": _spread(np.asarray(recorded.scores[m], dtype=np.float64)),
        "lower": low,
        "upper": high,
        "cost": np.where(paid, np.nansum(costs, axis=1), np.nan),
        "allocation": [purchase.allocation.value] * n,
        "fixed_repeats": [purchase.fixed_repeats] * n,
    }


def _spread(scores: FloatArray) -> FloatArray:
    """Of each item's scores around the mean of their judge, shape (items,); nan without two of one judge."""
    known = ~np.isnan(scores)
    squares = np.nansum((scores - mean_of_known(scores)[..., None]) ** 2, axis=(1, 2))
    degrees = np.maximum(known.sum(axis=2) - 1, 0).sum(axis=1)
    spread: FloatArray = np.full(len(scores), np.nan)
    np.divide(squares, degrees, out=spread, where=degrees > 0)
    return np.sqrt(spread, out=spread)


def _model(study: Study, m: int, rater: str) -> dict[str, object]:
    scores, purchase = study.scores(m), study.purchase(m)
    if not scores.value.size:
        cost = math.nan if purchase.cost is None else purchase.cost
        told = {"model": study.models[m], "rater": rater, "items": 0, "readings": 0, "cost": cost}
        return dict.fromkeys(_NUMBERS, math.nan) | told | {"allocation": purchase.allocation.value}
    row = standing(study, m, study.mean(m), 1, (1, len(study.models)))
    rows = study.rows(m, study.level)
    again = {name: rows.get(name, math.nan) for name in ("repeats_stderr", "repeats_lower", "repeats_upper")}
    told = {name: math.nan if value is None else value for name, value in asdict(row).items()}
    return again | {_AS.get(name, name): value for name, value in told.items()} | {"rater": rater}


def _joined(kind: str, parts: Sequence[Mapping[str, Values]]) -> dict[str, Values]:
    return {
        column.name: np.concatenate([np.asarray(part[column.name], dtype=object) for part in parts])
        for column in COLUMNS[kind]
    }
