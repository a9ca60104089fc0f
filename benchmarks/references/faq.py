r"""Factorized Active Querying, arXiv 2601.20251: one new model's mean over N items from T answers.

Published: the abstract and summaries of the paper, and the formulas below in the code of its experiments,
which was read and not copied. History gives item factors v_j and a normal prior of the new model's u. At step
t, with :math:`p_j = \sigma(u \cdot v_j)`, :math:`w_j = p_j (1 - p_j)` and :math:`a = \frac1N \sum_j w_j v_j`,

.. math:: h_o \propto \sqrt{w_j}, \quad
          h_a \propto \frac{w_j (a^\top \Sigma v_j)^2}{1 + w_j v_j^\top \Sigma v_j}, \quad
          \alpha_t = \Bigl(1 - \frac{t}{\rho T}\Bigr)_+,

.. math:: q = (1 - \tau) [(1 - \alpha_t) h_o + \alpha_t h_a] + \frac\tau N;

an item is drawn from q, with replacement, and u and Sigma take one Newton step by its score z. Then

.. math:: \hat\theta = \frac1{TN} \sum_t \phi_t, \quad \phi_t = \sum_j p_j + \frac{z - p}{q}, \quad
          v^2 = \frac1{TN^2} \Bigl[\sum_t \Bigl(\frac{z - p}{q}\Bigr)^2
          - \sum_t \Bigl(\frac1T \sum_s \frac{z_s}{q_s} - \sum_j p_j\Bigr)^2\Bigr]

and the interval is :math:`\hat\theta \pm 1.96 \sqrt{v^2 / T}`, asymptotic and at a fixed T. The authors
choose rho, tau and a tempering of h on history; with a fully known one they mostly took no tempering, rho = 0
and tau = .05 or .25. They record the interval without v's
second sum too, which is noisy at few answers.

Guessed: the factors and the prior are as our FactorModel has them. Without replacement a later version of the
paper takes scores in place of predictions of the items that were read; q there is taken to be the same on the
items left, and the variance that of the phi_t about their mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray

_NORMAL = 1.959963984540054


class Interval(NamedTuple):
    """Of several models, shape (n_models,) each."""

    low: FloatArray
    high: FloatArray
    distinct: FloatArray
    """Items read, each counted once."""


class Posterior:
    """u of several new models, normal.

    Args:
        V: item factors, shape (n_items, rank).
        mean: of the prior, shape (rank,).
        covariance: of the prior, shape (rank, rank).
        n_models: number of models.
    """

    def __init__(self, V: FloatArray, mean: FloatArray, covariance: FloatArray, n_models: int) -> None:
        self.V = V
        self.u = np.tile(mean, (n_models, 1))
        self.sigma = np.tile(covariance, (n_models, 1, 1))

    def predict(self) -> FloatArray:
        """Expected scores, shape (n_models, n_items)."""
        p = 0.5 + 0.5 * np.tanh(0.5 * self.u @ self.V.T)
        return np.asarray(np.clip(p, 1e-12, 1.0 - 1e-12))

    def told_of_mean(self, p: FloatArray) -> FloatArray:
        """By how much each item's score is expected to lower the variance of the mean, same shape."""
        w = p * (1.0 - p)
        direction = np.einsum("mij,mj->mi", self.sigma, w @ self.V / self.V.shape[0])
        spread = np.einsum("ni,mij,nj->mn", self.V, self.sigma, self.V, optimize=True)
        return np.asarray(w * (direction @ self.V.T) ** 2 / (1.0 + w * spread))

    def update(self, item: IntArray, z: FloatArray, p: FloatArray) -> None:
        """One Newton step by a score of each model: item, z and the p predicted, shape (n_models,) each."""
        v, w = self.V[item], p * (1.0 - p)
        along = np.einsum("mij,mj->mi", self.sigma, v)
        shrink = w / (1.0 + w * (along * v).sum(axis=1))
        self.sigma -= shrink[:, None, None] * along[:, :, None] * along[:, None, :]
        self.u += np.einsum("mij,mj->mi", self.sigma, v) * (z - p)[:, None]


def faq(
    scores: FloatArray,
    posterior: Posterior,
    n_draws: int,
    rng: np.random.Generator,
    *,
    rho: float = 0.0,
    tau: float = 0.25,
    replacement: bool = True,
    second_sum: bool = True,
) -> Interval:
    """95% intervals of several new models, each by itself.

    Args:
        scores: in [0, 1], nan where an item is none of the model's, shape (n_models, n_items).
        posterior: their prior, which is changed.
        n_draws: T, at least 2; without replacement at most as many as each model has items.
        rng: of the draws.
        rho: share of the draws over which learning about u gives way.
        tau: share of uniform draws.
        replacement: whether an item may be drawn again.
        second_sum: whether v^2, with replacement, has the sum that is subtracted; without it is too large on
            average.
    """
    mine, row = ~np.isnan(scores), np.arange(len(scores))
    size = mine.sum(axis=1)
    seen = np.zeros_like(mine)
    phi, gap, plain, predicted = (np.empty((n_draws, len(scores))) for _ in range(4))
    for t in range(n_draws):
        p = posterior.predict()
        open_ = np.asarray(mine if replacement else mine & ~seen, dtype=np.float64)
        h = _normed(np.sqrt(p * (1.0 - p)) * open_)
        if (alpha := 1.0 - (t + 1) / (rho * n_draws) if rho else 0.0) > 0.0:
            learning = _normed(posterior.told_of_mean(p) * open_)
            h = np.asarray((1.0 - alpha) * h + alpha * learning)
        q = np.asarray((1.0 - tau) * h + tau * _normed(open_))
        item = (q.cumsum(axis=1) < rng.random((len(scores), 1))).sum(axis=1)
        item = np.minimum(item, mine.shape[1] - 1)
        z, chance = scores[row, item], q[row, item]
        predicted[t] = (p if replacement else np.where(seen, scores, p)).sum(axis=1, where=mine)
        gap[t], plain[t] = (z - p[row, item]) / chance, z / chance
        phi[t] = predicted[t] + gap[t]
        seen[row, item] = True
        posterior.update(item, z, p[row, item])
    if replacement:
        between = ((plain.mean(axis=0) - predicted) ** 2).mean(axis=0)
        variance = ((gap**2).mean(axis=0) - between * second_sum).clip(0.0)
    else:
        variance = phi.var(axis=0, ddof=1)
    half = _NORMAL * np.sqrt(variance / n_draws) / size
    middle = phi.mean(axis=0) / size
    return Interval(np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0), seen.sum(axis=1) * 1.0)


def _normed(weight: FloatArray) -> FloatArray:
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
