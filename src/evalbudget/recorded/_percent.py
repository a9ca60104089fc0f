"""Percent beside fractions: two models' scores of one metric that only seem to be on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.statistics._bounds import FloatArray

if TYPE_CHECKING:
    from evalbudget.recorded._scores import RecordedScores

_NAMED = 3


def require_one_unit(recorded: RecordedScores) -> None:
    """Refuse models some of which are scored in percent and others in fractions.

    Raises:
        InvalidInferenceError: see :func:`check_one_unit`.
    """
    for number, rater in enumerate(recorded.raters):
        scores = recorded.scores[:, :, number]
        largest = np.fmax.reduce(scores, axis=(1, 2))
        if not (1.0 in largest and 100.0 in largest):
            continue
        known = {model: own[~np.isnan(own)] for model, own in zip(recorded.models, scores, strict=True)}
        check_one_unit(known, "" if len(recorded.raters) == 1 else f" by {rater}")


def check_one_unit(scores: Mapping[str, FloatArray], by: str = "") -> None:
    """Refuse scores that are percent of some models and fractions of others.

    Both must show it. Fractions: within 0 to 1, the largest exactly 1. Percent: from 0 to 100, the largest
    exactly 100, none above 0 that is 1 or less. And either fractions lie between 0 and 1, too, or some model
    has only 0 and 1 beside one that has only 0 and 100. So a model that is wrong everywhere is on any scale,
    and a weak one that whole points from 0 to 100 are given to, and never more than 1, is on theirs.

    Args:
        scores: of each model, without those that are missing.
        by: whose they are, with a space before it; empty where nobody needs to say it.

    Raises:
        InvalidInferenceError: naming models, their ranges and the remedy.
    """
    fractions = {model: own for model, own in scores.items() if _is_fraction(own)}
    percent = {model: own for model, own in scores.items() if _is_percent(own)}
    between = any(((own > 0.0) & (own < 1.0)).any() for own in fractions.values())
    two_valued = any(np.isin(own, (0.0, 100.0)).all() for own in percent.values())
    if fractions and percent and (between or two_valued):
        raise InvalidInferenceError(
            f"the scores of {_spans(percent)}{by} look like percent, and those of {_spans(fractions)} like "
            f"fractions: on two scales no difference means anything. Divide the former by 100, or give "
            "models of one scale at a time"
        )


def _is_fraction(scores: FloatArray) -> bool:
    return bool(scores.size and scores.min() >= 0.0 and scores.max() == 1.0)


def _is_percent(scores: FloatArray) -> bool:
    if not scores.size or scores.min() < 0.0 or scores.max() != 100.0:
        return False
    return not bool(((scores > 0.0) & (scores <= 1.0)).any())


def _spans(models: Mapping[str, FloatArray]) -> str:
    told = [f"{model} ({own.min():g} to {own.max():g})" for model, own in models.items()]
    more = f" and {len(told) - _NAMED:,} more" if len(told) > _NAMED else ""
    return ", ".join(told[:_NAMED]) + more
