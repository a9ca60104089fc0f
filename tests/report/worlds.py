"""Recorded scores made up for reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.recorded._declared import Declared


def panel(models: int = 3, items: int = 40, judges: int = 4, repeats: int = 2, seed: int = 0) -> np.ndarray:
    """Shape (models, items, judges, repeats): models .4 apart, judges with a bias of their own."""
    rng = np.random.default_rng(seed)
    return np.asarray(
        5
        + 0.4 * np.arange(models)[:, None, None, None]
        + rng.normal(size=(1, items, 1, 1))
        + 0.3 * rng.normal(size=(models, items, 1, repeats))
        + np.linspace(-0.5, 0.5, judges)[:, None]
        + 0.5 * rng.normal(size=(models, items, judges, repeats))
    )


def recorded(scores: np.ndarray, **options: Any) -> RecordedScores:
    """With plain names."""
    m, i, r, _ = scores.shape
    names = {
        "models": tuple(f"m{k}" for k in range(m)),
        "items": tuple(f"i{k}" for k in range(i)),
        "raters": tuple(f"j{k}" for k in range(r)),
    }
    return RecordedScores(scores, **(names | options))


def nothing_missing(found: RecordedScores) -> RecordedScores:
    """The same, from a source that names what was asked: what has no score was not to have one."""
    declared = Declared.of(found.models, found.items, found.raters, complete=found.models)
    return replace(found, declared=declared)
