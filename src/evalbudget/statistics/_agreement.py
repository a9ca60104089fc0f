"""How far people who scored the same things agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Agreement:
    """Between scores of the same things.

    Attributes:
        things: that two or more scored.
        equal: share of pairs of scores of the same thing that are equal.
        difference: mean absolute difference of such pairs.
        alpha: Krippendorff's, for numbers: 1 where all agree, 0 where they agree as strangers; nan where
            all scores are the same.
    """

    things: int
    equal: float
    difference: float
    alpha: float


def agreement(thing: ArrayLike, score: ArrayLike) -> Agreement | None:
    r"""Agreement of scores, whoever gave them.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}, \quad
              D_o = \frac1n \sum_u \frac{1}{m_u - 1} \sum_{i \ne j} (x_{ui} - x_{uj})^2, \quad
              D_e = \frac{1}{n (n - 1)} \sum_{i \ne j} (x_i - x_j)^2

    over the n scores of things u that m_u >= 2 scored.

    Args:
        thing: what each score is of, shape (n,).
        score: same shape; one of each person at most.

    Returns:
        None where nothing was scored twice.

    References:
        Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    of, x = np.asarray(thing, dtype=np.int64), np.asarray(score, dtype=np.float64)
    several = np.bincount(of)[of] > 1 if of.size else np.zeros(0, dtype=bool)
    of, x = of[several], x[several]
    if not x.size:
        return None
    observed, equal, difference, pairs = 0.0, 0.0, 0.0, 0
    things = np.unique(of)
    for each in things:
        own = x[of == each]
        gap = np.abs(own[:, None] - own)[np.triu_indices(own.size, 1)]
        observed += 2.0 * float((gap * gap).sum()) / (own.size - 1)
        equal += float((gap == 0.0).sum())
        difference += float(gap.sum())
        pairs += gap.size
    n = x.size
    expected = 2.0 * float(((x - x.mean()) ** 2).sum()) / (n - 1)
    alpha = 1.0 - observed / n / expected if expected > 0.0 else float("nan")
    return Agreement(int(things.size), equal / pairs, difference / pairs, alpha)
