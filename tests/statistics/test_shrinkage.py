from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalbudget.statistics._shrinkage import VariancePrior, t_quantile


@pytest.mark.parametrize("level", [0.0, 0.5, 0.9, 0.95, 0.9999])
def test_t_quantile_against_scipy_stats(level: float) -> None:
    df = np.array([1.0, 1.5, 2.0, 7.0, 30.0, 1e3, 1e9])
    assert t_quantile(level, df) == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-9)
    assert float(t_quantile(level, 4.0)) == pytest.approx(stats.t.ppf((1 + level) / 2, 4))


def test_quantile_uses_no_more_degrees_of_freedom_than_the_pool_rests_on() -> None:
    prior = VariancePrior(mean=1.0, strength=20.0, degrees=5)
    assert prior.quantile(0.9, np.array([3.0, 22.0])) == pytest.approx(stats.t.ppf(0.95, [3, 5]))


def test_posterior_mean_of_one_is_that_of_many() -> None:
    prior = VariancePrior(mean=2.0, strength=4.0, degrees=9)
    many = prior.posterior_mean(np.array([0.0, 3.0]), np.array([0, 5]))
    assert many.tolist() == [prior.posterior_mean(0.0, 0), prior.posterior_mean(3.0, 5)] == [2.0, 11 / 9]


@pytest.mark.parametrize(
    ("variances", "mean"), [([], np.nan), ([0.0, 0.0], 0.0), ([1e-300, 0.0], 5e-301), ([1e290], 1e290)]
)
def test_pools_without_anything_to_match(variances: list[float], mean: float) -> None:
    prior = VariancePrior.fit(variances, [2] * len(variances))
    assert prior.mean == pytest.approx(mean, nan_ok=True)
    assert prior.strength == 2000
    assert prior.degrees == 2 * len(variances)
