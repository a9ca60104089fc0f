r"""The interval of a mean share: scores of two values, whose spread falls as the mean nears an end.

Student's interval takes the spread that was seen for that of every mean. Of scores that are nearly all right
it is too short half the time, reaches beyond the end, and misses .11 to .14 where it says .05 (10 to 100
items; ``tests/repeats/estimates/test_share_intervals.py``). Here the variance is what it is at any mean mu,
up to a factor phi that repeats and clusters make of it:

.. math:: \operatorname{Var} \bar x = \varphi \, \mu (1 - \mu), \qquad
          \hat\varphi = \frac{\widehat{se}^2}{\bar x (1 - \bar x)}

and the interval holds every mu with :math:`(\bar x - \mu)^2 \le t_\nu^2 \hat\varphi \mu (1 - \mu)`. With one
reading of each of n items that is Wilson's interval, with Student's quantile for the normal one.

References:
    Wilson (1927), JASA 22. McCullagh & Nelder (1989), Generalized Linear Models, section 4.5, for phi.
"""

from __future__ import annotations

import math


def share_interval(
    mean: float, error: float, quantile: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Lower and upper end, of a mean of scores at one of two ends, which lies between them.

    Args:
        mean: not at an end.
        error: its standard error, > 0.
        quantile: of Student's t, two-sided.
        bounds: the two ends.
    """
    wide = bounds[1] - bounds[0]
    x = (mean - bounds[0]) / wide
    # (1 + a) mu^2 - (2 x + a) mu + x^2 <= 0
    a = (quantile * error / wide) ** 2 / (x * (1.0 - x))
    middle = x + a / 2
    root = math.sqrt(max(middle**2 - (1 + a) * x**2, 0.0))
    return bounds[0] + wide * (middle - root) / (1 + a), bounds[0] + wide * (middle + root) / (1 + a)
