"""Pools whose items have known distributions: true means and variances are exact, not estimated.

A distribution is stored as ``RESOLUTION`` equally likely values per item, so probabilities are multiples of
1/RESOLUTION and a replay draws from exactly that distribution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from evalbudget.backtest import RecordedScores
from evalbudget.repeats.backtest._pool import Pool, pools_of

FloatArray = NDArray[np.float64]

RESOLUTION = 4000
RATINGS = np.arange(5.0)
COIN = np.array([0.0, 1.0])


def pool_of(name: str, probabilities: FloatArray, values: FloatArray) -> Pool:
    """A pool whose item i takes ``values[v]`` with probability ``probabilities[i, v]``."""
    steps = np.rint(np.cumsum(probabilities, axis=1) * RESOLUTION).astype(np.int64)
    steps[:, -1] = RESOLUTION
    counts = np.diff(steps, axis=1, prepend=0)
    scores = np.stack([np.repeat(values, row) for row in counts]).astype(np.float32)
    items = tuple(f"item {i}" for i in range(len(scores)))
    recorded = RecordedScores(scores[None, :, None, :], (name,), items, ("rater",))
    return pools_of((recorded,), model=None, rater=None, min_repeats=2)[0]


def ratings(n_items: int) -> Pool:
    """0-4 ratings: rounded normals over the whole scale, spreads from .1 to 1."""
    centres = np.linspace(0.0, 4.0, n_items)
    spreads = np.resize([0.1, 0.25, 0.4, 0.6, 1.0], n_items)
    table = [_rounded_normal(c, s) for c, s in zip(centres, spreads, strict=True)]
    return pool_of("ratings 0-4", np.stack(table), RATINGS)


def mostly_top(n_items: int) -> Pool:
    """0-4 ratings, nearly always 4, otherwise anything; the share of 4s is Beta(8, .7)."""
    top = _quantiles(8.0, 0.7, n_items)
    low = np.tile((1 - top)[:, None] / 4, 4)
    return pool_of("mostly-top 0-4", np.column_stack([low, top]), RATINGS)


def bernoulli(n_items: int, a: float, b: float) -> Pool:
    """Pass or fail; the items' pass rates are the quantiles of Beta(a, b)."""
    p = _quantiles(a, b, n_items)
    return pool_of(f"Bernoulli, Beta({a:g}, {b:g})", np.column_stack([1 - p, p]), COIN)


def drawn_bernoulli(a: float, b: float, n_items: int, seed: int) -> Pool:
    """Pass or fail; the items' pass rates are drawn from Beta(a, b)."""
    p = np.random.default_rng([seed, 3]).beta(a, b, n_items)
    return pool_of(f"Bernoulli, Beta({a:g}, {b:g})", np.column_stack([1 - p, p]), COIN)


def all_equal(n_items: int) -> Pool:
    """Every score of every item is 1."""
    return pool_of("all equal", np.tile([0.0, 1.0], (n_items, 1)), COIN)


def _quantiles(a: float, b: float, n: int) -> FloatArray:
    return np.asarray(beta.ppf((np.arange(n) + 0.5) / n, a, b), dtype=np.float64)


def _rounded_normal(mean: float, sd: float) -> FloatArray:
    edges = np.concatenate([[-np.inf], np.arange(4) + 0.5, [np.inf]])
    return np.asarray(np.diff(norm.cdf((edges - mean) / sd)), dtype=np.float64)
