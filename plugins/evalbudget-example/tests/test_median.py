import numpy as np
from scipy.stats import binomtest

from evalbudget.repeats.estimates import ItemReadings
from evalbudget.testing import EstimatorContract
from evalbudget_example.median import Median


class TestMedian(EstimatorContract):
    """The contract of every estimator."""

    estimator = Median


def median_of(scores: list[float]) -> tuple[float, float, float]:
    n = len(scores)
    found = Median().estimate(ItemReadings.of(range(n), [0] * n, scores, n_items=n), None)
    interval = found.confidence_interval(0.95)
    return found.value, interval.low, interval.high


def test_the_interval_is_that_of_the_sign_test() -> None:
    # n = 15: of 15 means 4th and 12th smallest, coverage .9648
    assert median_of([float(i) for i in range(15)]) == (7.0, 3.0, 11.0)
    assert median_of([1.0, 2.0, 3.0, 4.0, 5.0])[1:] == (-np.inf, np.inf)  # too few


def test_it_covers_the_median_of_a_skewed_population() -> None:
    rng = np.random.default_rng(5)
    truth = np.log(2.0)
    held = 0
    for _ in range(400):
        _, low, high = median_of(rng.exponential(size=25).tolist())
        held += low <= truth <= high
    assert held == 387
    assert binomtest(held, 400, 0.9567, alternative="less").pvalue > 0.001
