r"""The default sampler, with features of the items as a prior of their variances.

After the warm-up the sample variances are regressed on the features, :math:`E[s_i^2] = o_i e^{b_0 + b'z_i}`
(quasi-Poisson, so that variances of 0 count as they are), with :math:`g_i = e^{b_0 + b'z_i}`.

On scales of few levels (``rating-kernel``) the offset is what the kernel says of a reading's second one,
:math:`o = \sum_b T_{ab} (y_a - y_b)^2/2`, so that b is what the features know beyond the score itself. The
kernel's :math:`\alpha` pseudo-readings are those about which they speak: the log variance moves by the share
:math:`\alpha/(n_i + \alpha)` of :math:`\log g_i`.

Elsewhere (``eb-bernstein``) there is no offset, and an item's prior variance is :math:`m g_i`; m and kappa
are fitted to :math:`s_i^2/g_i`: the more the features explain, the larger kappa.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Design
from evalbudget.repeats.samplers import Auto
from evalbudget.repeats.samplers._rating_kernel import _Kernel
from evalbudget.statistics._shrinkage import VariancePrior

FloatArray = NDArray[np.float64]

_STEPS = 30
_PENALTY = 1.0


class FeaturedAuto(Auto):
    """``auto`` with a variance prior from features; see the module.

    Args:
        design: one model, one rater.
        features: z, shape (n_items, n_features), finite.
        budget: readings that will be bought in all.
        seed: of the order among equals.
    """

    def __init__(self, design: Design, features: FloatArray, *, budget: int, seed: int = 0) -> None:
        super().__init__(design, budget=budget, seed=seed)
        spread = features.std(axis=0)
        self._z = (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        self._log_g: list[float] = [0.0] * design.n_items

    def _warmed_up(self) -> None:
        super()._warmed_up()
        items = np.array([item for item in range(self.design.n_items) if self.n_read(item) >= 2])
        degrees = np.array([self.n_read(item) - 1 for item in items.tolist()])
        variances = np.array([self.sum_of_squares(item) for item in items.tolist()]) / degrees
        if not variances.any():
            return
        if self._kernel is None:
            g = log_linear(self._z[items], variances, np.ones(items.size), self._z)
            self._prior = VariancePrior.fit(variances / np.exp(g[items]), degrees)
            self._linear = self._c() * math.sqrt(self._prior.mean)
        else:
            counts = np.array(self._counts).reshape(-1, len(self._kernel.levels))
            squares, second = expected_squares(self._kernel, counts)
            n = counts.sum(axis=1)
            rows, levels = np.nonzero(counts * (n >= 2)[:, None])
            weight = counts[rows, levels] / n[rows]
            g = log_linear(self._z[rows], squares[rows], second[levels], self._z, weight)
        self._log_g = g.tolist()

    def _urgency(self, item: int) -> float:
        log_g, kernel = self._log_g[item], self._kernel
        if kernel is not None:
            share = kernel.alpha / (self.n_read(item) + kernel.alpha)
            return super()._urgency(item) * math.exp(2.0 * share * log_g)  # of V^2 / n^2
        prior, n = self._prior, self.n_asked(item)
        if not prior.mean > 0.0:
            return -float(n)
        g = math.exp(log_g)
        v = g * prior.posterior_mean(self.sum_of_squares(item) / g, max(0, self.n_read(item) - 1))
        return math.sqrt(v / n) + self._linear * math.sqrt(g) / n


def expected_squares(kernel: _Kernel, counts: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """s_i^2 of every item on the kernel's scale, and o of every level.

    Args:
        kernel: of the pool.
        counts: warm-up readings at each level, shape (n_items, n_levels).
    """
    y, y2 = (np.array(kernel.powers)[:, k] for k in (0, 1))
    r1, r2 = (np.array(kernel.powers)[:, k] for k in (4, 5))
    n = np.maximum(counts.sum(axis=1), 2)
    squares = (counts @ y2 - (counts @ y) ** 2 / n) / (n - 1)
    return np.maximum(squares, 0.0), (y2 - 2.0 * y * r1 + r2) / 2.0


def log_linear(
    z: FloatArray, response: FloatArray, offset: FloatArray, at: FloatArray, weight: FloatArray | None = None
) -> FloatArray:
    r""":math:`b_0 + b'z` at the rows of ``at``, with :math:`E[response] = offset\, e^{b_0 + b'z}`.

    Quasi-likelihood by Newton's steps. b, not b_0, has a normal prior of standard deviation 1, for responses
    in units of their mean: it keeps a feature finite under which nothing varies.

    Args:
        z: standardised, shape (n, p).
        response: shape (n,), not negative, not all 0.
        offset: positive, same shape.
        at: shape (m, p).
        weight: of each row; equal if None.
    """
    w = np.ones(len(response)) if weight is None else weight
    X = np.column_stack([np.ones(len(z)), z])
    unit = float((w * response).sum() / w.sum())
    b = np.zeros(X.shape[1])
    b[0] = math.log(float((w * response).sum() / (w * offset).sum()))
    penalty = np.full(b.size, _PENALTY)
    penalty[0] = 0.0
    for _ in range(_STEPS):
        mean = offset * np.exp(X @ b) / unit
        gradient = X.T @ (w * (response / unit - mean)) - penalty * b
        step = np.linalg.solve((X * (w * mean)[:, None]).T @ X + np.diag(penalty), gradient)
        b += step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(np.column_stack([np.ones(len(at)), at]) @ b, dtype=np.float64)
