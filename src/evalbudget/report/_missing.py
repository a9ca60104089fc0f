"""Scores that are missing: what they are taken for, and how many are said to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._direction import is_lower_better
from evalbudget.recorded._missing import missing_shares, score_range
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray, IntArray

if TYPE_CHECKING:
    from evalbudget.recorded._scores import RecordedScores

_ROUNDING = 1e-9


def check_range(recorded: RecordedScores, bounds: tuple[float, float]) -> None:
    """Refuse scores outside of the range that is declared for them.

    Raises:
        InvalidInputError: the range is empty, or one of them is outside.
    """
    low, high = bounds
    if not low < high:
        raise InvalidInputError(f"--score-range {low:g}..{high:g} is empty; give the smallest score first")
    least, most = float(np.nanmin(recorded.scores)), float(np.nanmax(recorded.scores))
    for value in (least, most):
        if not low - _ROUNDING <= value <= high + _ROUNDING:
            raise InvalidInputError(
                f"the score {value:g} is outside of {low:g} to {high:g}; give the smallest and the largest "
                "possible score, for example --score-range 1..10"
            )


def without_missing(
    recorded: RecordedScores, missing: Missing, bounds: tuple[float, float] | None = None
) -> RecordedScores:
    """Scores of one measure among which none counts as missing, unless by the worst that it could be.

    Args:
        recorded: the scores.
        missing: ``worst`` leaves them as they are; ``drop`` forgets that some are missing; ``zero`` puts the
            worst score that there can be in their place.
        bounds: smallest and largest possible score; None: see
            :func:`~evalbudget.recorded._missing.score_range`.

    Raises:
        InvalidInputError: nothing tells the worst score of what is missing, and ``zero`` is that.
    """
    if missing is Missing.WORST:
        return recorded
    known = recorded.declared or Declared.of(recorded.models, recorded.items, recorded.raters)
    complete = replace(known, complete=(True,) * len(recorded.models))
    if missing is Missing.DROP:
        return replace(recorded, failed=None, outside=None, declared=complete)
    lost = _lost(recorded)
    n = recorded.scores.shape[3]
    more = int(lost.max(initial=0))
    filled: FloatArray = np.full((*recorded.scores.shape[:3], n + more), np.nan)
    filled[..., :n] = recorded.scores
    scale = bounds or score_range(recorded)[0]
    if more and bounds is None and scale != (0.0, 1.0):
        raise InvalidInputError(
            f"--missing zero counts what is missing as the worst score, and nothing says which that is of "
            f"scores from {scale[0]:,.4g} to {scale[1]:,.4g}; give the range: evalbudget compare "
            "--score-range, or, in a table, the columns score_low and score_high"
        )
    worst = scale[1 if is_lower_better(recorded) else 0]
    filled[..., n:][np.arange(more) < lost[..., None]] = worst
    grown: dict[str, Any] = {
        name: _grown(table, more, otherwise)
        for name, otherwise in (("epochs", 0), ("phases", np.nan), ("costs", np.nan))
        if (table := getattr(recorded, name)) is not None
    }
    return replace(recorded, scores=filled, failed=None, outside=None, declared=complete, **grown)


def _lost(recorded: RecordedScores) -> IntArray:
    """Readings of each cell that are missing, shape (models, items, raters).

    An item without any score lacks one of every rater that scored the model elsewhere.
    """
    share = missing_shares(recorded)
    failed = np.zeros(recorded.counts.shape, np.int64) if recorded.failed is None else recorded.failed
    bought = recorded.purchases
    again = [bought is not None and bought[m].allocation is not Allocation.FIXED for m in range(len(share))]
    failed = np.where(np.array(again)[:, None, None], 0, failed)
    by = np.asarray(recorded.counts.sum(axis=1) > 0)
    by = by | (recorded.counts.sum(axis=(1, 2)) == 0)[:, None]
    nothing = (share == 1.0)[..., None] & ~failed.any(axis=2, keepdims=True)
    return np.asarray(np.where(nothing, by[:, None, :], failed), dtype=np.int64)


def _grown(table: FloatArray | IntArray, more: int, otherwise: float) -> FloatArray | IntArray:
    shape = (*table.shape[:3], more)
    return np.concatenate([table, np.full(shape, otherwise, dtype=table.dtype)], axis=3)


def missing_words(counts: Iterable[tuple[str, int]]) -> str:
    """How many answers are missing of whom, as a clause; empty where none is."""
    told = [(name, n) for name, n in counts if n]
    if not told:
        return ""
    of = " and ".join(f"{n:,} of {name}'s" for name, n in told)
    return f"{of} answers {'is' if told == [(told[0][0], 1)] else 'are'} missing"
