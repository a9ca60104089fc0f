"""Plans of repeats: against worlds whose variances are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from tests.repeats.estimates.worlds import of

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.hooks import plugins
from evalbudget.repeats import RepeatPlan, plan_repeats
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.sampler import Kind


def pilot(sd: np.ndarray, repeats: int, seed: int, grid: float | None = None) -> ItemReadings:
    rng = np.random.default_rng(seed)
    values = 5 + sd[:, None] * rng.standard_normal((sd.size, repeats))
    if grid is not None:
        values = np.round(values / grid) * grid
    return of(values.tolist())


def planned(readings: ItemReadings, half_width: float, *names: str) -> dict[str, RepeatPlan]:
    made = [(name, plugins().sampler(name, Kind.REPEATS)) for name in names]
    samplers = [(name, lambda design, seed, budget, cls=cls: cls(design, seed=seed)) for name, cls in made]
    return {plan.strategy: plan for plan in plan_repeats(readings, half_width, samplers)}


def test_worlds_with_one_variance_need_the_closed_form() -> None:
    sd = np.full(30, 2.0)
    found = planned(pilot(sd, 200, 1), 0.5, "uniform")
    exact = 30 * np.ceil(norm.ppf(0.975) ** 2 * 4.0 / 0.25)
    for plan in found.values():
        assert plan.calls == pytest.approx(exact, rel=0.15)
        assert plan.calls_upper >= plan.calls
        assert plan.per_item == pytest.approx(plan.calls / 30, abs=0.05)
    # uniform needs what plain epochs need, but for the last round
    assert found["plain epochs"].calls - 30 < found["uniform"].calls <= found["plain epochs"].calls


@pytest.mark.claim
def test_of_a_short_pilot_the_counts_are_near_the_true_ones() -> None:
    z = norm.ppf(0.975)
    sd = np.random.default_rng(3).gamma(3, 0.5, 60)
    plain = 60 * np.ceil(z**2 * sd.max() ** 2 / 0.25)
    best = np.maximum(np.ceil(z**2 * sd**2 / 0.25), 1.0).sum()
    found = [planned(pilot(sd, 8, seed), 0.5) for seed in range(60)]
    ratios = [(f["plain epochs"].calls / plain, f["variances known"].calls / best) for f in found]
    assert np.median(ratios, axis=0) == pytest.approx([1.172, 0.973], abs=0.002)
    enough = [
        sum(f["plain epochs"].calls_upper >= plain for f in found),
        sum(f["variances known"].calls_upper >= best for f in found),
    ]
    assert enough == [60, 47]
    for count, claimed in zip(
        enough, (0.9, 0.75), strict=True
    ):  # of the sum, a pilot says less than of the largest
        assert binomtest(count, 60, claimed, alternative="less").pvalue > 0.01


def test_an_adaptive_sampler_lies_between_and_levels_are_kept() -> None:
    rng = np.random.default_rng(4)
    sd = np.where(rng.random(40) < 0.8, 0.5, 2.0)
    readings = pilot(sd, 8, 5, grid=1.0)
    found = planned(readings, 0.6, "auto")
    assert list(found) == ["plain epochs", "auto", "variances known"]
    assert found["variances known"].calls < found["auto"].calls < 0.8 * found["plain epochs"].calls
    assert planned(readings, 0.6, "auto") == found  # seeded


def test_what_cannot_be_planned() -> None:
    with pytest.raises(InvalidInputError, match="half-width is 0"):
        planned(pilot(np.ones(5), 3, 1), 0.0)
    with pytest.raises(InvalidInferenceError, match="a pilot of 3 epochs or more"):
        planned(pilot(np.zeros(5), 3, 1), 0.5)
    with pytest.raises(InvalidInferenceError, match="a pilot of 3 epochs or more"):
        planned(pilot(np.ones(5), 1, 1), 0.5)
