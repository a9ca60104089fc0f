"""Draws of one model made by hand: a benchmark, a random order, batches with frozen predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evalbudget.races._draws import ModelDraws
from evalbudget.statistics._bounds import FloatArray, IntArray

Predictor = Callable[[IntArray, FloatArray], FloatArray]
"""From the items read so far and their scores to f of all items."""


def draw(
    scores: FloatArray,
    predict: FloatArray | Predictor,
    n_drawn: int,
    *,
    batch: int = 16,
    order: IntArray | None = None,
    n_anchors: int = 0,
    seed: int = 0,
) -> ModelDraws:
    """The first ``n_drawn`` items of a random order, in batches; nan scores are failures."""
    N = scores.size
    if order is None:
        order = np.random.default_rng(seed).permutation(N)
    anchors, rest = order[:n_anchors], order[n_anchors:]
    answered = anchors[~np.isnan(scores[anchors])]
    prediction, sums, squares, number = [], [], [], []
    for k, start in enumerate(range(0, n_drawn, batch)):
        seen = np.concatenate([answered, rest[:start]])
        seen = seen[~np.isnan(scores[seen])]
        f = predict(seen, scores[seen]) if callable(predict) else predict
        unseen, drawn = rest[start:], rest[start : min(start + batch, n_drawn)]
        prediction.append(f[drawn])
        number.append(np.full(drawn.size, k))
        sums.append(f[unseen].sum())
        squares.append((f[unseen] ** 2).sum())
    return ModelDraws(
        n_items=N - int(np.isnan(scores[anchors]).sum()),
        known=scores[answered],
        value=scores[rest[:n_drawn]],
        item=rest[:n_drawn],
        batch=np.concatenate(number) if number else np.zeros(0, dtype=np.int64),
        prediction=np.concatenate(prediction) if prediction else np.zeros(0),
        unseen_prediction_sum=np.array(sums),
        unseen_prediction_sum_sq=np.array(squares),
        known_item=answered,
        cost=float(n_anchors + n_drawn),
    )


def bernoulli(p: FloatArray | float, n_items: int, seed: int) -> FloatArray:
    return (np.random.default_rng(seed).random(n_items) < p).astype(np.float64)


def with_failures(scores: FloatArray, share: float, seed: int) -> FloatArray:
    return np.where(np.random.default_rng(seed).random(scores.size) < share, np.nan, scores)
