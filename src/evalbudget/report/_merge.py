"""Several recordings of one benchmark as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray

if TYPE_CHECKING:
    from evalbudget.recorded._scores import RecordedScores


def merge(recordings: Sequence[tuple[str, RecordedScores]]) -> RecordedScores:
    """Models side by side, items and raters matched by name.

    Args:
        recordings: each with the name it goes by in messages, for example its path.

    Raises:
        InvalidInputError: none given, a model in two of them, no items or no raters in common.
    """
    from evalbudget.recorded._how_bought import HowBought
    from evalbudget.recorded._scores import RecordedScores

    if not recordings:
        raise InvalidInputError("there is nothing to report on; give a file or folder of scores")
    if len(recordings) == 1:
        return recordings[0][1]
    _check(recordings)
    parts = [recorded for _, recorded in recordings]
    models = tuple(name for part in parts for name in part.models)
    items = tuple(dict.fromkeys(name for part in parts for name in part.items))
    raters = tuple(dict.fromkeys(name for part in parts for name in part.raters))
    repeats = max(part.scores.shape[3] for part in parts)
    scores: FloatArray = np.full((len(models), len(items), len(raters), repeats), np.nan)
    epochs: IntArray = np.zeros(scores.shape, dtype=np.int64) + np.arange(repeats)
    weights: FloatArray = np.full(scores.shape, np.nan)
    costs: FloatArray = np.full(scores.shape, np.nan)
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
        if part.weights is not None:
            weights[place] = part.weights
        if part.costs is not None:
            costs[place] = part.costs
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
        weights=weights if any(part.weights is not None for part in parts) else None,
        costs=costs if any(part.costs is not None for part in parts) else None,
        one_generation=all(part.one_generation for part in parts),
        one_measure=all(part.one_measure for part in parts),
        task=parts[0].task if len({part.task for part in parts}) == 1 else None,
    )


def _check(recordings: Sequence[tuple[str, RecordedScores]]) -> None:
    owner: dict[str, str] = {}
    for name, part in recordings:
        for model in part.models:
            if model in owner:
                raise InvalidInputError(
                    f"model {model!r} is in {owner[model]} and in {name}; give one of them, or, if they are "
                    "logs of the same task, the folder that holds them both"
                )
            owner[model] = name
    first, one = recordings[0]
    for name, part in recordings[1:]:
        for axis in ("items", "raters"):
            if not set(getattr(one, axis)) & set(getattr(part, axis)):
                ours, theirs = getattr(one, axis)[0], getattr(part, axis)[0]
                raise InvalidInputError(
                    f"{first} and {name} have no {axis} in common ({ours!r}, ... and {theirs!r}, ...), so "
                    "their models cannot be compared; report on them one by one"
                )


def _categories(
    recordings: Sequence[tuple[str, RecordedScores]], items: tuple[str, ...]
) -> tuple[str, ...] | None:
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
