r"""Strengths of models by Bradley and Terry, ties as half wins, with a term for the position.

.. math:: \operatorname{logit} P(\text{first wins}) = b_{first} - b_{second} + \gamma_{judge}

b sums to 0, and is fitted by (quasi-)likelihood to values in [0, 1]. Where one model wins everything its
strength would be infinite, so every pair of models that met is given one win and one loss of half a
comparison each, shown in no order, and every judge the same between equals: the prior of Jeffreys for one
pair, which moves a pair with n comparisons by 1/(n + 1) of its distance from even.

Errors are robust to clusters: an item's comparisons, in both orders, by all judges and of all pairs, are
one cluster; the covariance is :math:`H^{-1} (\sum_g u_g u_g') H^{-1} \, G / (G - 1)`, with H the
information and u_g the sum of a cluster's scores. What was added are clusters of their own in it, and count
whole: otherwise a model that always wins would have an error of nearly 0. Its interval is too wide rather
than too narrow.

References:
    Bradley & Terry (1952), Rank analysis of incomplete block designs, Biometrika 39. Davidson & Beaver
    (1977), On extending the Bradley-Terry model to incorporate within-pair order effects, Biometrics 33.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.pairwise._preferences import Preferences
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._shrinkage import t_quantile

ADDED = 0.5
"""Of a win, and of a loss, to every pair that met."""
_STEPS = 100
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class BradleyTerry:
    """The fit.

    Attributes:
        strength: b, shape (n_models,), summing to 0.
        covariance: of b, shape (n_models, n_models); nan with fewer than two items.
        position: gamma of each judge, shape (n_judges,); 0 where it cannot be told from strengths.
        position_known: whether it was estimated, shape (n_judges,).
        degrees: of freedom.
    """

    strength: FloatArray
    covariance: FloatArray
    position: FloatArray
    position_known: NDArray[np.bool_]
    degrees: int

    def against_average(self, model: int, level: float) -> tuple[float, float, float]:
        """Probability of a win against the average opponent, and its interval."""
        k = self.strength.size
        contrast = np.full(k, -1.0 / (k - 1))
        contrast[model] = 1.0
        return self._probability(contrast, level)

    def against(self, a: int, b: int, level: float) -> tuple[float, float, float]:
        """Probability that a wins against b, and its interval."""
        contrast = np.zeros(self.strength.size)
        contrast[a], contrast[b] = 1.0, -1.0
        return self._probability(contrast, level)

    def ranks(self, level: float) -> list[tuple[int, int]]:
        """Smallest and largest rank of each model; all are right at once with probability ``level``.

        From all differences at once (Bonferroni).
        """
        k = self.strength.size
        each = 1.0 - (1.0 - level) / (k * (k - 1) / 2)
        found = []
        for model in range(k):
            spans = [self.against(model, other, each)[1:] for other in range(k) if other != model]
            better = sum(high < 0.5 for _, high in spans)
            worse = sum(low > 0.5 for low, _ in spans)
            found.append((1 + better, k - worse))
        return found

    def _probability(self, contrast: FloatArray, level: float) -> tuple[float, float, float]:
        value = float(contrast @ self.strength)
        variance = float(contrast @ self.covariance @ contrast)
        if self.degrees < 1 or not math.isfinite(variance):
            return _logistic(value), math.nan, math.nan
        half = float(t_quantile(level, float(self.degrees))) * math.sqrt(variance)
        return _logistic(value), _logistic(value - half), _logistic(value + half)


def bradley_terry(preferences: Preferences) -> BradleyTerry:
    """Fit strengths and positions.

    Args:
        preferences: of models that a chain of comparisons connects.
    """
    k, judges = len(preferences.models), len(preferences.judges)
    n = preferences.value.size
    row = np.arange(n)
    signed = np.zeros((n, k + judges))
    signed[row, preferences.first] = 1.0
    signed[row, preferences.second] = -1.0
    signed[row, k + preferences.judge] = 1.0
    known = _identified(signed, k)
    pairs = preferences.pairs
    n_added = 2 * (len(pairs) + int(known.sum()))
    added = np.zeros((n_added, k + judges))
    at = 0
    for a, b in pairs:
        added[at : at + 2, a], added[at : at + 2, b] = 1.0, -1.0
        at += 2
    for judge in np.flatnonzero(known).tolist():
        added[at : at + 2, k + judge] = 1.0
        at += 2
    design = np.concatenate([signed, added])
    design = np.concatenate([design[:, :k] @ _contrasts(k), design[:, k:][:, known]], axis=1)
    value = np.concatenate([preferences.value, np.tile([1.0, 0.0], n_added // 2)])
    weight = np.concatenate([np.ones(n), np.full(n_added, ADDED)])
    beta = _maximum(design, value, weight)
    p = _sigmoid(design @ beta)
    inverse = np.linalg.inv((design * (weight * p * (1.0 - p))[:, None]).T @ design)
    # what was added counts whole, as clusters of its own
    scores = design * (value - p)[:, None]
    summed = np.zeros((len(preferences.items), design.shape[1]))
    np.add.at(summed, preferences.item, scores[:n])
    clusters = int(np.unique(preferences.item).size)
    covariance = np.full((k, k), np.nan)
    if clusters > 1:
        meat = summed.T @ summed * (clusters / (clusters - 1.0)) + scores[n:].T @ scores[n:]
        basis = _contrasts(k)
        covariance = basis @ (inverse @ meat @ inverse)[: k - 1, : k - 1] @ basis.T
    position = np.zeros(judges)
    position[known] = beta[k - 1 :]
    return BradleyTerry(_contrasts(k) @ beta[: k - 1], covariance, position, known, clusters - 1)


def _contrasts(k: int) -> FloatArray:
    """Columns that span the strengths that sum to 0, shape (k, k - 1)."""
    return np.asarray(np.concatenate([np.eye(k - 1), -np.ones((1, k - 1))]))


def _identified(signed: FloatArray, k: int) -> NDArray[np.bool_]:
    """Judges whose position can be told from strengths: taken in one after the other, where rank grows."""
    unique = np.unique(signed, axis=0)
    known = np.zeros(signed.shape[1] - k, dtype=bool)
    columns = unique[:, :k]
    rank = np.linalg.matrix_rank(columns)
    for judge in range(known.size):
        more = np.concatenate([columns, unique[:, [k + judge]]], axis=1)
        larger = np.linalg.matrix_rank(more)
        if larger > rank:
            columns, rank, known[judge] = more, larger, True
    return known


def _maximum(design: FloatArray, value: FloatArray, weight: FloatArray) -> FloatArray:
    """Newton's method with halved steps; the likelihood is strictly concave."""
    beta = np.zeros(design.shape[1])
    best = _likelihood(design, value, weight, beta)
    for _ in range(_STEPS):
        p = _sigmoid(design @ beta)
        gradient = design.T @ (weight * (value - p))
        information = (design * (weight * p * (1.0 - p))[:, None]).T @ design
        step = np.linalg.solve(information, gradient)
        size = 1.0
        while (found := _likelihood(design, value, weight, beta + size * step)) < best and size > _EXACT:
            size /= 2.0
        beta, best = beta + size * step, max(best, found)
        if float(np.abs(size * step).max()) < 1e-10:
            break
    return beta


def _likelihood(design: FloatArray, value: FloatArray, weight: FloatArray, beta: FloatArray) -> float:
    linear = design @ beta
    return float((weight * (value * linear - np.logaddexp(0.0, linear))).sum())


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def _logistic(x: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * x))
