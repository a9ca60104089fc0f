"""Ranks that hold all at once, by differences of strengths."""

from __future__ import annotations

import numpy as np

from evalbudget.pairwise._bradley_terry import BradleyTerry, bradley_terry
from evalbudget.pairwise._position_effects import identified
from evalbudget.pairwise._preferences import Preferences


def ranks(preferences: Preferences, level: float) -> list[tuple[int, int]]:
    """Smallest and largest rank of each model; all are right at once with probability ``level``.

    From all differences at once (Bonferroni), and from the judgements alone of which it can be told what
    position does to them: with others, what is better and what is shown first would be the same. A model
    ranks above another one only if it would whatever the missing verdicts had been.

    Args:
        preferences: of models that a chain of comparisons connects.
        level: of all ranks.
    """
    k = len(preferences.models)
    told = identified(preferences)
    if told is None:
        return [(1, k)] * k
    fit = bradley_terry(told)
    each = 1.0 - (1.0 - level) / (k * (k - 1) / 2)
    above = np.zeros((k, k), dtype=bool)
    for a in range(k):
        for b in range(k):
            if a != b and fit.against(a, b, each)[1] > 0.5:
                worst = _at_worst(told, fit, a, b) if told.missing else fit
                above[a, b] = worst.against(a, b, each)[1] > 0.5
    return [(1 + int(above[:, m].sum()), k - int(above[m].sum())) for m in range(k)]


def _at_worst(preferences: Preferences, fit: BradleyTerry, a: int, b: int) -> BradleyTerry:
    """The fit if every missing verdict were the one that is worst for ``a`` against ``b``."""
    pull = fit.pull[a] - fit.pull[b]
    return bradley_terry(preferences.filled(pull[preferences.second] - pull[preferences.first]))
