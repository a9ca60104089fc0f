"""By simulation: cross-fit halves leave the benchmark mean unbiased, also where nearly every item passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.claims import binomial_claim, replications

from evalbudget import Allocation, Design, Reading
from evalbudget.estimators import ItemReadings, mean_over_fixed_items
from evalbudget.plugins import get_sampler

pytestmark = pytest.mark.claim

K = 100
TIMES = (5, 6, 10)


def bought(name: str, objective: str, cross_fit: bool, seed: int) -> Iterator[tuple[float, ItemReadings]]:
    """True mean and readings after 5, 6 and 10 readings per item, one request at a time."""
    rng = np.random.default_rng(seed)
    p = rng.beta(9, 1, K)
    scores = (rng.random((K, 10 * TIMES[-1])) < p[:, None]).astype(float).tolist()
    sampler = get_sampler(name)(Design.of_items(K), objective=objective, cross_fit=cross_fit, seed=seed)
    items: list[int] = []
    epochs: list[int] = []
    values: list[float] = []
    for times in TIMES:
        while len(values) < times * K:
            (request,) = sampler.ask(1)
            _, item, epoch, _ = request.cell
            value = scores[item][epoch] if epoch < len(scores[item]) else float(rng.random() < p[item])
            sampler.tell([Reading(request, value)])
            items.append(item)
            epochs.append(epoch)
            values.append(value)
        yield float(p.mean()), ItemReadings.of(items, epochs, values, n_items=K)


@pytest.mark.parametrize("objective", ["worst-item", "mean"])
@pytest.mark.parametrize("name", ["eb-bernstein", "rating-kernel"])
def test_cross_fit_benchmark_mean(name: str, objective: str) -> None:
    R = replications(80, 2000)
    errors, failed = np.zeros((R, len(TIMES))), [0] * len(TIMES)
    for seed in range(R):
        for t, (truth, readings) in enumerate(bought(name, objective, True, seed)):
            found = mean_over_fixed_items(readings, allocation=Allocation.CROSS_FIT, bounds=(0, 1))
            interval = found.confidence_interval(0.95)
            errors[seed, t] = found.value - truth
            failed[t] += not interval.low <= truth <= interval.high
    z = errors.mean(axis=0) / errors.std(axis=0, ddof=1) * np.sqrt(R)
    assert (np.abs(z) < 4).all(), z
    for misses in failed:
        binomial_claim(misses, R, at_most=0.05)


@pytest.mark.parametrize("name", ["eb-bernstein", "rating-kernel"])
def test_without_cross_fit_the_benchmark_mean_is_biased(name: str) -> None:
    # what the test above would see
    R = replications(40, 500)
    errors = [
        mean_over_fixed_items(readings).value - truth
        for seed in range(R)
        for truth, readings in list(bought(name, "mean", False, seed))[-1:]
    ]
    assert np.mean(errors) / np.std(errors) * np.sqrt(R) > 4
