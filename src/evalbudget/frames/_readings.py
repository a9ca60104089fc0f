"""Every reading as a row, such that the rows are the same scores again."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.frames._write import Values
from evalbudget.recorded._declared import UNKNOWN, Declared
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._scores import RecordedScores

IntArray = NDArray[np.int64]
_BETTER = {True: "lower", False: "higher"}


def readings(recorded: RecordedScores) -> dict[str, Values]:
    """One row per reading, model by model, item by item.

    Readings that failed have a row without a score, and so has what no score applies to. Where an item, a
    model or a rater would be lost, or its place in the order, such a row stands for it, and says that it did
    not fail.
    """
    lost = _lost(recorded)
    outside = np.zeros(lost.shape[:3], dtype=bool) if recorded.outside is None else recorded.outside
    rows = _rows(recorded, lost, outside)
    model, item, rater, repeat = rows
    n = model.size
    told = recorded.declared or Declared.of(recorded.models, recorded.items, recorded.raters)
    unsaid = UNKNOWN if told.direction_missing else None
    ranges = np.array([(np.nan, np.nan) if known is None else known for known in told.ranges])
    purchases = recorded.purchases
    bought = purchases or (HowBought(),) * len(recorded.models)
    of_models = np.array([(float(p.fixed_repeats), _known(p.cost), _known(p.usd)) for p in bought])
    kinds = [None if purchases is None else p.allocation.value for p in bought]
    task, strata = recorded.task, _strata(recorded)

    def taken(table: NDArray[np.floating] | None) -> Values:
        return np.full(n, np.nan) if table is None else np.asarray(table[rows], dtype=np.float64)

    settings = [json.dumps(dict(own), ensure_ascii=False) if own else None for own in told.settings]
    clusters = _named(told.clusters or (None,) * len(recorded.items), item)
    if told.clustered:
        clusters = [each if told.clustered[r] else None for each, r in zip(clusters, rater, strict=True)]
    return {
        "item": _named(recorded.items, item),
        "model": _named(recorded.models, model),
        "rater": _named(recorded.raters, rater),
        "repeat": repeat,
        "score": taken(recorded.scores),
        "cost": taken(recorded.costs),
        "category": _named(recorded.categories or (None,) * len(recorded.items), item),
        "task": [None if task is None else task.name] * n,
        "version": [None if task is None else task.version] * n,
        "one_generation": np.full(n, recorded.one_generation),
        "one_measure": np.full(n, recorded.one_measure),
        "failed": lost[rows],
        "not_applicable": np.isnan(recorded.scores[rows]) & ~lost[rows] & outside[model, item, rater],
        "complete": np.array(told.complete)[model],
        "better": _named([unsaid if way is None else _BETTER[way] for way in told.lower_is_better], rater),
        "score_low": ranges[rater, 0],
        "score_high": ranges[rater, 1],
        "digest": _named([digest or None for digest in told.digests], item),
        "cluster": clusters,
        "settings": _named(settings, model),
        "epoch": repeat if recorded.epochs is None else recorded.epochs[rows],
        "phase": taken(recorded.phases),
        "allocation": _named(kinds, model),
        "fixed_repeats": of_models[model, 0],
        "model_cost": of_models[model, 1],
        "model_usd": of_models[model, 2],
        "phase_sizes": _named([" ".join(map(repr, p.phase_sizes)) or None for p in bought], model),
        "by_category": np.full(n, recorded.by_category),
        "stratum": strata[0, item],
        "stratum_items": strata[1, item],
    }


def _strata(recorded: RecordedScores) -> NDArray[np.float64]:
    """Stratum of each item and its size, shape (2, items); those of which nothing was read are in others."""
    if recorded.strata is None:
        return np.full((2, len(recorded.items)), np.nan)
    strata = recorded.strata.collapsed(recorded.counts.any(axis=(0, 2)))
    return np.array([strata.of_item, strata.sizes[strata.of_item]], dtype=np.float64)


def _lost(recorded: RecordedScores) -> NDArray[np.bool_]:
    """Places of the readings that failed, shape of the scores: those with a cost first."""
    free = np.isnan(recorded.scores)
    if recorded.failed is None:
        return np.zeros(free.shape, dtype=bool)
    paid = np.zeros(free.shape, dtype=bool) if recorded.costs is None else ~np.isnan(recorded.costs)
    order = np.argsort(np.where(free, np.where(paid, 0, 1), 2), axis=3, kind="stable")
    rank = np.argsort(order, axis=3, kind="stable")
    return np.asarray(free & (rank < recorded.failed[..., None]))


def _rows(
    recorded: RecordedScores, lost: NDArray[np.bool_], outside: NDArray[np.bool_]
) -> tuple[IntArray, ...]:
    """Places of the readings, and of what stands for names that have none, in order."""
    there: Any = ~np.isnan(recorded.scores) | lost
    if recorded.costs is not None:
        there |= ~np.isnan(recorded.costs)
    there[..., 0] |= outside & ~there.any(axis=3)
    rows: tuple[IntArray, ...] = np.nonzero(there)
    if all(_in_order(rows[axis], there.shape[axis]) for axis in range(3)):
        return rows
    empty = ~there.any(axis=3)
    there[0, :, 0, 0] |= empty[0, :, 0]
    there[0, 0, :, 0] |= empty[0, 0]
    there[:, 0, 0, 0] |= empty[:, 0, 0]
    rows = np.nonzero(there)
    return rows


def _in_order(index: IntArray, size: int) -> bool:
    """Whether all numbers appear, one for the first time after the other."""
    found, first = np.unique(index, return_index=True)
    return bool(found.size == size and (np.diff(first) > 0).all())


def _named(names: Sequence[object], index: IntArray) -> Values:
    return np.array(names, dtype=object)[index]


def _known(value: float | None) -> float:
    return math.nan if value is None else value
