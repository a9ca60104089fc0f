"""Recordings of every kind that a frame must carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalbudget import Allocation
from evalbudget.backtest import Declared, HowBought, RecordedScores, TaskName

MARKUP = '<b onclick="x()">a & b</b>'


def plain(models: int = 3, items: int = 20, raters: int = 1, repeats: int = 2) -> RecordedScores:
    """0 or 1, everything there."""
    rng = np.random.default_rng(1)
    hard = rng.uniform(size=(1, items, 1, 1))
    scores = (rng.uniform(size=(models, items, raters, repeats)) < hard).astype(float)
    return RecordedScores(
        scores,
        tuple(f"model {m}" for m in range(models)),
        tuple(f"item {i}" for i in range(items)),
        tuple(f"rater {r}" for r in range(raters)),
    )


def ragged() -> RecordedScores:
    """Names that the first model lacks, a rater without a score, an item that nobody scored."""
    found = plain(3, 6, 3, 4)
    scores = found.scores.copy()
    scores[0, [0, 3]] = np.nan
    scores[:, 5] = np.nan
    scores[:, :, 1] = np.nan
    scores[1, :, 0, 2:] = np.nan
    scores[2, 1, 2, 1] = np.nan
    return replace(found, scores=scores, categories=tuple("xxyyzz"), one_measure=False)


def panel() -> RecordedScores:
    """Three judges on 1 to 5, one of them lenient, some scores missing."""
    rng = np.random.default_rng(2)
    ability = rng.normal(size=(2, 30, 1, 2))
    scores = np.clip(np.round(3 + ability + rng.normal(size=(2, 30, 3, 2)) * 0.5 + [[0], [0], [0.7]]), 1, 5)
    scores[0, :4, 1] = np.nan
    return RecordedScores(
        scores, ("a", "b"), tuple(map(str, range(30))), ("strict", "fair", "lenient"), one_generation=True
    )


def bought() -> RecordedScores:
    """One model by repeats in phases, one by adaptive ones, one by plain epochs; in money, of a task."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 2, size=(3, 12, 1, 5)).astype(float)
    scores[0, ::2, 0, 3:] = np.nan
    scores[1, 1::2, 0, 2:] = np.nan
    there = ~np.isnan(scores)
    phases = np.full(scores.shape, np.nan)
    phases[0] = np.where(there[0], [0.0, 0.0, 1.0, 1.0, 1.0], np.nan)
    costs = np.where(there, rng.uniform(size=scores.shape), np.nan)
    costs[2, 0, 0, 4], scores[2, 0, 0, 4] = 0.25, np.nan  # it failed, and cost
    return RecordedScores(
        scores,
        ("p", "a", "f"),
        tuple(f"q{i}" for i in range(12)),
        ("accuracy",),
        purchases=(
            HowBought(Allocation.PHASED, 2, cost=50, usd=1.5),
            HowBought(Allocation.ADAPTIVE, 2, cost=60),
            HowBought(),
        ),
        epochs=np.broadcast_to(np.arange(5), scores.shape).copy(),
        phases=phases,
        costs=costs,
        task=TaskName("quiz", "2"),
    )


def partly_applicable() -> RecordedScores:
    """Items that no score applies to, by the first model's source, and one that failed."""
    found = plain(2, 8, 1, 2)
    scores, outside = found.scores.copy(), np.zeros((2, 8, 1), dtype=bool)
    failed = np.zeros((2, 8, 1), dtype=np.int64)
    scores[0, [0, 4]], outside[0, [0, 4]] = np.nan, True
    scores[1, 2], failed[1, 2] = np.nan, 2
    declared = Declared.of(found.models, found.items, found.raters, complete=found.models)
    return replace(found, scores=scores, outside=outside, failed=failed, declared=declared)


WORLDS = {
    "plain": plain,
    "repeated": lambda: plain(2, 5, 1, 6),
    "ragged": ragged,
    "panel": panel,
    "bought": bought,
    "partly applicable": partly_applicable,
}
