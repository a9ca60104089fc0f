r"""Which few items every model should answer first, so that its benchmark mean is predicted best.

A-optimal, greedy: at factors u the score of item j has the variance w_j = p_j (1 - p_j), and the benchmark
mean moves with u along :math:`\bar g = \frac1n \sum_j w_j v_j`. If u has the covariance Q, asking item j
lowers the variance of the mean by

.. math:: \frac{w_j (\bar g^\top Q v_j)^2}{1 + w_j\, v_j^\top Q v_j},

after which Q loses the same rank-one term, and so do the two products for every item: no step costs more than
O(n_items * rank). Models differ in level, so the gain is averaged over several typical u.

This trusts the factors: with a short history it picks the items whose factors are wrong in the most promising
way.
"""

from __future__ import annotations

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction._factor_model import FactorModel
from evalbudget.statistics._bounds import FloatArray, IntArray

_TYPICAL = 8


def choose_anchors(model: FactorModel, n_anchors: int) -> IntArray:
    """A-optimal items, chosen greedily, the most telling first.

    Args:
        model: trained on history.
        n_anchors: how many.

    Returns:
        Indices, shape (n_anchors,), in order of choice; no item twice.

    Raises:
        InvalidInputError: there are fewer items than anchors.
    """
    if not 0 <= n_anchors <= model.n_items:
        raise InvalidInputError(f"{n_anchors} anchors of {model.n_items} eligible items; ask for fewer")
    V, Q = model.V, model.prior_covariance
    typical = _typical(model)
    p = model.predict(typical)
    w = p * (1.0 - p)
    g = w @ V / model.n_items
    VQ = V @ Q
    # products of every item with the gradient and with itself, per typical u
    along = g @ VQ.T
    own = np.repeat((VQ * V).sum(axis=1)[None, :], typical.shape[0], axis=0)
    removed: list[FloatArray] = []
    chosen: list[int] = []
    scale = np.maximum(((g @ Q) * g).sum(axis=1), 1e-300)
    for _ in range(n_anchors):
        gain = (w * along**2 / (1.0 + w * own) / scale[:, None]).mean(axis=0)
        gain[chosen] = -1.0
        j = int(gain.argmax())
        chosen.append(j)
        # Q v_j after the earlier choices, one row per typical u
        q = np.repeat(VQ[j][None, :], typical.shape[0], axis=0)
        for r in removed:
            q = q - r * (r @ V[j])[:, None]
        r = q * np.sqrt(w[:, j] / (1.0 + w[:, j] * own[:, j]))[:, None]
        removed.append(r)
        product = r @ V.T
        along = along - product * (r * g).sum(axis=1)[:, None]
        own = np.maximum(own - product**2, 0.0)
    return np.asarray(chosen, dtype=np.int64)


def _typical(model: FactorModel) -> FloatArray:
    """The prior mean, and history's models at even steps of their predicted mean."""
    if model.U.shape[0] < 2:
        return model.prior_mean[None, :]
    some = np.linspace(0, model.n_items - 1, min(model.n_items, 500)).astype(np.int64)
    order = np.argsort(model.predict(model.U, some).mean(axis=1), kind="stable")
    places = np.linspace(0, order.size - 1, min(_TYPICAL, order.size)).astype(np.int64)
    return np.vstack([model.prior_mean, model.U[order[places]]])
