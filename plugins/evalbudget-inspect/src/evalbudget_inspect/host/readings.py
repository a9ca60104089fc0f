"""Readings in a scorer's scores: who gave each, in which epoch and phase; and our rows of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from inspect_ai.scorer import SampleScore
from numpy.typing import NDArray

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import COUNTS, cluster_numbers, describe_mean
from evalbudget.repeats.estimates import Estimator, ItemReadings, Strata
from evalbudget_inspect.host.score_values import in_range, mostly_words, score_to_float
from evalbudget_inspect.host.scoring import METADATA

PHASE = "phase"
"""Of a reading: in which it was bought."""

STRATUM, STRATUM_ITEMS, ALL_ITEMS = "stratum", "stratum_items", "all_items"
"""Of a reading of a random sample of items: its item's stratum, how many are in it, and how many in all."""


def phase_of(entry: Mapping[str, Any]) -> float:
    """Phase in which the reading was bought; nan if there was none, or it is not known."""
    phase = entry.get(PHASE)
    return math.nan if phase is None else float(phase)


def was_asked(entry: Mapping[str, Any] | None) -> bool:
    """Whether the entry says that a judge gave the score."""
    return entry is not None and bool(readings_of(entry)) and bool(entry.get("asked", True))


def readings_of(entry: Mapping[str, Any], value: float = math.nan) -> dict[str, float]:
    """Who read what: the score's own value by one judge, or one reading each of all judges (nan: failed)."""
    if "judge" in entry:
        return {str(entry["judge"]): value}
    readings = entry.get("readings") or {}
    return {str(name): math.nan if read is None else float(read) for name, read in readings.items()}


def estimates_of(
    scores: Sequence[SampleScore],
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None,
    level: float,
    estimators: Sequence[type[Estimator]] = (),
    cluster: str | None = None,
) -> dict[str, float]:
    """The benchmark mean and how sure it is; none for a scorer whose values are no numbers."""
    try:
        readings = item_readings(scores, bounds)
    except InvalidInputError:
        return {}
    strata = strata_of(scores, bounds)
    counted = (sample for sample in scores if _counts(sample, bounds))
    found = describe_mean(
        readings,
        allocation=allocation if strata is None else Allocation.FIXED,
        fixed_repeats=fixed_repeats,
        bounds=bounds,
        level=level,
        estimators=estimators,
        strata=strata,
        clusters=clusters_of(counted, cluster),
    )
    return without_counts(found.rows)


def without_counts(rows: Mapping[str, float]) -> dict[str, float]:
    """Rows for the host's table, which prints every number with decimals: counts stand in the metadata.

    Where nothing was scored, ``estimate`` is nan, or the host would lead with another metric.
    """
    return {"estimate": math.nan} | {name: value for name, value in rows.items() if name not in COUNTS}


def strata_of(scores: Sequence[SampleScore], bounds: tuple[float, float] | None) -> Strata | None:
    """The strata of the items of :func:`item_readings`; None where no sample of the items was drawn."""
    items: dict[str, int] = {}
    sizes: dict[int, int] = {}
    whole = 0
    for sample in scores:
        ours = _entry(sample)
        if not _counts(sample, bounds):
            continue
        if STRATUM in ours:
            items.setdefault(str(sample.sample_id), int(ours[STRATUM]))
            sizes[int(ours[STRATUM])] = int(ours[STRATUM_ITEMS])
            whole = int(ours[ALL_ITEMS])
        else:
            return None
    return Strata.of_read(list(items.values()), sizes, whole) if items else None


def clusters_of(scores: Iterable[SampleScore], field: str | None) -> NDArray[np.int64] | None:
    """Clusters of the items of these scores, in the order in which they appear; None where there is no field.

    A run refuses items without the field before it asks any. In a log that is scored again they may be there:
    then all are of one cluster, of which nothing is said.
    """
    if field is None:
        return None
    found: dict[str, object] = {}
    for sample in scores:
        found.setdefault(str(sample.sample_id), (sample.sample_metadata or {}).get(field))
    numbers = cluster_numbers(list(found.values()))
    return np.zeros(len(found), dtype=np.int64) if numbers is None else numbers


def _entry(sample: SampleScore) -> Mapping[str, Any]:
    return (sample.score.metadata or {}).get(METADATA) or {}


def _counts(sample: SampleScore, bounds: tuple[float, float] | None) -> bool:
    value = score_to_float(sample.score, sample.scorer or "scorer")
    return in_range(value, bounds)


def item_readings(scores: Sequence[SampleScore], bounds: tuple[float, float] | None) -> ItemReadings | None:
    """The scores as readings; None if there are none.

    Left out: unscored ones, and those outside the bounds.

    Raises:
        InvalidInputError: a value of another kind, or mostly words.
    """
    items: dict[str, int] = {}
    epochs: dict[str, int] = {}
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    phases: list[float] = []
    words: list[SampleScore] = []
    for sample in scores:
        value = score_to_float(sample.score, sample.scorer or "scorer")
        if math.isnan(value) and isinstance(sample.score.value, str):
            words.append(sample)
        name = str(sample.sample_id)
        epochs[name] = epochs.get(name, 0) + 1
        if not in_range(value, bounds):
            continue
        ours = _entry(sample)
        columns[0].append(items.setdefault(name, len(items)))
        columns[1].append(int(ours.get("epoch", epochs[name])) - 1)
        columns[2].append(value)
        phases.append(phase_of(ours))
    if mostly_words(len(words), len(scores) - len(words)):
        score_to_float(words[0].score, words[0].scorer or "scorer", strict=True)
    if not items:
        return None
    return ItemReadings.of(*columns, n_items=len(items), phase=phases)
