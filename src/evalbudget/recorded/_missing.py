"""Scores that should be there and are not: how many, of whom, and what they could be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray, IntArray

if TYPE_CHECKING:
    from evalbudget.recorded._scores import RecordedScores

_NAMED = 4  # notes of a source on why


def missing_shares(recorded: RecordedScores) -> FloatArray:
    """Share of each item's scores that are missing, shape (models, items).

    1 where a model should have been scored on an item and was not; nan where it was not to be: an item that
    its source says it was not asked, one that no score applies to and no other model has one on, or one that
    nobody was scored on and nobody failed on. Readings that failed count among an item's scores where their
    number was fixed beforehand; elsewhere they were asked again, and what counts is whether a score came.
    """
    has = recorded.counts.sum(axis=2)
    lost = _failures(recorded).sum(axis=2)
    wanted = (has > 0) | (lost > 0) | (_unsure(recorded) & (has > 0).any(axis=0))
    fixed = np.ones(len(recorded.models), dtype=bool)
    if recorded.purchases is not None:
        fixed = np.array([p.allocation is Allocation.FIXED for p in recorded.purchases])
    with np.errstate(invalid="ignore"):
        share = np.where(fixed[:, None], lost / np.maximum(has + lost, 1), 0.0)
    share = np.where(has > 0, share, np.where(wanted, 1.0, np.nan))
    return np.asarray(share)


def not_applicable(recorded: RecordedScores) -> NDArray[np.bool_]:
    """Items that no score applies to, as their source says and no model contradicts, shape (items,)."""
    if recorded.outside is None:
        return np.zeros(len(recorded.items), dtype=bool)
    nobody = np.isnan(missing_shares(recorded)).all(axis=0)
    return np.asarray(recorded.outside.any(axis=(0, 2)) & nobody)


def missing_answers(recorded: RecordedScores) -> IntArray:
    """How many answers of each model are missing, shape (models,)."""
    return np.asarray(missing_by_item(recorded).sum(axis=1))


def missing_by_item(recorded: RecordedScores) -> IntArray:
    """How many answers are missing, shape (models, items): failed ones, and one of an item without any."""
    share = missing_shares(recorded)
    lost = _failures(recorded).sum(axis=2)
    return np.asarray(np.where(share > 0.0, np.maximum(lost, 1), 0), dtype=np.int64)


def score_range(recorded: RecordedScores) -> tuple[tuple[float, float], bool]:
    """Smallest and largest score that a missing one could be, and whether that is known.

    Known where the source declares it of all raters, or where scores are 0 and 1 and nothing else, or only
    one of them in a table. Elsewhere a missing score is taken to be from 0 to 1 where all others are, or
    where there is none, as gates take scores to be; otherwise to be among those that anybody has.
    """
    if recorded.declared is not None:
        ranges = {known for known in recorded.declared.ranges if known is not None}
        if len(ranges) == 1 and None not in recorded.declared.ranges:
            return ranges.pop(), True
    values = recorded.scores[~np.isnan(recorded.scores)]
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    if values.size and np.isin(values, (0.0, 1.0)).all():
        return (0.0, 1.0), low < high or recorded.purchases is None
    return ((0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)), False


def require_scores(recorded: RecordedScores, source: object) -> None:
    """Refuse scores all of which are missing, where they are to be estimated from, drawn or replayed.

    Raises:
        InvalidInputError: they are.
    """
    if recorded.counts.any():
        return
    models, n = ", ".join(recorded.models[:3]), int(missing_answers(recorded).sum())
    notes = () if recorded.declared is None else recorded.declared.notes
    told = [note for note in notes if "missing" in note or "no score" in note][:_NAMED]
    why = f". {' '.join(told)}" if told else "; find out why they are."
    raise InvalidInputError(
        f"{source} holds no score: all {n:,} answers of {models} are missing{why} Of such a source only "
        "evalbudget compare and evalbudget gate say something"
    )


def _failures(recorded: RecordedScores) -> IntArray:
    return np.zeros(recorded.counts.shape, dtype=np.int64) if recorded.failed is None else recorded.failed


def _unsure(recorded: RecordedScores) -> NDArray[np.bool_]:
    """Where nobody says that a score was not due whatever others have, shape (models, items)."""
    unsure = np.ones(recorded.counts.shape[:2], dtype=bool)
    if recorded.declared is not None:
        unsure &= ~np.array(recorded.declared.complete)[:, None]
    return unsure if recorded.outside is None else unsure | recorded.outside.any(axis=2)
