"""The exact interval of a share: how often something happens that was seen in so many of n cases.

Where scores are at one of two ends, their mean is a share, and where all of them are at the same end this is
the only interval that says anything: 0 of 25 leaves room up to .137.
"""

from __future__ import annotations

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import check_level


def exact_share(successes: float, n: int, level: float) -> tuple[float, float]:
    r"""Lower and upper end of Clopper and Pearson's interval: both tails hold at most (1 - level) / 2.

    With k of n and quantiles B of the beta distribution

    .. math:: \text{low} = B_{\alpha/2}(k, n - k + 1), \quad
              \text{high} = B_{1 - \alpha/2}(k + 1, n - k), \quad \alpha = 1 - \text{level}

    low is 0 for k = 0 and high is 1 for k = n. It covers at least ``level`` for every true share and every n,
    if the n cases are independent of each other. Readings of one item are not: then n is of items, and k the
    sum of their means. At k = 0 and k = n it holds for the mean of any scores from 0 to 1: all n of them are
    0 with a probability of at most (1 - mean)^n.

    Args:
        successes: k, from 0 to n; need not be whole.
        n: cases, at least 1.
        level: of the interval, as .95.

    Raises:
        InvalidInputError: no cases, more successes than cases, or a level that is none.

    References:
        Clopper & Pearson (1934), Biometrika 26.
    """
    if not (n >= 1 and 0.0 <= successes <= n):
        raise InvalidInputError(
            f"{successes:g} of {n} is no share; give at least one case, and from 0 to that many successes"
        )
    # imported when needed, as in _shrinkage.py
    from scipy.special import betaincinv

    tail = (1.0 - check_level(level)) / 2.0
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1.0 - tail))
    return low, high
