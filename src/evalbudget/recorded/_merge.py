"""Several recordings of one benchmark as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._scores import RecordedScores
from evalbudget.statistics._bounds import FloatArray, IntArray

T = TypeVar("T")
_Recordings = Sequence[tuple[str, RecordedScores]]


def merge(recordings: _Recordings, notes: Sequence[str] = ()) -> RecordedScores:
    """Models side by side, items and raters matched by name.

    Args:
        recordings: two or more, each with the name it goes by in messages, for example its path; no model is
            in two of them.
        notes: on how they were matched.

    Raises:
        InvalidInputError: no items or no raters in common, or contradictory directions of one score.
    """
    _check(recordings, notes)
    parts = [recorded for _, recorded in recordings]
    models = tuple(name for part in parts for name in part.models)
    items = tuple(dict.fromkeys(name for part in parts for name in part.items))
    raters = tuple(dict.fromkeys(name for part in parts for name in part.raters))
    repeats = max(part.scores.shape[3] for part in parts)
    scores: FloatArray = np.full((len(models), len(items), len(raters), repeats), np.nan)
    epochs: IntArray = np.zeros(scores.shape, dtype=np.int64) + np.arange(repeats)
    phases: FloatArray = np.full(scores.shape, np.nan)
    costs: FloatArray = np.full(scores.shape, np.nan)
    failed: IntArray = np.zeros(scores.shape[:3], dtype=np.int64)
    outside = np.zeros(scores.shape[:3], dtype=np.bool_)
    references = max(0 if part.reference is None else part.reference.shape[2] for part in parts)
    reference: FloatArray = np.full((len(models), len(items), references), np.nan)
    item_at, rater_at = _index(items), _index(raters)
    start = 0
    for part in parts:
        rows = np.arange(start, start + len(part.models))
        columns = np.array([item_at[name] for name in part.items])
        judges = np.array([rater_at[name] for name in part.raters])
        place = np.ix_(rows, columns, judges, np.arange(part.scores.shape[3]))
        scores[place] = part.scores
        if part.epochs is not None:
            epochs[place] = part.epochs
        if part.phases is not None:
            phases[place] = part.phases
        if part.costs is not None:
            costs[place] = part.costs
        if part.failed is not None:
            failed[np.ix_(rows, columns, judges)] = part.failed
        if part.outside is not None:
            outside[np.ix_(rows, columns, judges)] = part.outside
        if part.reference is not None:
            reference[np.ix_(rows, columns, np.arange(part.reference.shape[2]))] = part.reference
        start += len(part.models)
    bought = [part.purchases or (HowBought(),) * len(part.models) for part in parts]
    return RecordedScores(
        scores,
        models,
        items,
        raters,
        categories=_categories(recordings, items),
        texts=_texts(parts, items),
        reference=reference if references else None,
        purchases=tuple(purchase for purchases in bought for purchase in purchases),
        epochs=epochs if any(part.epochs is not None for part in parts) else None,
        phases=phases if any(part.phases is not None for part in parts) else None,
        costs=costs if any(part.costs is not None for part in parts) else None,
        failed=failed if any(part.failed is not None for part in parts) else None,
        outside=outside if outside.any() else None,
        declared=_declared(recordings, models, items, raters, notes),
        by_category=all(part.by_category for part in parts),
        one_generation=all(part.one_generation for part in parts),
        one_measure=all(part.one_measure for part in parts),
        task=parts[0].task if len({part.task for part in parts}) == 1 else None,
        may_be_empty=bool(np.isnan(scores).all()),
    )


def _check(recordings: _Recordings, notes: Sequence[str]) -> None:
    told = "".join(f". {note}" for note in notes).removesuffix(".")
    first, one = recordings[0]
    for name, part in recordings[1:]:
        for axis in ("items", "raters"):
            if not set(getattr(one, axis)) & set(getattr(part, axis)):
                ours, theirs = getattr(one, axis)[0], getattr(part, axis)[0]
                raise InvalidInputError(
                    f"{first} and {name} have no {axis} in common ({ours!r}, ... and {theirs!r}, ...), so "
                    f"their models cannot be compared; report on them one by one{told}"
                )


def _declared(
    recordings: _Recordings,
    models: tuple[str, ...],
    items: tuple[str, ...],
    raters: tuple[str, ...],
    notes: Sequence[str],
) -> Declared:
    """What all of them declare; where two differ in a range or a reducer, it is unknown."""
    told = [(name, part, part.declared) for name, part in recordings if part.declared is not None]
    digests: dict[str, str] = {}
    clusters: dict[str, str] = {}
    for _, part, declared in told:
        for item, digest in zip(part.items, declared.digests, strict=True):
            digests[item] = digests.get(item) or digest
        clusters |= dict(zip(part.items, declared.clusters or (), strict=False))
    clustered = {
        rater
        for _, part, d in told
        if d.clusters is not None
        for rater, by in zip(part.raters, d.clustered or (True,) * len(part.raters), strict=True)
        if by
    }
    fields = {declared.cluster for _, _, declared in told if declared.cluster is not None}
    known = [(part, declared) for _, part, declared in told]
    return Declared.of(
        models,
        items,
        raters,
        settings={m: s for part, d in known for m, s in zip(part.models, d.settings, strict=True)},
        complete=[m for part, d in known for m, whole in zip(part.models, d.complete, strict=True) if whole],
        lower_is_better=directions_of(recordings),
        ranges=_agreed([(part.raters, d.ranges) for part, d in known]),
        reducers=_agreed([(part.raters, d.reducers) for part, d in known]),
        digests=digests,
        clusters=clusters if len(fields) == 1 else None,
        cluster=fields.pop() if len(fields) == 1 else None,
        unclustered={*raters} - clustered,
        notes=[*(f"{name}: {note}" for name, _, d in told for note in d.notes), *notes],
        direction_missing=any(declared.direction_missing for _, declared in known),
    )


def _agreed(told: Sequence[tuple[Sequence[str], Sequence[T | None]]]) -> dict[str, T]:
    """What nobody contradicts, by rater."""
    found: dict[str, set[T]] = {}
    for raters, values in told:
        for rater, value in zip(raters, values, strict=True):
            if value is not None:
                found.setdefault(rater, set()).add(value)
    return {rater: values.pop() for rater, values in found.items() if len(values) == 1}


def directions_of(recordings: _Recordings) -> dict[str, bool]:
    """Whether lower is better, of every rater of which one of them says it.

    Raises:
        InvalidInputError: two of them contradict each other.
    """
    found: dict[str, tuple[bool, str]] = {}
    for name, part in recordings:
        for rater, lower in zip(
            part.raters, part.declared.lower_is_better if part.declared else (), strict=False
        ):
            if lower is None:
                continue
            known, first = found.setdefault(rater, (lower, name))
            if known != lower:
                low, high = (first, name) if known else (name, first)
                raise InvalidInputError(
                    f"{low} says that lower {rater} is better, and {high} that higher is: these are "
                    "different scores; give recordings that agree"
                )
    return {rater: lower for rater, (lower, _) in found.items()}


def _categories(recordings: _Recordings, items: tuple[str, ...]) -> tuple[str, ...] | None:
    """As the first recording that has the item says; None unless all items have one."""
    label: dict[str, str] = {}
    for _, part in recordings:
        for item, category in zip(part.items, part.categories or (), strict=False):
            label.setdefault(item, category)
    return tuple(label[item] for item in items) if all(item in label for item in items) else None


def _texts(parts: Sequence[RecordedScores], items: tuple[str, ...]) -> tuple[str, ...] | None:
    """As the first recording that has one says."""
    text: dict[str, str] = {}
    for part in parts:
        for item, told in zip(part.items, part.texts or (), strict=False):
            if told:
                text.setdefault(item, told)
    return tuple(text.get(item, "") for item in items) if text else None


def _index(names: Sequence[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}
