"""Least squares for judges that scored different items: the kernel under samplers and estimators alike."""

from __future__ import annotations

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray


def judge_effects(block: IntArray, judge: IntArray, value: FloatArray, n_judges: int) -> FloatArray:
    r"""Two-way least squares of x = block + judge with blocks eliminated and sum-to-zero contrasts.

    With :math:`N_{bl}` scores of judge l in block b, :math:`n_b` in the block and :math:`n_l` of the judge,

    .. math:: \Bigl[\mathrm{diag}(n_l) - N^\top \mathrm{diag}(1/n_b) N\Bigr] \gamma
              = \Bigl[\sum_{s: l(s) = l} (x_s - \bar x_{b(s)})\Bigr]_l .

    The matrix is the Laplacian of the judges' graph and has rank K - 1 where that is connected, so it is
    inverted on the contrasts only.

    Args:
        block: item or generation of each score, any numbers, shape (n_scores,).
        judge: index of its judge, same shape.
        value: the score, same shape.
        n_judges: K.

    Returns:
        gammahat, deviation of each judge from the panel's mean, shape (K,); sums to zero. Judges that share
        no block keep the mean of those they can be compared with at zero; zeros where nothing was scored.
    """
    from scipy.sparse import coo_array  # takes longer to import than the rest of evalbudget

    if not value.size:
        return np.zeros(n_judges)
    _, block = np.unique(block, return_inverse=True)
    size = np.bincount(block)
    meets, weighs = (
        coo_array((entry, (block, judge)), shape=(size.size, n_judges)).tocsr()
        for entry in (np.ones(block.size), 1.0 / size[block])
    )
    counts = np.bincount(judge, minlength=n_judges).astype(np.float64)
    values, vectors = np.linalg.eigh(np.diag(counts) - (meets.T @ weighs).toarray())
    found = values > 1e-8 * max(values[-1], 1.0)
    inverse = (vectors[:, found] / values[found]) @ vectors[:, found].T
    centred = value - (np.bincount(block, value) / size)[block]
    gamma = inverse @ np.bincount(judge, centred, n_judges)
    return np.asarray(gamma - gamma.mean(), dtype=np.float64)
