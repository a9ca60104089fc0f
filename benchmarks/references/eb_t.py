"""Symmetric intervals with shrunk variances: what ``eb_wilson`` leans away from the ends of the scale."""

from __future__ import annotations

from evalbudget.repeats.estimates import ItemEstimates, ItemReadings
from evalbudget.repeats.estimates._items import _eb_t_bounds, _estimates, _pool, _shrunk_errors
from evalbudget.statistics._bounds import Bounds


def eb_t(readings: ItemReadings, *, fixed_repeats: int | None = None) -> ItemEstimates:
    r"""Item means with variances shrunk towards the pool's: fixed-n, average coverage over the items.

    .. math:: \bar x_i \pm t_{\kappa + n_i - 1} \sqrt{V_i/n_i}, \quad
              V_i = \frac{\kappa m + SS_i}{\kappa + n_i - 1}

    m and kappa: see :class:`~evalbudget.statistics._shrinkage.VariancePrior`. "95%" is the share of the items
    covered, and an approximation: in simulation .96-.97 on 0-4 ratings, .94-.95 on Bernoulli items spread
    over (0, 1), after uniform and after adaptive allocation alike, but .90-.97, falling with n, where most
    items nearly always pass (a symmetric interval around a unanimous item is too short). ``eb_wilson``
    repairs that and is the one to report.

    Args:
        readings: of at least one item.
        fixed_repeats: fit m and kappa to epochs below this only, so that readings bought because of the
            scores do not tilt them; pass the sampler's warm-up after adaptive allocation. None: all readings.

    Returns:
        Estimates. Where no item has two readings, or none varies, no interval is defined (nan): equal
        scores do not prove that others are impossible. Then declare the range and use ``eb_wilson``.
    """
    moments = readings.moments
    pool = _pool(readings, fixed_repeats)
    error = _shrunk_errors(pool, moments)

    def intervals(level: float) -> Bounds:
        return _eb_t_bounds(moments, pool, error, level)

    return _estimates(readings, error, "empirical-Bayes t", intervals)
