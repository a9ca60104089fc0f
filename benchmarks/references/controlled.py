"""A model's benchmark mean by other coefficients of the predictions, and by the closed-form sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from evalbudget.estimate import ConfidenceInterval, Estimate
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates import benchmark_mean
from evalbudget.races.estimates._draws_for_sequences import of_model
from evalbudget.races.estimates._means import weighted_mean
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._pool_mean_sequence import (
    ControlledDraws,
    _bernstein,
    _exact,
    _ordered,
    _Terms,
    controlled_betting,
)


def benchmark_mean_by(
    draws: ModelDraws,
    *,
    coefficient: Literal["regression", "one", "zero"] = "regression",
    sequence: Literal["betting", "empirical-bernstein"] = "betting",
) -> Estimate:
    """The product's estimate with value, error and interval by another way.

    Args:
        draws: of one model.
        coefficient: of the predictions: ``regression`` is the product's, ``one`` the difference estimator,
            ``zero`` ignores them.
        sequence: ``betting`` is the product's, ``empirical-bernstein`` wider and of closed form.
    """
    pool = of_model(draws)
    slopes = np.full(pool.value.size, 1.0 if coefficient == "one" else 0.0)
    if coefficient == "regression":
        slopes = pool.slopes()
    kernel = controlled_betting if sequence == "betting" else controlled_bernstein
    value, error = weighted_mean(pool, slopes)

    def interval(level: float) -> ConfidenceInterval:
        return ConfidenceInterval(*kernel(pool, 1.0 - level, slopes))

    return replace(benchmark_mean(draws), value=value, standard_error=error, interval=interval)


def controlled_bernstein(draws: ControlledDraws, alpha: float, slopes: FloatArray) -> tuple[float, float]:
    """Predictable plug-in empirical Bernstein sequence for the mean of the pool, at its last draw.

    Closed form, O(1) per draw; wider than betting. Arguments and result as of ``controlled_betting``, formula
    as theirs with scores divided by the width of their range.
    """
    if draws.exhausted:
        return _exact(draws)
    low, high = draws.limits()
    if not draws.value.size:
        return low, high
    first = _bernstein(_Terms.of(draws, slopes), alpha)
    return _ordered(max(low, first[0]), min(high, first[1]))
