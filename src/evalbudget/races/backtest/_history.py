"""Recorded scores of earlier models, as predictions for a race."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel
from evalbudget.races.prediction._files import is_factor_file, load_factors, train_cached
from evalbudget.races.prediction._score_table import ScoreTable
from evalbudget.recorded._scores import FloatArray, RecordedScores
from evalbudget.statistics._means import mean_of_known


def history_of(
    recorded: RecordedScores,
    *,
    raters: Sequence[str] = (),
    without: Sequence[str] = (),
    score_range: tuple[float, float] = (0.0, 1.0),
    lower_is_better: bool = False,
    seed: int = 0,
) -> FactorModel:
    """Train on recorded scores, or take the factors from the cache.

    Args:
        recorded: earlier models; a model's score on an item is the mean of all its repeats and raters.
        raters: whose scores to use, as far as they are there; otherwise everybody's.
        without: names of models to leave out: a race must not know the answers of its own models.
        score_range: the smallest and the largest possible score.
        lower_is_better: of the race; its scores, and so these, are mirrored in the range.
        seed: of cross-validation.

    Raises:
        InvalidInputError: scores outside the range, or no model is left.
    """
    low, high = score_range
    r = [i for i, name in enumerate(recorded.raters) if name in raters] or list(range(len(recorded.raters)))
    m = [i for i, name in enumerate(recorded.models) if name not in set(without)]
    if not m:
        raise InvalidInputError("the history has only models that take part in the race; give earlier ones")
    means = _means(recorded.scores, r, low, high)
    table = ScoreTable(1.0 - means if lower_is_better else means, np.array(m))
    if any((block < 0.0).any() or (block > 1.0).any() for _, block in table.by_models()):
        raise InvalidInputError(
            f"the history has scores outside {low:g} to {high:g}; declare the smallest and the largest "
            "possible score (--score-range LOW..HIGH)"
        )
    return train_cached(table, recorded.items, seed=seed)


def _means(scores: FloatArray, raters: list[int], low: float, high: float) -> FloatArray:
    """Mean of each model on each item, rescaled; a part of the recording itself where that is the same."""
    if len(raters) == scores.shape[3] == 1 and (low, high) == (0.0, 1.0):
        return scores[:, :, raters[0], 0]
    return np.asarray((mean_of_known(scores[:, :, raters], (2, 3)) - low) / (high - low))


def factors_of(path: Path, items: Sequence[str]) -> FactorModel | None:
    """The factors in a saved factor file; None if the path is no such file."""
    return load_factors(path, items) if path.is_file() and is_factor_file(path) else None
