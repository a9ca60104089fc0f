"""What a human label is expected to be at a judge's score, learned from past labels only.

Cells are bins of judge scores within segments, cut at quantiles of the scores seen so far. Each arm's
prediction in a cell is shrunk towards that of all arms in it plus the arm's own bias, which is shrunk towards
the bin over all segments, and that towards the judge's mean score in the bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.statistics._bounds import FloatArray, IntArray

BINS = 10
"""Of judge scores, at most."""
LABELS_PER_BIN = 8
PRIOR_SQUARE = 0.05
"""Mean squared residual supposed before any label."""


@dataclass(frozen=True)
class Calibration:
    """A frozen table of predictions; a score that is missing (nan) has a bin of its own.

    Attributes:
        edges: between bins of judge scores, shape (bins - 1,), increasing.
        prediction: m, shape (arms, cells); a cell is segment * (bins + 1) + bin, the last bin for nan.
        square: g, the expected (Y - m)^2, same shape.
        share: how often each arm's contexts fall into each cell, same shape; rows add up to 1.
    """

    edges: FloatArray
    prediction: FloatArray
    square: FloatArray
    share: FloatArray

    @property
    def n_bins(self) -> int:
        """Bins of scores, the one for missing scores included."""
        return self.edges.size + 2

    def cells(self, segment: IntArray, judge: FloatArray) -> IntArray:
        """The cell of each score.

        Args:
            segment: of each context, shape (contexts,).
            judge: scores, nan where missing, shape (contexts, arms).
        """
        bins = np.searchsorted(self.edges, judge, side="right")
        bins = np.where(np.isnan(judge), self.n_bins - 1, bins)
        return np.asarray(segment[:, None] * self.n_bins + bins, dtype=np.int64)

    def predicted(self, segment: IntArray, judge: FloatArray) -> FloatArray:
        """M of each score; arguments as of :meth:`cells`."""
        return self.prediction[np.arange(judge.shape[1]), self.cells(segment, judge)]

    @classmethod
    def before(cls, n_arms: int, n_segments: int) -> Calibration:
        """Before any label: the judge is believed."""
        edges = np.arange(1, BINS) / BINS
        middles = np.append((np.arange(BINS) + 0.5) / BINS, 0.5)
        prediction = np.tile(middles, (n_arms, n_segments))
        return cls(
            edges,
            prediction,
            np.full(prediction.shape, PRIOR_SQUARE),
            np.full(prediction.shape, 1.0 / prediction.shape[1]),
        )

    @classmethod
    def of(
        cls,
        segment: IntArray,
        judge: FloatArray,
        label: FloatArray,
        seen: NDArray[np.bool_],
        n_segments: int,
    ) -> Calibration:
        """Learn from every past context.

        Args:
            segment: shape (contexts,).
            judge: shape (contexts, arms), nan where missing.
            label: shape (contexts, arms), nan where there is none.
            seen: whether the arm took part in the context, shape (contexts, arms).
            n_segments: how many there are.
        """
        n_arms = judge.shape[1]
        labelled = ~np.isnan(label)
        edges = _edges(judge[np.isfinite(judge)], int(labelled.sum()))
        empty = cls(edges, np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0)))
        B = empty.n_bins
        C = n_segments * B
        cell = empty.cells(segment, judge)
        arm = np.broadcast_to(np.arange(n_arms), judge.shape)

        # the judge's mean score in each bin, of whoever was judged
        scored = np.isfinite(judge)
        bin_of = cell % B
        count = np.bincount(bin_of[scored], minlength=B)
        score = np.bincount(bin_of[scored], weights=judge[scored], minlength=B)
        y, c, k = label[labelled], cell[labelled], arm[labelled]
        middle = np.concatenate([[0.0], edges, [1.0]])
        fallback = np.append((middle[:-1] + middle[1:]) / 2, (y.sum() + 0.5) / (y.size + 1.0))
        score = np.where(count > 0, score / np.maximum(count, 1), fallback)

        by_bin = _shrunk(
            np.bincount(c % B, weights=y, minlength=B), np.bincount(c % B, minlength=B), score, 1.0
        )
        n_c = np.bincount(c, minlength=C)
        common = _shrunk(np.bincount(c, weights=y, minlength=C), n_c, np.tile(by_bin, n_segments), 2.0)
        bias = np.bincount(k, weights=y - common[c], minlength=n_arms) / (
            np.bincount(k, minlength=n_arms) + 3.0
        )
        own = k * C + c
        n_kc = np.bincount(own, minlength=n_arms * C)
        prior = (common[None, :] + bias[:, None]).ravel()
        total = np.bincount(own, weights=y, minlength=n_arms * C)
        m = np.clip(_shrunk(total, n_kc, prior, 3.0), 0.0, 1.0)

        off = (y - m[own]) ** 2
        overall = (off.sum() + PRIOR_SQUARE) / (off.size + 1.0)
        # residuals about a mean that was fitted to them are too small
        g_c = _shrunk(
            np.bincount(c, weights=off, minlength=C) * (n_c + 1.0) / np.maximum(n_c, 1), n_c, overall, 2.0
        )
        squares = np.bincount(own, weights=off, minlength=n_arms * C)
        g = _shrunk(squares, n_kc, np.tile(g_c, n_arms), 2.0)

        taken = np.broadcast_to(seen, judge.shape)
        share = (
            np.bincount((arm * C + cell)[taken], minlength=n_arms * C).reshape(n_arms, C).astype(np.float64)
        )
        total_share = share.sum(axis=1, keepdims=True)
        share = np.where(total_share > 0, share / np.maximum(total_share, 1.0), 1.0 / C)
        return cls(edges, m.reshape(n_arms, C), np.maximum(g, 1e-6).reshape(n_arms, C), share)


def _shrunk(total: ArrayLike, count: ArrayLike, prior: ArrayLike, weight: float) -> FloatArray:
    found = (np.asarray(total) + weight * np.asarray(prior)) / (np.asarray(count) + weight)
    return np.asarray(found, dtype=np.float64)


def _edges(scores: FloatArray, n_labels: int) -> FloatArray:
    """Quantiles, or between the values where there are few; never more than the labels can fill."""
    wanted = int(np.clip(n_labels // LABELS_PER_BIN, 2, BINS))
    if not scores.size:
        return np.array([0.5])
    values = np.unique(scores)
    if values.size <= wanted:
        return np.asarray((values[1:] + values[:-1]) / 2, dtype=np.float64)
    cuts = np.unique(np.quantile(scores, np.arange(1, wanted) / wanted))
    # a cut on the smallest value leaves an empty bin
    return np.asarray(cuts[cuts > values[0]], dtype=np.float64)
